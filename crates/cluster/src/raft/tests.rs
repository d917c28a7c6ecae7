//! A few nodes that agree, on disks and a network in memory, in paused time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use messaging::{Context, Established, Identity, Node, accept, answer};
use runtime::memory_disk::{Fault, Operation};
use runtime::network::memory::MemoryNetworkOptions;
use runtime::{Disk, Io, MemoryDisk, MemoryNetwork, Network, Runtime};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::{
    Agreement, AgreementError, AgreementOptions, Answers, Ended, Machine, OpenError, Standing, Timing,
};

/// Keeps all commands, each with its index; also that of a later version, if it is of that version.
#[derive(Default)]
struct Notes(Vec<(u64, Vec<u8>)>, bool);

impl Machine for Notes {
    fn apply(&mut self, index: u64, command: &[u8]) -> Result<Bytes, String> {
        if command == b"of a later version" && !self.1 {
            return Err("it is of a later version".to_owned());
        }
        self.0.push((index, command.to_vec()));
        Ok(Bytes::from(format!("note {}", self.0.len())))
    }

    fn listens_to(&self, node: Uuid) -> bool {
        node != STRANGER
    }

    fn may_be_proposed(&self, command: &[u8]) -> Result<(), String> {
        match command {
            b"unknown" => Err("nobody knows it".to_owned()),
            _ => Ok(()),
        }
    }

    fn snapshot(&self) -> Bytes {
        let text = self.0.iter().map(|(index, note)| format!("{index} {}\n", String::from_utf8_lossy(note)));
        Bytes::from(text.collect::<String>())
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(snapshot).map_err(|error| error.to_string())?;
        let line = |line: &str| {
            let (index, note) = line.split_once(' ')?;
            Some((index.parse().ok()?, note.as_bytes().to_vec()))
        };
        self.0 = text.lines().map(line).collect::<Option<_>>().ok_or("no note")?;
        Ok(())
    }
}

/// Nobody listens to the tenth node.
const STRANGER: Uuid = Uuid::from_u128(10);

struct Me(Uuid);

impl Node for Me {
    fn identity(&self) -> Identity {
        Identity {
            cluster_name: "Test Cluster".to_owned(),
            cluster_id: None,
            host_id: self.0,
            incarnation: 1,
            shard_count: 1,
            wants_compression: false,
            secret: None,
        }
    }

    fn context(&self) -> Context {
        Context { clock_micros: 0, schema_epoch: 0, ring_epoch: 0 }
    }

    fn heard(&self, _from: &Established, _context: Context) {}
}

/// A node that runs.
struct Running {
    agreement: Agreement<Notes>,
    ended: Rc<RefCell<Option<Result<(), Ended>>>>,
    listener: JoinHandle<()>,
}

struct Ring {
    network: MemoryNetwork,
    disks: Vec<MemoryDisk>,
    snapshot_entry_count: u64,
    next_command: Cell<u128>,
}

fn id(node: usize) -> Uuid {
    Uuid::from_u128(node as u128 + 1)
}

fn host(node: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, u8::try_from(node + 1).expect("a few")))
}

fn address(node: usize) -> SocketAddr {
    SocketAddr::new(host(node), 7000)
}

impl Ring {
    fn new(node_count: usize) -> Ring {
        Ring {
            network: MemoryNetwork::new(5, MemoryNetworkOptions::default()),
            disks: (0..node_count).map(|_| MemoryDisk::new()).collect(),
            snapshot_entry_count: 1000,
            next_command: Cell::new(0),
        }
    }

    fn runtime(&self, node: usize) -> Runtime {
        let disk = Arc::new(self.disks[node].clone());
        Runtime {
            network: self.network.host(host(node)),
            io: Io::delayed(Duration::from_millis(2)),
            ..Runtime::in_memory(disk, node as u64)
        }
    }

