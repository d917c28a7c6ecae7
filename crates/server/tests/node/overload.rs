//! More than the node has memory for: it reads no further, and everybody is answered in the end.

use std::collections::BTreeSet;
use std::time::Duration;

use protocol::{ErrorKind, Response};
use server::Limits;

use crate::support::{Client, Node, request};

const KIB: usize = 1 << 10;
/// What a node may hold beyond its budget: for each of its two shards the answer that did not fit any more and
/// the requests of a turn.
const SLACK_BYTES: u64 = 2 * 128 * (KIB as u64);

fn small_node(in_flight_kibibytes: usize) -> Node {
    // However slow the machine is.
    node_that_waits(in_flight_kibibytes, Duration::MAX)
}

fn node_that_waits(in_flight_kibibytes: usize, request_wait: Duration) -> Node {
    let in_flight_bytes = in_flight_kibibytes * KIB;
    let node = Node::with_limits(Limits {
        in_flight_bytes,
        request_wait,
        stall: Duration::MAX,
        ..Limits::default()
    });
    let mut client = node.client();
    for text in [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (id int PRIMARY KEY, v text)",
    ] {
        client.query(text);
    }
    node
}

fn insert(id: usize, bytes: usize) -> protocol::RequestEnvelope {
    request(&format!("INSERT INTO k.t (id, v) VALUES ({id}, '{}')", "x".repeat(bytes))).into()
}

fn receive_all(client: &mut Client, count: i16) -> Vec<Response> {
    let mut streams = BTreeSet::new();
    let answers = (0..count).map(|_| {
        let (stream, answer) = client.receive();
        streams.insert(stream);
        answer.response
    });
    let answers = answers.collect();
    assert_eq!(streams, (0..count).collect(), "every stream is answered once");
    answers
}

/// How many requests of a client the node has taken.
fn taken(asker: &mut Client, client: &Client) -> usize {
    let text = format!(
        "SELECT request_count FROM system_views.clients WHERE address = '127.0.0.1' AND port = {}",
        client.address().port()
    );
    asker.rows(&text)[0].parse().expect("a number")
}

#[test]
fn a_client_that_does_not_read_is_no_longer_read_and_others_are_served() {
    const COUNT: i16 = 2_000;
    let node = small_node(1024);
    let mut asker = node.client();
    asker.query(&format!("INSERT INTO k.t (id, v) VALUES (1, '{}')", "y".repeat(64 * KIB)));
    let mut lazy = node.client();
    for stream in 0..COUNT {
        lazy.send(stream, request("SELECT v FROM k.t WHERE id = 1").into());
    }
    // Until no more is taken: what the sockets hold depends on the machine, 128 MiB is more than that.
    let mut last = 0;
    let mut unchanged = 0;
    while unchanged < 20 {
        let now = taken(&mut asker, &lazy);
        unchanged = if now == last { unchanged + 1 } else { 0 };
        last = now;
        // How large a client's answers are going to be is learnt from those before: so its first requests may be
        // expected to need less than they do.
        let held = node.held_bytes();
        assert!(held <= 1536 * KIB as u64, "{held} bytes are held");
        assert_eq!(asker.rows("SELECT id FROM k.t WHERE id = 1"), ["1"]);
        std::thread::yield_now();
    }
    assert!(last < COUNT as usize, "all {last} were taken although nothing is read");
    assert!(node.held_bytes() > 0, "the answers that wait are counted");
    for answer in receive_all(&mut lazy, COUNT) {
        assert!(matches!(answer, Response::Rows(_)), "{answer:?}");
    }
    node.await_nothing_held();
}

