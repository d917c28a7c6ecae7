//! Who is let in, and how much all connections together may hold.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use runtime::network::memory::MemoryNetworkOptions;
use runtime::{MemoryNetwork, SeededRandom};
use tokio::time::sleep;
use uuid::Uuid;

use super::tests::{ANSWERS, ASKS, PORT, Pair, TestNode, ok, options, run};
use super::*;
use crate::{Encoder, Kind, Purpose, Stamp};

/// What the gate did: connections by shard, and who was refused.
#[derive(Default)]
struct Gate {
    handed: RefCell<Vec<Option<u16>>>,
    refused: RefCell<Vec<MeetError>>,
}

impl Pair {
    fn keep_gate(&self) -> Rc<Gate> {
        let listener =
            self.network.host(ANSWERS).bind(PORT, 1).expect("free").remove(0).open().expect("listens");
        let gate: Rc<Gate> = Rc::default();
        let (node, service) = (self.answering.clone(), self.service.clone());
        let (handed, refused) = (gate.clone(), gate.clone());
        let hand_over = move |connection: Handed| {
            handed.handed.borrow_mut().push(connection.shard());
            let met = connection.take().expect("it is in memory");
            tokio::task::spawn_local(answer(met, node.clone(), service.clone()));
        };
        let told = move |_, error| refused.refused.borrow_mut().push(error);
        let random = Arc::new(SeededRandom::new(2));
        tokio::task::spawn_local(keep_gate(listener, self.answering.clone(), random, hand_over, told));
        gate
    }
}

#[test]
fn the_gate_hands_each_connection_to_its_shard() {
    run(async {
        let pair = Pair::new(options());
        let gate = pair.keep_gate();
        assert_eq!(pair.ask("echo").await, ok("echo"));
        assert_eq!(*gate.handed.borrow(), [Some(0)]);
        let urgent = Pair::new_on(&pair.network, PeerOptions { purpose: Purpose::Urgent, ..options() });
        assert_eq!(urgent.ask("echo").await, ok("echo"));
        assert_eq!(*gate.handed.borrow(), [Some(0), None]);
    });
}

#[test]
fn strangers_who_say_nothing_keep_nobody_out() {
    for host in [3, 1] {
        run(async {
            let pair = Pair::new(PeerOptions { address: SocketAddr::new(ANSWERS, 1), ..options() });
            let gate = pair.keep_gate();
            // One of them comes from where the node is.
            let strangers = pair.network.host(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)));
            let mut silent = Vec::new();
            for _ in 0..1000 {
                silent.push(strangers.connect(PORT).await.expect("it is taken"));
            }
            let other = Pair::new_on(&pair.network, options());
            assert_eq!(other.ask("echo").await, ok("echo"), "at once");
            let count = |is: fn(&MeetError) -> bool| gate.refused.borrow().iter().filter(|it| is(it)).count();
            let sent_away = count(MeetError::is_for_want_of_room);
            assert!((700..=750).contains(&sent_away), "{sent_away} had to go for others");
            assert_eq!(pair.answering.bounds().guests.refused(), sent_away as u64);
            sleep(Duration::from_secs(3)).await;
            assert_eq!(count(|error| matches!(error, MeetError::Silence)), 1000 - sent_away);
        });
    }
}

#[test]
fn no_more_are_let_in_than_may_be_until_one_goes() {
    run(async {
        let pair = Pair::new(options());
        pair.answering.bounds.borrow_mut().guests = Guests::new(10, 2);
        let gate = pair.keep_gate();
        assert_eq!(pair.ask("echo").await, ok("echo"));
        let second = Pair::new_on(&pair.network, options());
        assert_eq!(second.ask("echo").await, ok("echo"));
        let third = Pair::new_on(&pair.network, options());
        assert!(third.ask("echo").await.is_err());
        assert!(matches!(gate.refused.borrow()[..], [MeetError::Crowded { count: 2, of_address: 2 }]));
        // Both of that address lose theirs; who comes first is let in again.
        pair.network.reset(ASKS, ANSWERS);
        sleep(Duration::from_secs(5)).await;
        let mut answered = 0;
        for pair in [&pair, &second, &third] {
            answered += usize::from(pair.ask("echo").await.is_ok());
        }
        assert_eq!((answered, pair.answering.bounds().guests.count()), (2, 2));
    });
}