    async fn open(&self, node: usize) -> Result<Agreement<Notes>, OpenError> {
        let options = AgreementOptions {
            node: id(node),
            address: address(node),
            directory: PathBuf::from("/node/agreement"),
            timing: Timing::default(),
            snapshot_entry_count: self.snapshot_entry_count,
        };
        let me: Rc<dyn Node> = Rc::new(Me(id(node)));
        Agreement::start(options, &self.runtime(node), me, Notes::default()).await
    }

    async fn start(&self, node: usize) -> Running {
        let agreement = self.open(node).await.unwrap_or_else(|error| panic!("{error}"));
        let ended: Rc<RefCell<Option<Result<(), Ended>>>> = Rc::default();
        let (told, watched) = (Rc::clone(&ended), agreement.clone());
        spawn_local(async move {
            let outcome = watched.run().await;
            *told.borrow_mut() = Some(outcome);
        });
        let service = Rc::new(Answers::new(agreement.clone()));
        let listener =
            spawn_local(listen(self.network.host(host(node)), address(node), Rc::new(Me(id(node))), service));
        Running { agreement, ended, listener }
    }

    /// So many nodes, all voters; the first founded it.
    async fn of_voters(&self) -> Vec<Running> {
        let mut nodes = Vec::new();
        for node in 0..self.disks.len() {
            nodes.push(self.start(node).await);
        }
        let founder = &nodes[0].agreement;
        founder.found().await.expect("it was in nothing");
        for node in 1..nodes.len() {
            founder.add_learner(id(node), address(node)).await.expect("added");
            while founder.make_voter(id(node)).await == Err(AgreementError::Behind { node: id(node) }) {
                sleep(Duration::from_millis(20)).await;
            }
        }
        assert_eq!(founder.standing().voters, (0..nodes.len()).map(id).collect());
        nodes
    }

    async fn propose(&self, node: &Running, note: &str) -> Result<Bytes, AgreementError> {
        self.next_command.set(self.next_command.get() + 1);
        let id = Uuid::from_u128(self.next_command.get());
        node.agreement.propose(id, Bytes::copy_from_slice(note.as_bytes())).await
    }
}

async fn listen(network: Network, address: SocketAddr, me: Rc<dyn Node>, service: Rc<Answers<Notes>>) {
    let listener =
        network.bind(address, 1).expect("nobody else is there").remove(0).open().expect("it listens");
    let random = runtime::SeededRandom::new(7);
    while let Ok((stream, _)) = listener.accept().await {
        if let Ok(met) = accept(stream, &*me, &random).await {
            spawn_local(answer(met, Rc::clone(&me), service.clone()));
        }
    }
}

impl Running {
    async fn notes(&self) -> Vec<String> {
        self.agreement.catch_up().await.expect("it catches up");
        self.agreement.look(|notes| {
            notes.0.iter().map(|(_, note)| String::from_utf8_lossy(note).into_owned()).collect()
        })
    }

    fn standing(&self) -> Standing {
        self.agreement.standing()
    }

    async fn stop(self) {
        self.agreement.stop().await;
        self.listener.abort();
        // Tasks that hold its disk or port end.
        sleep(Duration::from_millis(100)).await;
        assert_eq!(*self.ended.borrow(), Some(Ok(())), "run tells that it was stopped");
    }
}

/// Runs on one thread with paused time, as the simulator does.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let bounded = async { timeout(Duration::from_secs(3600), test).await.expect("it ends") };
    LocalSet::new().block_on(&runtime.expect("a runtime"), bounded);
}

#[test]
fn a_lone_node_founds_and_goes_on_after_a_restart() {
    run(async {
        let ring = Ring::new(1);
        let node = ring.start(0).await;
        assert_eq!(ring.propose(&node, "too early").await, Err(AgreementError::NoLeader));
        node.agreement.found().await.expect("founded");
        assert_eq!(node.agreement.found().await, Err(AgreementError::Founded));
        assert_eq!(ring.propose(&node, "one").await, Ok(Bytes::from("note 1")));
        node.stop().await;
        let begun = Instant::now();
        let node = ring.start(0).await;
        assert_eq!(node.notes().await, ["one"]);
        assert!(begun.elapsed() < Duration::from_millis(50), "{:?}", begun.elapsed());
        assert_eq!(ring.propose(&node, "two").await, Ok(Bytes::from("note 2")));
    });
}

