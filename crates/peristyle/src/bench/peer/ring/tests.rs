//! Servers that do nothing are hurt, brought back and stopped: what is ours to do, without a database.

use std::path::PathBuf;

use lab::CommitLogSync;

use super::*;
use crate::bench::peer::Peer;
use crate::bench::peer::kind::PeerKind;
use crate::cluster::ProcessId;

fn start(node_count: usize, folder: &std::path::Path) -> Result<Peer, String> {
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/bench/peer/fake_adapter.sh");
    let kind = PeerKind::Adapter { name: "fake".to_owned(), program };
    let sync = CommitLogSync::Periodic;
    let wanted = PeerWish { node_count, memory_bytes: None, commit_log_sync: sync, first_port: 25_000 };
    Peer::start(&kind, &wanted, folder).map_err(|error| error.to_string())
}

fn states(peer: &Peer) -> Vec<ProcessState> {
    peer.0.servers().iter().map(|server| server.process.state()).collect()
}

/// A signal is sent, and done a moment later.
fn wait_for(peer: &Peer, expected: [ProcessState; 2]) {
    let is_so = |_| {
        std::thread::sleep(POLL);
        states(peer) == expected
    };
    assert!((0..2000).any(is_so), "{:?}", states(peer));
}

#[test]
fn servers_are_hurt_and_brought_back_and_leave_nothing() {
    use ProcessState::{Ended, Paused, Running};
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("peer");
    let peer = start(2, &folder).unwrap();
    let (nodes, before) = (peer.nodes(), peer.process_ids());
    assert_eq!(nodes[0].replace("127.0.0.1", "127.0.0.2"), nodes[1]);
    let hand = peer.hand();

    hand.act(Act::Pause(1)).unwrap();
    wait_for(&peer, [Paused, Running]);
    hand.act(Act::Kill(1)).unwrap();
    assert_eq!(states(&peer), [Ended, Running]);
    assert_eq!(hand.act(Act::Kill(1)), Err("node 1 does not run".to_owned()));
    assert_eq!(hand.act(Act::Start(2)), Err("node 2 runs".to_owned()));
    hand.act(Act::Start(1)).unwrap();
    assert_eq!(states(&peer), [Running, Running]);
    assert_eq!((peer.nodes(), peer.process_ids()[1]), (nodes, before[1]));
    assert_ne!(peer.process_ids()[0], before[0]);
    hand.act(Act::Pause(2)).unwrap();
    wait_for(&peer, [Running, Paused]);
    hand.act(Act::Resume(2)).unwrap();
    wait_for(&peer, [Running, Running]);

    hand.act(Act::Cut(2)).unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("data/acts")).unwrap(), "cut 2\n");
    assert_eq!(hand.act(Act::Heal), Err("this adapter knows no 'heal'".to_owned()));
    assert_eq!(hand.act(Act::Pause(3)), Err("there is no node 3, only 1 to 2".to_owned()));

    let last = peer.0.servers();
    drop(peer);
    assert!(last.iter().all(|server| server.process.state() == Ended));
    assert!(!folder.exists());
    assert_eq!(hand.act(Act::Start(1)), Err("all were stopped".to_owned()));
}

#[test]
fn servers_that_do_not_start_leave_nothing_either() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("peer");
    let error = start(9, &folder).unwrap_err();
    assert_eq!(error, "start fake: an adapter tells `HOST:PORT PID` of each node, not 'nonsense'");
    assert!(!folder.exists());
}

#[test]
fn a_process_that_ended_by_itself_is_known_to_have() {
    let parent = tempfile::tempdir().unwrap();
    let peer = start(2, &parent.path().join("peer")).unwrap();
    let first = ProcessId::of(peer.process_ids()[0]).unwrap();
    first.signal(Signal::TERM).unwrap();
    wait_for(&peer, [ProcessState::Ended, ProcessState::Running]);
    assert_eq!(peer.hand().act(Act::Cut(1)), Err("node 1 does not run".to_owned()));
}
