//! Clients that are let go while the node runs, and let in again.

use std::net::TcpStream;
use std::time::Duration;

use protocol::Response;
use storage::SyncMode;

use crate::support::{Node, request};

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
