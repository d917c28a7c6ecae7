//! What clients of a ring are told when replicas hang, fail or are gone: errors with counts and names that drivers
//! decide by, and what levels and table options promise then.

#![expect(clippy::expect_used, reason = "a test ends at the first thing that does not go well")]
#![allow(clippy::disallowed_methods, reason = "processes and their clients live in real time")]

mod processes;

use std::time::Instant;

use client::Connection;
use processes::ring::RingOfThree;
use processes::{Node, PATIENCE};
use protocol::{Consistency, ErrorKind, ErrorResponse, FailureReason, QueryParameters};

/// The third part of the addresses of nodes.
const NET: u8 = 84;

/// A ring with a table `k.t` that has three replicas and one `one.t` that has one, and a client of its first node.
fn start(words: &[&str]) -> (RingOfThree, Vec<Node>, Connection) {
    let ring = RingOfThree::new(NET, words);
    let nodes: Vec<Node> = (1..=3).map(|node| ring.start(node)).collect();
    let mut clients: Vec<Connection> = nodes.iter().map(Node::connect).collect();
    let mut first = clients.swap_remove(0);
    for (keyspace, factor) in [("k", 3), ("one", 1)] {
        let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}");
        first.query(&format!("CREATE KEYSPACE {keyspace} WITH replication = {replication}")).expect("made");
        first
            .query(&format!("CREATE TABLE {keyspace}.t (id int, c int, v text, PRIMARY KEY (id, c))"))
            .expect("made");
    }
    (ring, nodes, first)
}

fn at(client: &mut Connection, level: Consistency, text: &str) -> Result<client::Answer, ErrorResponse> {
    let told = client.query_with(text, QueryParameters::at(level));
    told.map_err(|error| error.server().cloned().expect("an answer of the server"))
}

/// Waits until that is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "it does not come to that: {what}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Drivers try again, or not, by how many have answered.
#[test]
fn a_late_answer_says_how_many_replicas_have_answered() {
    // Before the others take a node that hangs to be dead.
    let (ring, nodes, mut first) =
        start(&["--read-request-timeout", "300ms", "--range-request-timeout", "300ms"]);
    for id in 0..4 {
        let text = format!("INSERT INTO k.t (id, c, v) VALUES ({id}, 1, 'v')");
        at(&mut first, Consistency::All, &text).expect("written");
    }
    let texts = [
        "SELECT v FROM k.t WHERE id = 1",
        "SELECT v FROM k.t WHERE id IN (1, 2, 3)",
        "SELECT count(*) FROM k.t",
    ];
    for text in texts {
        let mut late = None;
        until("it is late", || {
            nodes[2].stand_still(true);
            let told = at(&mut first, Consistency::All, text).expect_err("a replica hangs");
            nodes[2].stand_still(false);
            until("it is seen again", || ring.sees(1, 3) == 'U');
            until("all answer again", || at(&mut first, Consistency::All, text).is_ok());
            // On a machine that stands still itself, it may be taken to be dead before.
            late = Some(told).filter(|told| !matches!(told.kind, ErrorKind::Unavailable { .. }));
            late.is_some()
        });
        let late = late.expect("it came to that");
        let consistency = Consistency::All;
        let wanted = ErrorKind::ReadTimeout { consistency, received: 2, block_for: 3, data_present: true };
        assert_eq!(late.kind, wanted, "{text}: {}", late.message);
    }
}

#[test]
fn too_many_tombstones_are_told_with_the_replicas_that_came_upon_them() {
    let (ring, _nodes, mut first) = start(&["--tombstone-failure-threshold", "10"]);
    for c in 0..30 {
        let text = format!("DELETE FROM k.t WHERE id = 1 AND c = {c}");
        at(&mut first, Consistency::All, &text).expect("deleted");
    }
    let failed = at(&mut first, Consistency::All, "SELECT v FROM k.t WHERE id = 1").expect_err("too many");
    let ErrorKind::ReadFailure { consistency, block_for, failures, .. } = &failed.kind else {
        panic!("{failed:?}");
    };
    assert_eq!((*consistency, *block_for), (Consistency::All, 3));
    assert!(!failures.is_empty());
    for (address, reason) in failures {
        assert_eq!(*reason, FailureReason::ReadTooManyTombstones);
        let node = (1..=3).find(|node| ring.address(*node) == *address).expect("one of the nodes");
        let told = format!("READ_TOO_MANY_TOMBSTONES from /{}", ring.storage(node));
        assert!(failed.message.contains(&told), "{}", failed.message);
    }
}

