//! Real nodes of a ring on which an operator acts: they let their clients go, are taken to be down, are repaired. What
//! drivers are told, and that no request fails elsewhere.

#![expect(clippy::expect_used, reason = "a test ends at the first thing that does not go well")]
#![allow(clippy::disallowed_methods, reason = "processes and their clients live in real time")]

mod processes;

use std::ffi::OsStr;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use client::Connection;
use processes::ring::RingOfThree;
use processes::{Node, PATIENCE};
use protocol::{Consistency, Event, EventKind, QueryParameters, Request, StatusChangeKind};

/// The third part of the addresses of nodes.
const NET: u8 = 83;
const REPAIRED_NET: u8 = 86;

/// A client that hears of nodes that go up and down.
struct Listening(Connection);

impl Listening {
    fn on(mut connection: Connection) -> Listening {
        connection.call(Request::Register(vec![EventKind::StatusChange])).expect("registered");
        connection.take_events();
        Listening(connection)
    }

    /// Waits until it has heard that; events come with answers.
    #[track_caller]
    fn hears(&mut self, wanted: StatusChangeKind, of: SocketAddr) {
        let end = std::time::Instant::now() + PATIENCE;
        while std::time::Instant::now() < end {
            self.0.query("SELECT key FROM system.local").expect("an answer");
            let is_it = |event: &Event| match event {
                Event::StatusChange { change, node } => *change == wanted && *node == of,
                _ => false,
            };
            if self.0.take_events().iter().any(is_it) {
                return;
            }
        }
        panic!("{of} is not told to be {wanted:?}");
    }

    /// Writes at QUORUM; none may fail.
    #[track_caller]
    fn writes(&mut self, ids: std::ops::Range<i32>) {
        for id in ids {
            let parameters = QueryParameters::at(Consistency::Quorum);
            let text = format!("INSERT INTO k.t (id, v) VALUES ({id}, 'v')");
            self.0.query_with(&text, parameters).expect("no request fails");
        }
    }
}

fn is_over(connection: &mut Connection) -> bool {
    connection.query("SELECT key FROM system.local").is_err()
}

#[test]
fn a_node_lets_its_clients_go_and_is_taken_to_be_down_and_comes_back() {
    let ring = RingOfThree::new(NET, &[]);
    let mut nodes: Vec<Node> = (1..=3).map(|node| ring.start(node)).collect();
    let mut first = nodes[0].connect();
    let mut clients: Vec<Connection> = nodes[1..].iter().map(Node::connect).collect();
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    first.query(&format!("CREATE KEYSPACE k WITH replication = {replication}")).expect("a keyspace");
    first.query("CREATE TABLE k.t (id int PRIMARY KEY, v text)").expect("a table");
    let mut first = Listening::on(first);
    let (second, third) = (ring.clients(2), ring.clients(3));
    assert_eq!([ring.nodetool(2, "statusbinary"), ring.nodetool(2, "statusgossip")], ["running\n"; 2]);

    // Its clients go, and drivers elsewhere are told; it is a replica all the same.
    assert_eq!(ring.nodetool(2, "disablebinary"), "");
    assert!(is_over(&mut clients[0]) && TcpStream::connect(second).is_err());
    assert_eq!(ring.nodetool(2, "statusbinary"), "not running\n");
    first.hears(StatusChangeKind::Down, second);
    assert_eq!(ring.sees(1, 2), 'U');
    first.writes(0..100);
    assert_eq!(ring.nodetool(2, "enablebinary"), "");
    assert_eq!(ring.nodetool(2, "enablebinary"), "", "it is on already");
    first.hears(StatusChangeKind::Up, second);
    TcpStream::connect(second).expect("it listens again");
    assert_eq!(ring.nodetool(2, "statusbinary"), "running\n");

    // It says that it is not there: nobody asks it, and its own clients are served.
    assert_eq!(ring.nodetool(3, "disablegossip"), "");
    assert_eq!(ring.nodetool(3, "statusgossip"), "not running\n");
    first.hears(StatusChangeKind::Down, third);
    assert_eq!([ring.sees(1, 3), ring.sees(2, 3), ring.sees(3, 1)], ['D', 'D', 'U']);
    first.writes(100..200);
    assert!(!is_over(&mut clients[1]));
    assert_eq!(ring.nodetool(3, "enablegossip"), "");
    first.hears(StatusChangeKind::Up, third);
    assert_eq!(ring.sees(1, 3), 'U');

    // Drained in the midst of writes at another node: the others are told before it refuses anything.
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| first.writes(200..4_000));
        assert_eq!(ring.nodetool(3, "drain"), "");
        writing.join().expect("no request has failed");
    });
    first.hears(StatusChangeKind::Down, third);
    assert_eq!([ring.sees(1, 3), ring.sees(3, 1)], ['D', 'U']);
    first.writes(4_000..4_100);
    // What it missed is sent to it when it is there again.
    drop(nodes.pop());
    let third_again = ring.start(3);
    let mut again = third_again.connect();
    first.hears(StatusChangeKind::Up, third);
    let mut count = || {
        let counted = again.query("SELECT COUNT(*) FROM k.t").expect("an answer").rows().expect("rows");
        counted.rows[0][0].clone().expect("a count")
    };
    let end = std::time::Instant::now() + PATIENCE;
    while count()[..] != 4_100_i64.to_be_bytes() {
        assert!(std::time::Instant::now() < end, "what it missed has not come");
    }
}