#[test]
fn three_nodes_agree_through_any_of_them() {
    run(async {
        let ring = Ring::new(3);
        let nodes = ring.of_voters().await;
        for (number, node) in nodes.iter().enumerate() {
            let answer = ring.propose(node, &number.to_string()).await;
            assert_eq!(answer, Ok(Bytes::from(format!("note {}", number + 1))));
        }
        for node in &nodes {
            assert_eq!(node.notes().await, ["0", "1", "2"]);
        }
    });
}

#[test]
fn what_somebody_proposes_to_whom_nobody_listens_is_not_done() {
    run(async {
        let ring = Ring::new(10);
        let (founder, stranger) = (ring.start(0).await, ring.start(9).await);
        founder.agreement.found().await.expect("founded");
        founder.agreement.add_learner(STRANGER, address(9)).await.expect("it hears who leads");
        assert_eq!(ring.propose(&stranger, "mine").await, Err(AgreementError::NoLeader));
        let added = stranger.agreement.add_learner(id(5), address(5)).await;
        assert_eq!(added, Err(AgreementError::NoLeader));
        assert_eq!(founder.standing().learners, [STRANGER].into());
        assert!(stranger.notes().await.is_empty(), "it may read");
    });
}

#[test]
fn a_command_that_is_proposed_twice_is_applied_once() {
    run(async {
        let ring = Ring::new(3);
        let nodes = ring.of_voters().await;
        let (id, note) = (Uuid::from_u128(77), Bytes::from("once"));
        for node in nodes.iter().chain(&nodes) {
            assert_eq!(node.agreement.propose(id, note.clone()).await, Ok(Bytes::from("note 1")));
        }
        assert_eq!(nodes[2].notes().await, ["once"]);
    });
}

#[test]
fn another_node_leads_when_the_leader_is_gone_and_it_comes_back_as_a_follower() {
    run(async {
        let ring = Ring::new(3);
        let mut nodes = ring.of_voters().await;
        ring.propose(&nodes[0], "before").await.expect("agreed");
        let leader = nodes.remove(0);
        assert_eq!(leader.standing().leader, Some(id(0)));
        leader.stop().await;
        ring.propose(&nodes[0], "while it was gone").await.expect("two of three agree");
        let back = ring.start(0).await;
        assert_eq!(back.notes().await, ["before", "while it was gone"]);
        assert_ne!(back.standing().leader, Some(id(0)));
    });
}

#[test]
fn a_leader_without_a_majority_agrees_to_nothing() {
    run(async {
        let ring = Ring::new(3);
        let nodes = ring.of_voters().await;
        for other in 1..3 {
            ring.network.cut(host(0), host(other));
            ring.network.cut(host(other), host(0));
        }
        let (alone, others) =
            tokio::join!(ring.propose(&nodes[0], "alone"), ring.propose(&nodes[1], "together"),);
        assert_eq!(alone, Err(AgreementError::InDoubt));
        others.expect("two of three agree");
        assert!(nodes[0].agreement.catch_up().await.is_err(), "what it shows may be old");
        for other in 1..3 {
            ring.network.heal(host(0), host(other));
            ring.network.heal(host(other), host(0));
        }
        assert_eq!(nodes[0].notes().await, ["together"]);
    });
}

