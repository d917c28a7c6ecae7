//! Clients that are let go while the node runs, and let in again.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use protocol::Response;
use storage::SyncMode;

use crate::support::{Client, Node, request};

/// Each write is under way for so long.
const WINDOW: Duration = Duration::from_millis(300);

#[test]
fn clients_are_let_go_when_their_requests_have_ended_and_are_let_in_again() {
    let node =
        Node::try_with(|options| options.storage.sync = SyncMode::Group { window: WINDOW }).expect("a node");
    let mut writer = node.client();
    let mut reader = node.client();
    writer.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    writer.query("CREATE TABLE k.t (id int PRIMARY KEY)");
    let listen = node.server().listen();
    writer.send(7, request("INSERT INTO k.t (id) VALUES (1)").into());
    // What was sent after it is answered: the write is under way.
    assert_eq!(reader.rows("SELECT key FROM system.local").len(), 1);
    assert_eq!(node.post("/v1/native_transport", r#"{"enabled": false}"#).0, 200);
    let (stream, answer) = writer.receive();
    assert!(matches!((stream, answer.response), (7, Response::Void)), "it was carried out to its end");
    assert!(writer.is_closed() && reader.is_closed());
    assert!(TcpStream::connect(listen).is_err(), "nobody listens");
    assert_eq!(node.get("/v1/info").1["native_transport_active"], false);
    assert_eq!(node.get("/v1/info").1["connection_count"], 0);
    // Twice is as good as once, both ways.
    assert_eq!(node.post("/v1/native_transport", r#"{"enabled": false}"#).0, 200);
    for _ in 0..2 {
        assert_eq!(node.post("/v1/native_transport", r#"{"enabled": true}"#).0, 200);
    }
    assert_eq!(node.server().listen(), listen);
    assert_eq!(node.client().rows("SELECT id FROM k.t").len(), 1);
    assert_eq!(node.get("/v1/info").1["native_transport_active"], true);
}

/// Always has requests in flight, until the node closes the connection; those of its writes that were answered.
fn writes_until_let_go(mut client: Client, first: i32, answered_count: &AtomicUsize) -> Vec<i32> {
    const IN_FLIGHT: i32 = 50;
    let mut socket = client.socket();
    let mut in_flight: Vec<Option<i32>> = vec![None; IN_FLIGHT as usize];
    let mut answered = Vec::new();
    let mut is_open = true;
    for id in first..first + 1_000_000 {
        let stream = (id % IN_FLIGHT) as usize;
        while in_flight[stream].is_some() {
            let Some((stream, answer)) = client.receive_or_end() else { return answered };
            assert!(matches!(answer.response, Response::Void), "no request fails: {answer:?}");
            answered.extend(in_flight[stream as usize].take());
            answered_count.store(answered.len(), Ordering::Relaxed);
        }
        // A node that goes may have closed already; what it answered before is still to come.
        let text = format!("INSERT INTO k.t (id) VALUES ({id})");
        let bytes = client.encoded(stream as i16, request(&text).into());
        is_open = is_open && socket.write_all(&bytes).is_ok();
        in_flight[stream] = Some(id);
    }
    panic!("the node lets nobody go");
}

#[test]
fn clients_with_much_in_flight_are_answered_what_was_begun_and_let_go() {
    let node = Node::start();
    let mut first = node.client();
    first.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    first.query("CREATE TABLE k.t (id int PRIMARY KEY)");
    let counts = [const { AtomicUsize::new(0) }; 4];
    let answered: Vec<Vec<i32>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..)
            .zip(&counts)
            .map(|(writer, count)| {
                let client = node.client();
                scope.spawn(move || writes_until_let_go(client, writer * 1_000_000, count))
            })
            .collect();
        while counts.iter().any(|count| count.load(Ordering::Relaxed) < 100) {
            std::thread::yield_now();
        }
        assert_eq!(node.post("/v1/native_transport", r#"{"enabled": false}"#).0, 200);
        writers.into_iter().map(|writer| writer.join().expect("it was let go")).collect()
    });
    assert_eq!(node.post("/v1/native_transport", r#"{"enabled": true}"#).0, 200);
    let mut again = node.client();
    // What was carried out was answered, and nothing else was.
    let count = again.rows("SELECT COUNT(*) FROM k.t")[0].parse::<usize>().expect("a count");
    assert_eq!(count, answered.iter().map(Vec::len).sum::<usize>());
    for id in answered.iter().flat_map(|answered| answered.last()) {
        assert_eq!(again.rows(&format!("SELECT id FROM k.t WHERE id = {id}")), [id.to_string()]);
    }
}

#[test]
fn an_address_that_somebody_else_has_taken_meanwhile_is_told() {
    let node = Node::start();
    let listen = node.server().listen();
    assert_eq!(node.post("/v1/native_transport", r#"{"enabled": false}"#).0, 200);
    let other = std::net::TcpListener::bind(listen).expect("it is free");
    let (status, refused) = node.post("/v1/native_transport", r#"{"enabled": true}"#);
    assert_eq!(status, 409);
    assert!(refused["error"].as_str().expect("words").contains("can not be listened on"), "{refused}");
    drop(other);
    assert_eq!(node.post("/v1/native_transport", r#"{"enabled": true}"#).0, 200);
    node.client();
}

#[test]
fn a_drained_node_lets_no_clients_in_and_a_lone_one_has_nobody_to_tell() {
    let node = Node::start();
    let mut client = node.client();
    let (status, refused) = node.post("/v1/gossip", r#"{"enabled": false}"#);
    assert_eq!((status, refused["error"].as_str()), (409, Some("this node is in no ring")));
    assert_eq!(node.post("/v1/gossip", r#"{"enabled": "no"}"#).0, 400);
    assert_eq!(node.post("/v1/drain", "").0, 200);
    let (status, refused) = node.post("/v1/native_transport", r#"{"enabled": true}"#);
    let words = "Unable to start native transport because the node was drained.";
    assert_eq!((status, refused["error"].as_str()), (409, Some(words)));
    assert_eq!(client.rows("SELECT key FROM system.local").len(), 1, "who is connected is served on");
    assert_eq!(node.post("/v1/native_transport", r#"{"enabled": false}"#).0, 200);
    assert!(client.is_closed());
}