/// What a repair has mended, by the line that tells it.
fn mended(told: &str) -> u32 {
    let (_, behind) = told.split_once("partitions mended: ").expect("it is told");
    behind.split(';').next().and_then(|count| count.parse().ok()).expect("a number")
}

#[test]
fn a_repair_is_of_the_part_of_the_ring_and_the_replicas_that_are_named() {
    let ring = RingOfThree::new(REPAIRED_NET, &[]);
    let mut nodes: Vec<Node> = (1..=3).map(|node| ring.start(node)).collect();
    let mut first = nodes.iter().map(Node::connect).collect::<Vec<Connection>>().swap_remove(0);
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    first.query(&format!("CREATE KEYSPACE k WITH replication = {replication}")).expect("a keyspace");
    first.query("CREATE TABLE k.t (id int PRIMARY KEY, v text)").expect("a table");
    // What the third one misses is marked nowhere, so that a repair alone brings it.
    (1..=2).for_each(|node| drop(ring.nodetool(node, "disablehandoff")));
    let mut first = Listening::on(first);
    drop(nodes.pop());
    first.hears(StatusChangeKind::Down, ring.clients(3));
    first.writes(0..50);
    let refused = |words: &str| {
        let output = ring.run_nodetool(1, words);
        assert!(!output.status.success(), "{words}");
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text")).concat()
    };
    assert!(refused("repair k t").contains("3 required, 2 alive"), "one does not live");
    let forced = ring.nodetool(1, "repair -force k t");
    assert_eq!(mended(&forced), 0, "those that live have it");
    assert!(
        forced.contains("Not all replicas were compared: ") && !forced.contains("Pages compared: 0"),
        "{forced}"
    );
    nodes.push(ring.start(3));
    first.hears(StatusChangeKind::Up, ring.clients(3));

    let [here, second, third] = [1, 2, 3].map(|node| ring.address(node));
    assert!(refused(&format!("repair -hosts {second},{third} k")).contains("The current host must be part"));
    assert!(refused("repair -dc nowhere k").contains("data center(s) [nowhere] not found"));
    let of_two = ring.nodetool(1, &format!("repair -hosts {here} -hosts {second} k t"));
    assert_eq!(mended(&of_two), 0, "the third one is not meant");
    assert!(!of_two.contains("Pages compared: 0"), "{of_two}");
    let part = mended(&ring.nodetool(1, "repair -st 0 -et -9223372036854775808 k t"));
    assert!((1..50).contains(&part), "{part} of 50 lie behind token 0");
    let local = mended(&ring.nodetool(1, "repair -full -seq -local k t"));
    assert_eq!(part + local, 50, "the rest");
    assert_eq!(mended(&ring.nodetool(1, "repair k t")), 0);
}

/// The directory of a table on a node.
fn table_directory(root: &Path, table: &str) -> PathBuf {
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("it can be read") {
            let path = entry.expect("it can be read").path();
            if path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(table)) {
                return path;
            }
            if path.is_dir() {
                directories.push(path);
            }
        }
    }
    panic!("there is no table {table} in {}", root.display());
}

#[test]
fn a_node_whose_disk_fails_is_taken_to_be_down() {
    let ring = RingOfThree::new(NET, &[]);
    let nodes: Vec<Node> = (1..=3).map(|node| ring.start(node)).collect();
    let mut first = nodes[0].connect();
    nodes[1..].iter().for_each(|node| drop(node.connect()));
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    first.query(&format!("CREATE KEYSPACE k WITH replication = {replication}")).expect("a keyspace");
    first.query("CREATE TABLE k.t (id int PRIMARY KEY, v text)").expect("a table");
    let mut first = Listening::on(first);
    first.writes(0..100);
    assert!(ring.run_nodetool(3, "flush").status.success());
    first.writes(100..200);
    // What is to be flushed next finds no directory.
    let directory = table_directory(&ring.data_directory(3), "t-");
    std::fs::remove_dir_all(&directory).expect("it is there");
    std::fs::write(&directory, b"").expect("written");
    assert!(!ring.run_nodetool(3, "flush").status.success());
    first.hears(StatusChangeKind::Down, ring.clients(3));
    assert_eq!([ring.sees(1, 3), ring.sees(2, 3)], ['D', 'D']);
    first.writes(200..300);
    assert!(!ring.run_nodetool(3, "enablegossip").status.success(), "its disk has failed");
}