#[test]
fn who_comes_late_gets_a_snapshot_and_the_rest() {
    run(async {
        let ring = Ring { snapshot_entry_count: 20, ..Ring::new(3) };
        let nodes = ring.of_voters().await;
        nodes[0].agreement.remove(id(2)).await.expect("removed");
        // Longer than a piece of a snapshot.
        let notes: Vec<String> = (0..50).map(|number| format!("{number}").repeat(10_000)).collect();
        for note in &notes {
            ring.propose(&nodes[1], note).await.expect("agreed");
        }
        let late = Ring { disks: vec![MemoryDisk::new(); 4], network: ring.network.clone(), ..Ring::new(0) };
        let late = late.start(3).await;
        nodes[1].agreement.add_learner(id(3), address(3)).await.expect("added");
        while late.standing().leader.is_none() {
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(late.notes().await, notes);
        assert!(late.standing().learners.contains(&id(3)));
    });
}

#[test]
fn a_snapshot_and_a_purged_log_survive_a_restart() {
    run(async {
        let ring = Ring { snapshot_entry_count: 20, ..Ring::new(1) };
        let node = ring.start(0).await;
        node.agreement.found().await.expect("founded");
        let notes: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        for note in &notes {
            ring.propose(&node, note).await.expect("agreed");
        }
        node.stop().await;
        let node = ring.start(0).await;
        assert_eq!(node.notes().await, notes);
        assert_eq!(
            node.agreement.propose(Uuid::from_u128(90), Bytes::new()).await,
            Ok(Bytes::from("note 90"))
        );
        assert!(ring.disks[0].used_bytes() < 20_000, "{} bytes", ring.disks[0].used_bytes());
    });
}

#[test]
fn leadership_goes_to_another_voter_only() {
    run(async {
        let ring = Ring::new(3);
        let nodes = ring.of_voters().await;
        nodes[0].agreement.remove(id(2)).await.expect("removed");
        nodes[0].agreement.add_learner(Uuid::from_u128(50), address(40)).await.expect("it need not live");
        for node in [Uuid::from_u128(50), Uuid::from_u128(51), id(2)] {
            let refused = nodes[1].agreement.hand_over(node).await;
            assert_eq!(refused, Err(AgreementError::NotMember { node }));
        }
        ring.propose(&nodes[0], "it leads still").await.expect("agreed");
        nodes[0].agreement.hand_over(id(1)).await.expect("it has the log");
        assert_eq!(nodes[0].standing().leader, Some(id(1)));
        ring.propose(&nodes[0], "under the other").await.expect("agreed");
        assert_eq!(nodes[1].notes().await, ["it leads still", "under the other"]);
    });
}

#[test]
fn a_change_of_voters_that_its_leader_did_not_finish_is_finished_by_the_next_one() {
    run(async {
        let ring = Ring::new(4);
        let mut nodes = ring.of_voters().await;
        nodes[0].agreement.remove(id(3)).await.expect("removed");
        let all: BTreeSet<Uuid> = (0..4).map(id).collect();
        nodes[0].agreement.add_learner(id(3), address(3)).await.expect("added");
        let leader = nodes[0].agreement.clone();
        let changing = spawn_local(async move {
            while leader.make_voter(id(3)).await.is_err() {
                sleep(Duration::from_millis(5)).await;
            }
        });
        while nodes[1].standing().next_voters.is_none() {
            sleep(Duration::from_micros(100)).await;
        }
        changing.abort();
        nodes.remove(0).stop().await;
        ring.propose(&nodes[0], "both sets have a majority").await.expect("agreed");
        let leader = nodes[0].standing().leader.expect("somebody leads");
        let leader = nodes.iter().find(|node| node.agreement.me() == leader).expect("it lives");
        let next = leader.standing().next_voters;
        assert_eq!(next, Some(all.clone()), "nobody has finished it by himself");
        leader.agreement.finish_change().await.expect("it leads");
        assert_eq!((leader.standing().next_voters, leader.standing().voters), (None, all));
        leader.agreement.finish_change().await.expect("there is nothing to finish");
    });
}

#[test]
fn the_last_voter_stays_and_who_has_no_log_does_not_vote() {
    run(async {
        let ring = Ring::new(1);
        let node = ring.start(0).await;
        node.agreement.found().await.expect("founded");
        assert_eq!(node.agreement.remove(id(0)).await, Err(AgreementError::LastVoter));
        node.agreement.add_learner(id(1), address(1)).await.expect("it need not live");
        assert_eq!(node.agreement.make_voter(id(1)).await, Err(AgreementError::Behind { node: id(1) }));
        ring.propose(&node, "alone still").await.expect("agreed");
    });
}

#[test]
fn a_disk_that_fails_ends_it_and_nothing_more_is_acknowledged() {
    run(async {
        let ring = Ring::new(3);
        let nodes = ring.of_voters().await;
        ring.disks[0].faults().fail_all(Some(Operation::Sync), Fault::InputOutput);
        let outcome = ring.propose(&nodes[0], "in doubt").await;
        assert_eq!(outcome, Err(AgreementError::Ended));
        sleep(Duration::from_millis(10)).await;
        assert!(matches!(&*nodes[0].ended.borrow(), Some(Err(_))), "{:?}", nodes[0].ended);
        ring.propose(&nodes[1], "without it").await.expect("two of three agree");
        assert!(nodes[2].notes().await.contains(&"without it".to_owned()));
    });
}

#[test]
fn a_node_that_was_cut_off_deposes_nobody_when_it_comes_back() {
    run(async {
        let ring = Ring::new(3);
        let nodes = ring.of_voters().await;
        let term = nodes[0].standing().term;
        for other in 0..2 {
            ring.network.cut(host(2), host(other));
            ring.network.cut(host(other), host(2));
        }
        sleep(Duration::from_secs(20)).await;
        for other in 0..2 {
            ring.network.heal(host(2), host(other));
            ring.network.heal(host(other), host(2));
        }
        ring.propose(&nodes[2], "back").await.expect("agreed");
        sleep(Duration::from_secs(10)).await;
        assert_eq!((nodes[2].standing().leader, nodes[2].standing().term), (Some(id(0)), term));
    });
}

/// Its heartbeats renewed the promise of who heard it, and so nobody else was ever elected (openraft#2080).
#[test]
fn a_leader_that_reaches_too_few_gives_way() {
    run(async {
        let ring = Ring::new(5);
        let mut nodes = ring.of_voters().await;
        nodes.remove(4).stop().await;
        for other in 2..4 {
            ring.network.cut(host(0), host(other));
            ring.network.cut(host(other), host(0));
        }
        let begun = Instant::now();
        while ring.propose(&nodes[2], "without the leader").await.is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody else leads");
        }
        assert_ne!(nodes[1].standing().leader, Some(id(0)));
    });
}