#[test]
fn many_clients_share_a_small_budget_and_all_are_answered() {
    const COUNT: i16 = 200;
    let node = small_node(256);
    let mut clients: Vec<Client> = (0..20).map(|_| node.client()).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        for stream in 0..COUNT {
            client.send(stream, insert(index * 1000 + stream as usize, KIB));
        }
        assert!(node.held_bytes() <= 256 * KIB as u64 + SLACK_BYTES);
    }
    for client in &mut clients {
        for answer in receive_all(client, COUNT) {
            assert_eq!(answer, Response::Void);
        }
        assert!(node.held_bytes() <= 256 * KIB as u64 + SLACK_BYTES);
    }
    node.await_nothing_held();
    assert_eq!(node.client().rows("SELECT count(*) FROM k.t"), [(20 * i32::from(COUNT)).to_string()]);
}

#[test]
fn frames_larger_than_the_budget_are_taken_one_after_another() {
    let node = small_node(64);
    let mut clients: Vec<Client> = (0..4).map(|_| node.client()).collect();
    let large: Vec<Vec<u8>> =
        clients.iter_mut().enumerate().map(|(id, client)| client.encoded(0, insert(id, 200 * KIB))).collect();
    // All begin, none ends.
    for (client, bytes) in clients.iter_mut().zip(&large) {
        client.send_bytes(&bytes[..60 * KIB]);
    }
    let mut asker = node.client();
    for _ in 0..20 {
        assert_eq!(asker.rows("SELECT key FROM system.local"), ["local"]);
    }
    // The last first: whoever has its room must not be waited for by those who have all they need.
    let rest = |client: &mut Client, bytes: &[u8]| client.send_bytes(&bytes[60 * KIB..]);
    for (client, bytes) in clients.iter_mut().zip(&large).rev() {
        rest(client, bytes);
    }
    for client in &mut clients {
        assert_eq!(receive_all(client, 1), [Response::Void]);
    }
    assert_eq!(asker.rows("SELECT count(*) FROM k.t"), ["4"]);
    node.await_nothing_held();
}

fn is_refusal(answer: &Response) -> bool {
    matches!(answer, Response::Error(error) if error.kind == ErrorKind::Overloaded)
}

#[test]
fn what_has_waited_too_long_is_answered_unread_and_the_connection_goes_on() {
    const COUNT: i16 = 10_000;
    let node = node_that_waits(8 * KIB, Duration::from_nanos(1));
    let mut client = node.client();
    let bytes: Vec<u8> =
        (0..COUNT).flat_map(|stream| client.encoded(stream, insert(stream as usize, 10))).collect();
    client.send_bytes(&bytes);
    let answers = receive_all(&mut client, COUNT);
    let refused = answers.iter().filter(|answer| is_refusal(answer)).count();
    assert!(answers.iter().all(|answer| is_refusal(answer) || *answer == Response::Void));
    let written = client.rows("SELECT count(*) FROM k.t");
    assert_eq!(written, [(COUNT as usize - refused).to_string()], "what was refused was not carried out");
    let counted = node.get("/v1/info").1["requests"]["overloaded_count"].as_u64();
    assert_eq!(counted, Some(refused as u64));
    assert_eq!(client.query("INSERT INTO k.t (id, v) VALUES (1, 'a')"), Response::Void);
}

#[test]
fn a_client_that_asks_for_it_is_refused_instead() {
    const COUNT: i16 = 500;
    for (options, may_refuse) in [(&[("THROW_ON_OVERLOAD", "1")][..], true), (&[][..], false)] {
        let node = small_node(48);
        let mut client = node.client_with(options);
        let bytes: Vec<u8> =
            (0..COUNT).flat_map(|stream| client.encoded(stream, insert(stream as usize, 10))).collect();
        client.send_bytes(&bytes);
        let answers = receive_all(&mut client, COUNT);
        let refused = answers.iter().filter(|answer| is_refusal(answer)).count();
        assert!(answers.iter().all(|answer| is_refusal(answer) || *answer == Response::Void), "{answers:?}");
        assert_eq!(refused > 0, may_refuse, "{refused} of {COUNT}");
        let counted = node.get("/v1/info").1["requests"]["overloaded_count"].as_u64();
        assert_eq!(counted, Some(refused as u64));
    }
}
