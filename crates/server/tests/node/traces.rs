//! A traced request leaves a session and its events.

use protocol::{RequestEnvelope, Response};

use super::management::with_table;
use super::support::{Client, Node, execute, request};

/// Runs a statement traced: its answer, and the trace's id.
pub(crate) fn traced(client: &mut Client, text: &str) -> (Response, String) {
    let answer = client.call(RequestEnvelope { tracing: true, ..request(text).into() });
    let id = answer.tracing_id.expect("a trace");
    (answer.response, id.to_string())
}

fn activities(client: &mut Client, id: &str) -> Vec<String> {
    client.rows(&format!("SELECT activity FROM system_traces.events WHERE session_id = {id}"))
}

#[test]
fn a_traced_write_tells_what_the_shard_did() {
    let node = Node::start();
    let mut client = node.client();
    let insert = "INSERT INTO system_auth.role_members (role, member) VALUES ('a', 'b')";
    let (answer, id) = traced(&mut client, insert);
    assert!(matches!(answer, Response::Void), "{answer:?}");
    let expected = [
        format!("Parsing {insert}"),
        "Preparing statement".into(),
        "Determining replicas for mutation".into(),
        "Appending to commitlog".into(),
        "Adding to role_members memtable".into(),
    ];
    assert_eq!(activities(&mut client, &id), expected);
    let session = client.rows(&format!(
        "SELECT command, request, client, coordinator_port, parameters FROM system_traces.sessions WHERE session_id = {id}"
    ));
    let parameters = format!(
        "{{'consistency_level': 'ONE', 'query': '{}', 'serial_consistency_level': 'SERIAL'}}",
        insert.replace('\'', "''")
    );
    assert_eq!(session, [format!("QUERY|Execute CQL3 query|127.0.0.1|7000|{parameters}")]);
}

#[test]
fn every_shard_that_was_asked_is_in_the_trace() {
    let node = Node::start();
    let mut client = node.client();
    let (_, id) = traced(&mut client, "SELECT * FROM system_auth.roles");
    let threads = client.rows(&format!("SELECT thread FROM system_traces.events WHERE session_id = {id}"));
    // A shard that sleeps is read on the asking thread, so which names are here is chance.
    assert!(threads.iter().all(|thread| ["shard-0", "shard-1"].contains(&thread.as_str())), "{threads:?}");
    let reads = activities(&mut client, &id).iter().filter(|what| what.starts_with("Read ")).count();
    assert_eq!(reads, 2);
}

#[test]
fn an_error_is_traced_too_and_requests_without_the_flag_are_not() {
    let node = Node::start();
    let mut client = node.client();
    let (answer, id) = traced(&mut client, "SELECT nope FROM system.local");
    assert!(matches!(answer, Response::Error(_)), "{answer:?}");
    let session = format!("SELECT request FROM system_traces.sessions WHERE session_id = {id}");
    assert_eq!(client.rows(&session), ["Execute CQL3 query"]);
    let untraced = client.call(request("SELECT key FROM system.local").into());
    assert_eq!(untraced.tracing_id, None);
    assert_eq!(client.rows("SELECT COUNT(*) FROM system_traces.sessions"), ["1"]);
}

#[test]
fn the_node_traces_some_requests_by_itself_and_does_not_tell_their_clients() {
    let node = with_table();
    let mut client = node.client();
    let prepared = client.prepare("SELECT b FROM k.t WHERE a = ?");
    let sessions = |client: &mut Client| client.rows("SELECT parameters FROM system_traces.sessions").len();
    assert_eq!(sessions(&mut client), 0);
    assert_eq!(node.post("/v1/tracing", r#"{"chance": 1.0}"#).0, 200);
    let answer = client.call(request("SELECT key FROM system.local").into());
    assert_eq!(answer.tracing_id, None, "it has not asked");
    // A plain one, too.
    assert_eq!(client.call(execute(&prepared, &[&7i32.to_be_bytes()])).tracing_id, None);
    assert_eq!(node.post("/v1/tracing", r#"{"chance": 0.0}"#).0, 200);
    assert_eq!(sessions(&mut client), 2);
    assert_eq!(node.post("/v1/tracing", r#"{"chance": 1.5}"#).0, 400);
}