#[test]
fn what_waits_for_one_that_takes_nothing_leaves_room_for_others() {
    run(async {
        let (asking, room) = (TestNode::new(1, "Test Cluster"), Room::new(4 << 20));
        asking.is_compressing.set(false);
        asking.bounds.borrow_mut().room = room.clone();
        let network = MemoryNetwork::new(3, MemoryNetworkOptions::default());
        let pair = Pair::of(&network, &asking, PeerOptions { unsent_bytes_max: 64 << 20, ..options() });
        pair.listen();
        assert_eq!(pair.ask("echo").await, ok("echo"));
        pair.network.cut(ASKS, ANSWERS);
        let body = "hold".repeat(25_000);
        let mut taken = Vec::new();
        while pair.peer.is_reachable() {
            taken.push(pair.asked(&body));
            sleep(Duration::from_millis(1)).await;
        }
        assert!(pair.peer.is_crowded());
        let held = room.held_bytes();
        assert!(((2 << 20)..(2 << 20) + 2 * body.len()).contains(&held), "{held} bytes: half of all");
        assert_eq!((pair.ask("echo").await, room.turned_away()), (Err(AskError::NotSent), 1));
        pair.network.heal(ASKS, ANSWERS);
        pair.came(1 + taken.len()).await;
        assert!(pair.peer.is_reachable() && !pair.peer.is_crowded());
        assert_eq!(room.held_bytes(), 0);
    });
}

/// What one who answers holds: requests that are under way, and answers that nobody takes.
#[test]
fn who_answers_takes_no_more_than_there_is_room_for() {
    run(async {
        let pair = Pair::new(PeerOptions { unsent_bytes_max: 64 << 20, ..options() });
        pair.answering.bounds.borrow_mut().room = Room::new(1 << 20);
        let room = pair.answering.bounds().room;
        pair.listen();
        assert_eq!(pair.ask("echo").await, ok("echo"));
        let asked: Vec<Asked> = (0..900).map(|_| pair.asked("hold")).collect();
        sleep(Duration::from_millis(100)).await;
        let held = room.held_bytes();
        assert!(((1 << 19)..(1 << 19) + (16 << 10)).contains(&held), "{held} bytes: half of all");
        while pair.service.came.get() < 901 {
            let held = pair.service.held.take();
            held.into_iter().for_each(|held| held.answer(|_| {}).expect("short"));
            sleep(Duration::from_millis(10)).await;
        }
        pair.service.held.take().into_iter().for_each(|held| held.answer(|_| {}).expect("short"));
        for asked in asked {
            asked.await.expect("each is answered");
        }
        sleep(Duration::from_millis(100)).await;
        assert_eq!(room.held_bytes(), 0);
    });
}

/// A frame of which all but the end comes, as often as anybody wants.
#[test]
fn long_frames_that_do_not_end_are_bounded_and_given_up() {
    run(async {
        let pair = Pair::new(options());
        pair.answering.bounds.borrow_mut().room = Room::new(2 << 20);
        let room = pair.answering.bounds().room;
        let gate = pair.keep_gate();
        let mut encoder = Encoder::new(false);
        let request = Kind::Request { id: 0, patience: Duration::from_secs(1) };
        encoder.push(request, |out| out.extend_from_slice(&[7; 8 << 20])).expect("as long as may be");
        let frame = encoder.seal(pair.asking.context(), Stamp::default()).expect("a message");
        for _ in 0..8 {
            let frame = frame.clone();
            let mut met = stranger(&pair).await;
            tokio::task::spawn_local(async move {
                _ = met.channel.write_all(&frame[..frame.len() - 1]).await;
                sleep(Duration::from_secs(100)).await;
            });
        }
        sleep(Duration::from_secs(10)).await;
        let held = room.held_bytes();
        let one_frame_and_the_room = (8 << 20) + (2 << 20) + 8 * (1 << 20);
        assert!((8 << 20..one_frame_and_the_room).contains(&held), "{held} bytes");
        assert_eq!(pair.ask("echo").await, ok("echo"), "who says little is heard");
        sleep(Duration::from_secs(25)).await;
        assert_eq!((room.held_bytes(), gate.refused.borrow().len()), (0, 0));
        // One that comes whole has its turn beyond the room.
        let long = format!("echo{}", "x".repeat(5 << 20));
        assert_eq!(pair.ask(&long).await.map(|answer| answer.len()), Ok(long.len()));
    });
}

/// Talks like a node as far as the handshake goes.
async fn stranger(pair: &Pair) -> Met {
    let stream = pair.network.host(ASKS).connect(PORT).await.expect("it listens");
    let node = TestNode::new(9, "Test Cluster");
    node.is_compressing.set(false);
    let wanted = meeting::Wanted {
        address: ANSWERS,
        host_id: Some(Uuid::from_u128(2)),
        purpose: Purpose::Urgent,
        must_encrypt: false,
    };
    meeting::connect(stream, &*node, wanted, &SeededRandom::new(9)).await.expect("it is let in")
}