/// It is enough that this node keeps it.
#[test]
fn a_write_at_any_needs_no_replica_that_lives_and_comes_to_those_that_are_back() {
    let (ring, mut nodes, mut first) = start(&[]);
    nodes.truncate(1);
    let insert = |id: i32| format!("INSERT INTO one.t (id, c, v) VALUES ({id}, 1, 'v')");
    until("it is seen that they are gone", || [2, 3].iter().all(|node| ring.sees(1, *node) == 'D'));
    let refused = (0..30).filter(|id| at(&mut first, Consistency::One, &insert(*id)).is_err()).count();
    assert!(refused > 0, "of some partition the one replica is gone");
    for id in 0..30 {
        at(&mut first, Consistency::Any, &insert(id)).expect("it is kept here");
    }
    let batch = format!("BEGIN BATCH {}; {}; APPLY BATCH", insert(30), insert(31));
    at(&mut first, Consistency::Any, &batch).expect("it is kept here");
    nodes.extend([2, 3].map(|node| ring.start(node)));
    let mut second = nodes[1].connect();
    nodes[2].connect();
    until("all of it is there", || {
        let counted = at(&mut second, Consistency::One, "SELECT count(*) FROM one.t");
        let counted = counted.ok().and_then(|answer| answer.rows().ok());
        counted
            .and_then(|rows| rows.rows[0][0].clone())
            .is_some_and(|count| count[..] == 32_i64.to_be_bytes())
    });
}

/// Two other nodes are to keep it, and one says nothing.
#[test]
fn a_logged_batch_does_not_wait_for_a_node_that_hangs() {
    let (_ring, nodes, mut first) = start(&[]);
    let insert = |id: i32| format!("INSERT INTO k.t (id, c, v) VALUES ({id}, 1, 'v')");
    nodes[2].stand_still(true);
    let batch = format!("BEGIN BATCH {}; {}; APPLY BATCH", insert(1), insert(2));
    let written = at(&mut first, Consistency::Quorum, &batch);
    nodes[2].stand_still(false);
    written.expect("two nodes have it");
    let counted = at(&mut first, Consistency::Quorum, "SELECT count(*) FROM k.t").expect("an answer");
    assert_eq!(counted.rows().expect("rows").rows[0][0].as_deref(), Some(&2_i64.to_be_bytes()[..]));
}

#[test]
fn a_ring_refuses_change_data_capture() {
    let (_ring, _nodes, mut first) = start(&[]);
    for text in ["CREATE TABLE k.c (id int PRIMARY KEY) WITH cdc = true", "ALTER TABLE k.t WITH cdc = true"] {
        let refused = at(&mut first, Consistency::One, text).expect_err("it would do nothing");
        assert_eq!(refused.message, "cdc = true is not supported in a ring yet");
    }
}

/// The first room of an answer without pages is 16 KiB, of which the keys that are read at once have a share each: less
/// than some of these rows take. Some partitions have nothing, some a static row alone, some several rows.
#[test]
fn a_long_list_of_keys_is_answered_whole() {
    let (_ring, _nodes, mut first) = start(&[]);
    let (keys, mut expected) = (0..100, Vec::new());
    for keyspace in ["k", "one"] {
        let columns = "id int, s text STATIC, c int, v text, PRIMARY KEY (id, c)";
        first.query(&format!("CREATE TABLE {keyspace}.wide ({columns})")).expect("made");
    }
    for id in keys.clone() {
        let (row_count, bytes) = if id % 10 == 9 { (2, 12_000) } else { ([1, 1, 0, 3][id % 4], 300) };
        let value = "v".repeat(bytes);
        let rows =
            (0..row_count).map(|c| format!("INSERT INTO KS.wide (id, c, v) VALUES ({id}, {c}, '{value}')"));
        let alone = (id % 8 == 6).then(|| format!("INSERT INTO KS.wide (id, s) VALUES ({id}, 's')"));
        for insert in rows.chain(alone) {
            expected.push(id);
            at(&mut first, Consistency::All, &insert.replace("KS", "k")).expect("written");
            at(&mut first, Consistency::One, &insert.replace("KS", "one")).expect("written");
        }
    }
    let list = keys.map(|id| id.to_string()).collect::<Vec<_>>().join(", ");
    // Of the second the node that is asked has all rows, of the third some.
    let cases = [("k", Consistency::Quorum), ("k", Consistency::One), ("one", Consistency::One)];
    for (keyspace, level) in cases {
        let select = format!("SELECT id, s, c, v FROM {keyspace}.wide WHERE id IN ({list})");
        for page_size in [None, Some(1), Some(7), Some(1000)] {
            let (mut ids, mut paging_state) = (Vec::new(), None);
            loop {
                let parameters = QueryParameters { page_size, paging_state, ..QueryParameters::at(level) };
                let answer = first.query_with(&select, parameters).expect("read");
                let answer = answer.rows().expect("rows");
                paging_state = answer.paging_state;
                ids.extend(answer.rows.iter().map(|row| row[0].clone().expect("an id")));
                if paging_state.is_none() {
                    break;
                }
            }
            let ids: Vec<usize> = ids
                .iter()
                .map(|id| u32::from_be_bytes(id[..].try_into().expect("an int")) as usize)
                .collect();
            assert_eq!(ids, expected, "{keyspace} at {level:?}, pages of {page_size:?}");
        }
    }
}
