//! Two nodes on a network in memory: what is asked, what is answered, and what is known when nothing comes.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use runtime::network::memory::MemoryNetworkOptions;
use runtime::{MemoryNetwork, SeededRandom};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::*;
use crate::{Encoder, HandshakeError, Kind, Purpose, Reason, Stamp};

pub(super) const ASKS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(super) const ANSWERS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub(super) const PORT: SocketAddr = SocketAddr::new(ANSWERS, 7000);
const PATIENCE: Duration = Duration::from_secs(1);

/// A node that says who it is, and keeps what it heard.
pub(super) struct TestNode {
    host: u128,
    cluster: &'static str,
    clock: Cell<i64>,
    /// Bodies that repeat themselves would take no room.
    pub(super) is_compressing: Cell<bool>,
    pub(super) bounds: RefCell<Bounds>,
    heard: RefCell<Vec<(Uuid, i64)>>,
    counts: Arc<MessageCounts>,
}

impl TestNode {
    pub(super) fn new(host: u128, cluster: &'static str) -> Rc<TestNode> {
        Rc::new(TestNode {
            host,
            cluster,
            clock: Cell::new(0),
            is_compressing: Cell::new(true),
            bounds: RefCell::default(),
            heard: RefCell::default(),
            counts: Arc::default(),
        })
    }

    /// Requests that wait, were answered, and were lost.
    fn counted(&self) -> [u64; 3] {
        [self.counts.pending(), self.counts.answered(), self.counts.lost()]
    }
}

impl Node for TestNode {
    fn identity(&self) -> Identity {
        Identity {
            cluster_name: self.cluster.to_owned(),
            cluster_id: None,
            host_id: Uuid::from_u128(self.host),
            incarnation: 1,
            shard_count: 1,
            wants_compression: self.is_compressing.get(),
            secret: None,
        }
    }

    fn context(&self) -> Context {
        Context { clock_micros: self.clock.get(), schema_epoch: 0, ring_epoch: 0 }
    }

    fn heard(&self, from: &Established, context: Context) {
        self.heard.borrow_mut().push((from.host_id, context.clock_micros));
    }

    fn bounds(&self) -> Bounds {
        self.bounds.borrow().clone()
    }

    fn counts(&self, _purpose: &Purpose, _host_id: Option<Uuid>) -> Arc<MessageCounts> {
        Arc::clone(&self.counts)
    }
}

/// Answers by what the request says: `echo …` at once, `later …` after 100 ms, `drop` not at all, `hold` when told to.
#[derive(Default)]
pub(super) struct TestService {
    pub(super) held: RefCell<Vec<Request>>,
    pub(super) came: Cell<usize>,
    notices: RefCell<Vec<Bytes>>,
}

impl Service for TestService {
    fn request(&self, _from: &Established, request: Request) {
        self.came.set(self.came.get() + 1);
        let body = request.body.clone();
        match &body[..4] {
            b"echo" => request.answer(|out| out.extend_from_slice(&body)).expect("short enough"),
            b"late" => {
                tokio::task::spawn_local(async move {
                    sleep(Duration::from_millis(100)).await;
                    request.answer(|out| out.extend_from_slice(&body)).expect("short enough");
                });
            }
            b"drop" => {}
            b"hold" => self.held.borrow_mut().push(request),
            other => panic!("{other:?}"),
        }
    }

    fn notice(&self, _from: &Established, body: Bytes) {
        self.notices.borrow_mut().push(body);
    }
}

/// Two hosts: one asks, and the other answers once [`Pair::listen`] was called.
pub(super) struct Pair {
    pub(super) network: MemoryNetwork,
    pub(super) asking: Rc<TestNode>,
    pub(super) answering: Rc<TestNode>,
    pub(super) service: Rc<TestService>,
    pub(super) peer: Peer,
    pub(super) ended: Rc<RefCell<Vec<PeerError>>>,
}