#[test]
fn what_does_not_fit_one_message_goes_in_several() {
    run(async {
        let ring = Ring::new(3);
        let nodes = ring.of_voters().await;
        ring.network.cut(host(0), host(2));
        let notes: Vec<String> = (0..5).map(|number| number.to_string().repeat(700_000)).collect();
        for note in &notes {
            ring.propose(&nodes[0], note).await.expect("two of three agree");
        }
        ring.network.heal(host(0), host(2));
        assert_eq!(nodes[2].notes().await, notes);
        let bytes = super::COMMAND_BYTES_MAX + 1;
        let refused = nodes[0].agreement.propose(id(90), Bytes::from(vec![0; bytes])).await;
        assert_eq!(refused, Err(AgreementError::TooLong { bytes: bytes as u64 }));
    });
}

#[test]
fn a_log_or_a_snapshot_that_is_gone_is_told() {
    run(async {
        for gone in ["raft.log", "raft.snapshot"] {
            let ring = Ring { snapshot_entry_count: 20, ..Ring::new(1) };
            let node = ring.start(0).await;
            node.agreement.found().await.expect("founded");
            for number in 0..50 {
                ring.propose(&node, &number.to_string()).await.expect("agreed");
            }
            node.stop().await;
            let path = Path::new("/node/agreement").join(gone);
            ring.disks[0].remove_file(&path).expect("it was there");
            for _ in 0..2 {
                let opened = ring.open(0).await;
                assert!(matches!(opened, Err(OpenError::Damaged { path: told, .. }) if told == path));
            }
        }
    });
}
