//! Many requests in flight on several connections: every answer is the one to its request, whichever shard gave it.

#![allow(clippy::disallowed_methods, reason = "clients are outside of the simulated world")]

use std::collections::BTreeMap;
use std::io::Write;

use protocol::{ErrorKind, RequestEnvelope, Response, Version};

use crate::support::{Client, Node, execute};

const CLIENTS: i32 = 6;
const ROWS: i32 = 400;

/// The value of a row: mostly short, sometimes more than what is sent over at once.
fn value(row: i32) -> Vec<u8> {
    let length = if row % 37 == 0 { 90_000 } else { row as usize % 300 };
    vec![b'a' + (row % 26) as u8; length]
}

/// Sends all, and gives back the answers by their streams.
fn all(client: &mut Client, requests: impl Iterator<Item = RequestEnvelope>) -> BTreeMap<i16, Response> {
    let mut count = 0;
    let mut bytes = Vec::new();
    for request in requests {
        bytes.extend(client.encoded(count, request));
        count += 1;
    }
    // Answers are taken while requests are sent, or both sides would wait for each other.
    let mut socket = client.socket();
    let sending = std::thread::spawn(move || socket.write_all(&bytes).expect("write"));
    let answers: BTreeMap<_, _> =
        (0..count).map(|_| client.receive()).map(|(stream, envelope)| (stream, envelope.response)).collect();
    sending.join().expect("sent");
    assert_eq!(answers.len(), count as usize, "every stream is answered once");
    answers
}

fn drive(mut client: Client, first: i32) {
    let insert = client.prepare("INSERT INTO k.t (id, v) VALUES (?, ?)");
    let select = client.prepare("SELECT v FROM k.t WHERE id = ?");
    let rows = || first..first + ROWS;
    let inserts = rows().map(|row| execute(&insert, &[&row.to_be_bytes(), &value(row)]));
    for (stream, answer) in all(&mut client, inserts) {
        assert_eq!(answer, Response::Void, "{stream}");
    }
    // Every fourth is not there.
    let key = |row: i32| if row % 4 == 3 { -row } else { row };
    let selects = rows().map(|row| execute(&select, &[&key(row).to_be_bytes()]));
    for (row, (stream, answer)) in rows().zip(all(&mut client, selects)) {
        let Response::Rows(found) = answer else { panic!("{stream}: {answer:?}") };
        let mut expected = Vec::new();
        if row % 4 != 3 {
            expected.extend_from_slice(&(value(row).len() as u32).to_be_bytes());
            expected.extend_from_slice(&value(row));
        }
        assert_eq!(found.row_count, u32::from(row % 4 != 3), "{row}");
        assert!(found.cells == expected, "the value of {row}");
    }
}

fn all_get_theirs(node: &Node) {
    let mut client = node.client();
    client.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.query("CREATE TABLE k.t (id int PRIMARY KEY, v text)");
    let clients = (0..CLIENTS).map(|number| (node.client(), 1 + number * ROWS));
    let driving: Vec<_> =
        clients.map(|(client, first)| std::thread::spawn(move || drive(client, first))).collect();
    driving.into_iter().for_each(|driven| driven.join().expect("right answers"));
    let count = CLIENTS * ROWS;
    assert_eq!(client.rows("SELECT count(*) FROM k.t"), [count.to_string()]);
}

#[test]
fn every_answer_is_the_one_to_its_request_when_writes_wait_for_the_disk() {
    all_get_theirs(&Node::start());
}

#[test]
fn every_answer_is_the_one_to_its_request_when_they_do_not() {
    let sync = storage::SyncMode::Periodic { period: std::time::Duration::from_secs(10) };
    all_get_theirs(&Node::on_disk(&runtime::MemoryDisk::default(), |options| options.sync = sync));
}

/// Reads of large rows, more than sockets hold, by a client that takes its answers now and then: what was gathered is
/// left over again and again, on this shard and of batches that the other one gave back unseen.
fn take_now_and_then(mut client: Client) {
    const READS: i16 = 3_000;
    let select = client.prepare("SELECT v FROM k.t WHERE id = ?");
    let row = |stream: i16| i32::from(stream) % LARGE_ROWS;
    let requests = (0..READS).flat_map(|stream| {
        let read = execute(&select, &[&row(stream).to_be_bytes()]);
        client.encoded(stream, read)
    });
    let bytes: Vec<u8> = requests.collect();
    let mut socket = client.socket();
    let sending = std::thread::spawn(move || socket.write_all(&bytes).expect("write"));
    for count in 0..READS {
        if count % 500 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        let (stream, envelope) = client.receive();
        let Response::Rows(found) = envelope.response else { panic!("{stream}: {:?}", envelope.response) };
        assert_eq!(found.cells.last(), Some(&large(row(stream))[0]), "the value of {stream}");
    }
    sending.join().expect("sent");
}

const LARGE_ROWS: i32 = 64;

fn large(row: i32) -> Vec<u8> {
    vec![b'0' + row as u8; 6_000]
}

#[test]
fn what_is_left_over_by_a_client_that_takes_slowly_is_answered_with_what_comes() {
    let node = Node::start();
    let mut client = node.client();
    client.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.query("CREATE TABLE k.t (id int PRIMARY KEY, v blob)");
    let insert = client.prepare("INSERT INTO k.t (id, v) VALUES (?, ?)");
    let inserts = (0..LARGE_ROWS).map(|row| execute(&insert, &[&row.to_be_bytes(), &large(row)]));
    all(&mut client, inserts);
    let clients: Vec<_> = (0..CLIENTS).map(|_| node.client()).collect();
    let taking = clients.into_iter().map(|client| std::thread::spawn(move || take_now_and_then(client)));
    let taking: Vec<_> = taking.collect();
    taking.into_iter().for_each(|taken| taken.join().expect("right answers"));
}

/// The second malformed message was taken for one in a row with the first, which closes the connection.
#[test]
fn a_prepared_read_or_write_between_malformed_messages_ends_their_run() {
    let node = Node::start();
    let mut client = node.client_of(Version::V5);
    client.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.query("CREATE TABLE k.t (id int PRIMARY KEY, v text)");
    let insert = client.prepare("INSERT INTO k.t (id, v) VALUES (?, ?)");
    let select = client.prepare("SELECT v FROM k.t WHERE id = ?");
    let key = 1_i32.to_be_bytes();
    let (write, read) = (execute(&insert, &[&key, b"v"]), execute(&select, &[&key]));
    client.send_with_malformed([None, Some(write), None, Some(read), None]);
    let answers: BTreeMap<_, _> = (0..5).map(|_| client.receive()).collect();
    for stream in [0, 2, 4] {
        let Response::Error(error) = &answers[&stream].response else { panic!("{answers:?}") };
        assert_eq!(error.kind, ErrorKind::Protocol);
    }
    assert_eq!(answers[&1].response, Response::Void);
    assert!(matches!(&answers[&3].response, Response::Rows(_)), "{answers:?}");
    client.send_with_malformed([None, None]);
    (0..2).for_each(|_| _ = client.receive());
    assert!(client.is_closed(), "these are two in a row");
}