impl Pair {
    pub(super) fn new(options: PeerOptions) -> Pair {
        Pair::new_on(&MemoryNetwork::new(3, MemoryNetworkOptions::default()), options)
    }

    pub(super) fn new_on(network: &MemoryNetwork, options: PeerOptions) -> Pair {
        Pair::of(network, &TestNode::new(1, "Test Cluster"), options)
    }

    /// With that one to ask.
    pub(super) fn of(network: &MemoryNetwork, asking: &Rc<TestNode>, options: PeerOptions) -> Pair {
        let asking = Rc::clone(asking);
        let peer = Peer::new(options, asking.clone());
        let ended: Rc<RefCell<Vec<PeerError>>> = Rc::default();
        let (told, random) = (ended.clone(), Arc::new(SeededRandom::new(1)));
        let run = peer.clone().run(network.host(ASKS), random, asking.clone(), move |error| {
            told.borrow_mut().push(error);
        });
        tokio::task::spawn_local(run);
        let answering = TestNode::new(2, "Test Cluster");
        Pair { network: network.clone(), asking, answering, service: Rc::default(), peer, ended }
    }

    pub(super) fn listen(&self) {
        self.listen_as(&self.answering);
    }

    fn listen_as(&self, node: &Rc<TestNode>) {
        let listener =
            self.network.host(ANSWERS).bind(PORT, 1).expect("free").remove(0).open().expect("listens");
        let (node, service) = (node.clone(), self.service.clone());
        tokio::task::spawn_local(async move {
            let random = SeededRandom::new(2);
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(met) = accept(stream, &*node, &random).await {
                    tokio::task::spawn_local(answer(met, node.clone(), service.clone()));
                }
            }
        });
    }

    pub(super) async fn ask(&self, body: &str) -> Result<Bytes, AskError> {
        self.asked(body).await
    }

    pub(super) fn asked(&self, body: &str) -> Asked {
        self.peer.ask(PATIENCE, |out| out.extend_from_slice(body.as_bytes())).expect("short enough")
    }

    /// Waits until the other side has got so many requests.
    pub(super) async fn came(&self, count: usize) {
        while self.service.came.get() < count {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

pub(super) fn options() -> PeerOptions {
    PeerOptions {
        address: PORT,
        host_id: Some(Uuid::from_u128(2)),
        purpose: Purpose::Shard { from: 0, to: 0 },
        unsent_bytes_max: 1 << 20,
        asked_count_max: 1000,
    }
}

/// Runs on one thread with paused time, as the simulator does.
pub(super) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let bounded = async { timeout(Duration::from_secs(3600), test).await.expect("it ends") };
    LocalSet::new().block_on(&runtime.expect("a runtime"), bounded);
}

pub(super) fn ok(body: &'static str) -> Result<Bytes, AskError> {
    Ok(Bytes::from_static(body.as_bytes()))
}

#[test]
fn what_is_asked_is_answered_in_whatever_order() {
    run(async {
        let pair = Pair::new(options());
        pair.listen();
        let (late, quick) = (pair.asked("late one"), pair.asked("echo two"));
        assert_eq!(quick.await, ok("echo two"));
        assert_eq!(late.await, ok("late one"));
        pair.peer.notify(|out| out.extend_from_slice(b"by the way")).expect("short enough");
        assert_eq!(pair.ask("echo three").await, ok("echo three"));
        assert_eq!(*pair.service.notices.borrow(), ["by the way"]);
    });
}

#[test]
fn what_is_asked_in_one_turn_goes_in_one_frame() {
    run(async {
        let pair = Pair::new(options());
        pair.listen();
        assert_eq!(pair.ask("echo first").await, ok("echo first"));
        let before = pair.answering.heard.borrow().len();
        let asked: Vec<Asked> = (0..50).map(|_| pair.asked("echo")).collect();
        for asked in asked {
            assert_eq!(asked.await, ok("echo"));
        }
        assert_eq!(pair.answering.heard.borrow().len(), before + 1, "frames that came");
    });
}

#[test]
fn each_hears_what_the_other_knows() {
    run(async {
        let pair = Pair::new(options());
        pair.listen();
        pair.asking.clock.set(17);
        pair.answering.clock.set(18);
        assert_eq!(pair.ask("echo").await, ok("echo"));
        assert_eq!(*pair.answering.heard.borrow(), [(Uuid::from_u128(1), 17)]);
        assert_eq!(*pair.asking.heard.borrow(), [(Uuid::from_u128(2), 18)]);
    });
}

#[test]
fn a_request_that_is_dropped_is_declined() {
    run(async {
        let pair = Pair::new(options());
        pair.listen();
        assert_eq!(pair.ask("drop").await, Err(AskError::Declined));
    });
}

/// Who asked may have seen to it meanwhile that it is done otherwise, or is not to be done.
#[test]
fn what_stood_still_on_its_way_for_longer_than_it_is_waited_for_is_not_begun() {
    run(async {
        let pair = Pair::new(options());
        pair.listen();
        assert_eq!(pair.ask("echo").await, ok("echo"));
        pair.network.cut(ASKS, ANSWERS);
        let asked = pair.asked("hold");
        sleep(2 * PATIENCE).await;
        pair.network.heal(ASKS, ANSWERS);
        assert_eq!(asked.await, Err(AskError::Declined));
        assert_eq!(pair.service.came.get(), 1, "the first");
        pair.network.cut(ASKS, ANSWERS);
        let asked = pair.asked("hold");
        sleep(PATIENCE * 2 / 3).await;
        pair.network.heal(ASKS, ANSWERS);
        pair.came(2).await;
        let held = pair.service.held.borrow_mut().pop().expect("it came");
        assert!(held.deadline <= Instant::now() + PATIENCE / 3, "it waits no longer than who asked");
        held.answer(|out| out.extend_from_slice(b"held")).expect("short enough");
        assert_eq!(asked.await, ok("held"));
    });
}

/// Its frame is sealed when the one before it is gone.
#[test]
fn what_waited_behind_something_for_longer_than_it_is_waited_for_is_not_begun() {
    run(async {
        let pair = Pair::new(PeerOptions { unsent_bytes_max: 64 << 20, ..options() });
        pair.asking.is_compressing.set(false);
        pair.listen();
        assert_eq!(pair.ask("echo").await, ok("echo"));
        pair.network.cut(ASKS, ANSWERS);
        let body = "hold".repeat(MemoryNetworkOptions::default().window_bytes);
        let before = pair.asked(&body);
        sleep(Duration::from_millis(10)).await;
        let behind = pair.asked("hold");
        sleep(2 * PATIENCE).await;
        pair.network.heal(ASKS, ANSWERS);
        assert_eq!((before.await, behind.await), (Err(AskError::Declined), Err(AskError::Declined)));
        assert_eq!(pair.service.came.get(), 1, "the first");
    });
}

#[test]
fn nothing_was_sent_to_whom_nobody_can_reach_and_later_it_is() {
    run(async {
        let pair = Pair::new(options());
        assert_eq!(pair.ask("echo").await, Err(AskError::NotSent));
        assert!(!pair.peer.is_reachable());
        assert_eq!(pair.ask("echo").await, Err(AskError::NotSent), "at once");
        pair.listen();
        while pair.ask("echo").await != ok("echo") {
            sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn a_connection_that_breaks_leaves_what_it_had_in_doubt_and_is_made_anew() {
    run(async {
        let pair = Pair::new(options());
        pair.listen();
        let held = pair.asked("hold");
        pair.came(1).await;
        pair.network.reset(ASKS, ANSWERS);
        // It did arrive; who asked can not know.
        assert_eq!(held.await, Err(AskError::Broken));
        pair.service
            .held
            .borrow_mut()
            .drain(..)
            .for_each(|late| late.answer(|_| {}).expect("nobody listens"));
        assert_eq!(pair.ask("echo").await, Err(AskError::NotSent), "between two connections");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(pair.ask("echo again").await, ok("echo again"));
        assert!(
            matches!(pair.ended.borrow()[..], [PeerError::Wire(WireError::Stream(_))]),
            "{:?}",
            pair.ended
        );
    });
}

#[test]
fn each_request_waits_until_it_is_answered_or_lost() {
    run(async {
        let pair = Pair::new(options());
        pair.listen();
        assert_eq!(pair.ask("echo").await, ok("echo"));
        assert_eq!(pair.asking.counted(), [0, 1, 0]);
        let late = pair.asked("late");
        assert_eq!(pair.asking.counted(), [1, 1, 0]);
        assert!(timeout(Duration::from_millis(50), late).await.is_err(), "given up");
        assert_eq!(pair.asking.counted(), [1, 1, 0], "it is not answered all the same");
        sleep(Duration::from_millis(100)).await;
        assert_eq!(pair.asking.counted(), [0, 2, 0]);
        assert_eq!(pair.ask("drop").await, Err(AskError::Declined));
        assert_eq!(pair.asking.counted(), [0, 2, 1]);
        let (held, given_up) = (pair.asked("hold"), pair.asked("hold"));
        pair.came(5).await;
        drop(given_up);
        assert_eq!(pair.asking.counted(), [2, 2, 1]);
        pair.network.reset(ASKS, ANSWERS);
        assert_eq!(held.await, Err(AskError::Broken));
        assert_eq!(pair.ask("echo").await, Err(AskError::NotSent));
        assert_eq!(pair.asking.counted(), [0, 2, 4]);
    });
}

/// Once the id of a request that was given up would have been used again, and its answer taken for another one's.
#[test]
fn a_late_answer_is_nobody_elses() {
    run(async {
        let pair = Pair::new(options());
        pair.listen();
        let late = pair.asked("late first");
        assert!(timeout(Duration::from_millis(50), late).await.is_err(), "given up");
        let asked: Vec<Asked> = (0..3).map(|_| pair.asked("late next")).collect();
        for asked in asked {
            assert_eq!(asked.await, ok("late next"));
        }
        assert_eq!(pair.peer.waiting_count(), 0, "all places are free again");
    });
}

#[test]
fn who_asks_too_much_is_told_that_nothing_was_sent() {
    run(async {
        let pair = Pair::new(PeerOptions { asked_count_max: 3, ..options() });
        pair.listen();
        let asked: Vec<Asked> = (0..3).map(|_| pair.asked("hold")).collect();
        assert_eq!(pair.ask("echo").await, Err(AskError::NotSent));
        pair.came(3).await;
        pair.service.held.borrow_mut().clear();
        for asked in asked {
            assert_eq!(asked.await, Err(AskError::Declined));
        }
        assert_eq!(pair.ask("echo").await, ok("echo"));
    });
}

#[test]
fn what_can_not_be_sent_is_bounded() {
    run(async {
        let pair = Pair::new(options());
        pair.asking.is_compressing.set(false);
        pair.listen();
        assert_eq!(pair.ask("echo").await, ok("echo"));
        pair.network.cut(ASKS, ANSWERS);
        let body = "hold".repeat(50_000);
        let mut taken = Vec::new();
        loop {
            let mut asked = pair.asked(&body);
            match timeout(Duration::from_millis(10), &mut asked).await {
                Ok(outcome) => break assert_eq!(outcome, Err(AskError::NotSent)),
                Err(_) => taken.push(asked),
            }
        }
        // What the stream holds, and the limit, each overstepped by one at most.
        let held_bytes = MemoryNetworkOptions::default().window_bytes + options().unsent_bytes_max;
        assert!((held_bytes / body.len()..=held_bytes / body.len() + 2).contains(&taken.len()));
        pair.network.heal(ASKS, ANSWERS);
        pair.came(1 + taken.len()).await;
    });
}

#[test]
fn who_does_not_take_answers_is_asked_no_more() {
    run(async {
        let pair = Pair::new(PeerOptions { unsent_bytes_max: 64 << 20, ..options() });
        pair.asking.is_compressing.set(false);
        pair.listen();
        assert_eq!(pair.ask("echo").await, ok("echo"));
        // Answers stay on the other side; requests still arrive there.
        pair.network.cut(ANSWERS, ASKS);
        let body = "echo".repeat(100_000);
        let ask = |_| pair.peer.ask(100 * PATIENCE, |out| out.extend_from_slice(body.as_bytes()));
        let asked: Vec<Asked> = (0..100).map(ask).map(|asked| asked.expect("short enough")).collect();
        sleep(Duration::from_secs(30)).await;
        let came = pair.service.came.get();
        assert!(came < 50, "{came} requests of 400 kB were taken");
        pair.network.heal(ANSWERS, ASKS);
        for asked in asked {
            assert_eq!(asked.await.map(|answer| answer.len()), Ok(body.len()));
        }
    });
}

/// A frame has room for more than a million requests, each of which may be a task of who answers.
#[test]
fn what_is_under_way_is_bounded_and_the_rest_of_a_frame_comes_later() {
    run(async {
        let pair = Pair::new(PeerOptions { asked_count_max: 5_000, unsent_bytes_max: 16 << 20, ..options() });
        pair.listen();
        pair.ask("echo").await.expect("they talk");
        let asked: Vec<Asked> = (0..3_000).map(|_| pair.asked("hold")).collect();
        let under_way = || pair.service.held.borrow().len();
        for expected in [2_048, 952] {
            sleep(Duration::from_millis(100)).await;
            assert_eq!(under_way(), expected);
            pair.service.held.take().into_iter().for_each(|held| held.answer(|_| {}).expect("short"));
        }
        for asked in asked {
            asked.await.expect("each is answered");
        }
        // Of long ones that is fewer.
        let long = format!("hold{}", "x".repeat(1 << 20));
        let _asked: Vec<Asked> = (0..10).map(|_| pair.asked(&long)).collect();
        sleep(Duration::from_millis(100)).await;
        assert_eq!(under_way(), 4);
    });
}

#[test]
fn a_node_of_another_cluster_is_not_talked_to() {
    run(async {
        let pair = Pair::new(options());
        pair.listen_as(&TestNode::new(2, "Another Cluster"));
        assert_eq!(pair.ask("echo").await, Err(AskError::NotSent));
        let ended = pair.ended.borrow();
        let [PeerError::Meet(MeetError::Handshake(HandshakeError::Refused { reason, .. }))] = &ended[..]
        else {
            panic!("{ended:?}");
        };
        assert_eq!(*reason, Reason::ClusterName);
    });
}

#[test]
fn who_says_nothing_is_given_up() {
    run(async {
        let pair = Pair::new(options());
        let listener =
            pair.network.host(ANSWERS).bind(PORT, 1).expect("free").remove(0).open().expect("listens");
        let _silent = async { listener.accept().await.expect("a connection") };
        assert_eq!(pair.ask("echo").await, Err(AskError::NotSent));
        assert!(matches!(pair.ended.borrow()[..], [PeerError::Meet(MeetError::Silence)]));
    });
}

#[test]
fn an_answer_to_what_nobody_asked_ends_the_connection() {
    run(async {
        let pair = Pair::new(options());
        let listener =
            pair.network.host(ANSWERS).bind(PORT, 1).expect("free").remove(0).open().expect("listens");
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut met = accept(stream, &*pair.answering, &SeededRandom::new(2)).await.expect("they meet");
        let mut encoder = Encoder::new(false);
        encoder.push(Kind::Answer { id: 9 }, |_| {}).expect("short");
        let frame = encoder.seal(pair.answering.context(), Stamp::default()).expect("a message");
        met.channel.write_all(&frame).await.expect("it listens");
        sleep(Duration::from_millis(100)).await;
        assert!(matches!(pair.ended.borrow()[..], [PeerError::Wire(WireError::NotAsked { id: 9 })]));
    });
}
