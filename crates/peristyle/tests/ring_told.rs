//! What the nodes of a real ring tell of each other: steps of a trace, loads, where clients reach them, what became of
//! messages, statements that took long.

#![expect(clippy::expect_used, reason = "a test ends at the first thing that does not go well")]
#![allow(clippy::disallowed_methods, reason = "processes and their clients live in real time")]

mod processes;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use client::Connection;
use processes::ring::RingOfThree;
use processes::{Node, PATIENCE};
use protocol::{Consistency, Query, QueryParameters, Request, RequestEnvelope, Text};

/// The third part of the addresses of nodes.
const NET: u8 = 85;

/// Where clients are told that a node is.
fn told(node: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 9, node)
}

/// The bytes of the first column, of all rows there are on all replicas.
fn column(connection: &mut Connection, text: &str) -> Vec<Vec<u8>> {
    let answer = connection.query_with(text, QueryParameters::at(Consistency::All)).expect("an answer");
    let rows = answer.rows().expect("rows").rows;
    rows.into_iter().map(|row| row[0].clone().expect("a value").to_vec()).collect()
}

#[test]
fn nodes_of_a_ring_tell_of_each_other() {
    let ring = RingOfThree::new(NET, &["--slow-query-log-timeout", "1us"]);
    let start = |node| ring.start_with(node, &["--broadcast-rpc-address", &told(node).to_string()]);
    let nodes: Vec<Node> = (1..=3).map(start).collect();
    let mut connection = nodes[0].connect();
    nodes[1..].iter().for_each(|node| drop(node.connect()));
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    connection.query(&format!("CREATE KEYSPACE k WITH replication = {replication}")).expect("a keyspace");
    connection.query("CREATE TABLE k.t (id int PRIMARY KEY, v text)").expect("a table");

    // All nodes are in a trace.
    let parameters = QueryParameters::at(Consistency::All);
    let insert = Query { query: Text::from("INSERT INTO k.t (id, v) VALUES (7, 'slow')"), parameters };
    let traced = RequestEnvelope { tracing: true, ..Request::Query(insert).into() };
    let answer = connection.call(traced).expect("an answer").checked().expect("it is written");
    let id = answer.envelope.tracing_id.expect("a trace");
    let sources =
        column(&mut connection, &format!("SELECT source FROM system_traces.events WHERE session_id = {id}"));
    let all: BTreeSet<Vec<u8>> = (1..=3).map(|node| vec![127, 0, NET, node]).collect();
    assert_eq!(sources.into_iter().collect::<BTreeSet<_>>(), all);

    // It took longer than a microsecond.
    let line = nodes[0].says("VALUES (7, 'slow')");
    assert!(line.contains("a statement took long") && line.contains("ALL"), "{line}");

    // Clients are told where others are to be reached.
    let mut peers = column(&mut connection, "SELECT native_address FROM system.peers_v2");
    peers.sort();
    assert_eq!(peers, [told(2), told(3)].map(|address| address.octets().to_vec()));

    let end = Instant::now() + PATIENCE;
    while ring.nodetool(1, "status").contains('?') {
        assert!(Instant::now() < end, "loads are not told: {}", ring.nodetool(1, "status"));
        std::thread::sleep(Duration::from_millis(100));
    }
    let sent = column(&mut connection, "SELECT sent_count FROM system_views.internode_outbound");
    assert!(sent.len() == 2 && sent.iter().all(|count| *count > 0i64.to_be_bytes().to_vec()), "{sent:?}");
    assert_eq!(column(&mut connection, "SELECT load FROM system_views.gossip_info").len(), 3);
    assert!(ring.nodetool(1, "tpstats").contains("\nReplica messages"));
}
