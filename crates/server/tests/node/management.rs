//! The management port tells and does what `docs/internals/management.md` says.

use serde_json::json;

use super::support::Node;
use protocol::Response;

fn with_table() -> Node {
    let node = Node::start();
    let mut client = node.client();
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client.query(&format!("CREATE KEYSPACE k WITH replication = {replication}"));
    client.query("CREATE TABLE k.t (a int PRIMARY KEY, b text)");
    for key in 0..20 {
        let written = client.query(&format!("INSERT INTO k.t (a, b) VALUES ({key}, 'value')"));
        assert!(matches!(written, Response::Void), "{written:?}");
    }
    node
}

#[test]
fn a_node_tells_who_it_is() {
    let node = Node::start();
    let (status, version) = node.get("/v1/version");
    assert_eq!((status, &version["release_version"]), (200, &json!("5.0.9")));
    let (_, info) = node.get("/v1/info");
    assert_eq!(info["data_center"], json!("datacenter1"));
    assert_eq!(info["tokens"].as_array().map(Vec::len), Some(16));
    assert_eq!((&info["shard_count"], &info["draining"]), (&json!(2), &json!(false)));
    assert!(info["memory_used_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20));
    let (_, ring) = node.get("/v1/status");
    let member = &ring["nodes"][0];
    assert_eq!((&member["host_id"], &member["owns"]), (&info["host_id"], &json!(1.0)));
    assert_eq!((&member["state"], &ring["note"]), (&json!("normal"), &json!(null)));
}

#[test]
fn a_node_is_the_same_after_a_restart() {
    let node = Node::start();
    let (_, before) = node.get("/v1/info");
    let node = node.restart();
    let (_, after) = node.get("/v1/info");
    assert_eq!((&before["host_id"], &before["tokens"]), (&after["host_id"], &after["tokens"]));
}

#[test]
fn statistics_count_over_all_shards() {
    let node = with_table();
    node.client().rows("SELECT * FROM k.t WHERE a = 1");
    let (status, stats) = node.get("/v1/tablestats?keyspace=k");
    assert_eq!(status, 200);
    let (keyspace, table) = (&stats["keyspaces"][0], &stats["keyspaces"][0]["tables"][0]);
    assert_eq!((&keyspace["name"], &table["name"]), (&json!("k"), &json!("t")));
    assert_eq!((&keyspace["write_count"], &keyspace["read_count"]), (&json!(20), &json!(1)));
    assert_eq!((&table["write_count"], &table["partition_count_estimate"]), (&json!(20), &json!(20)));
    assert_eq!(table["sstable_count"], json!(0));
    let (_, everything) = node.get("/v1/tablestats");
    let names: Vec<_> =
        everything["keyspaces"].as_array().expect("keyspaces").iter().map(|of| &of["name"]).collect();
    assert_eq!(names, ["k", "system", "system_auth", "system_distributed", "system_schema", "system_traces"]);
    let (_, metrics) = node.get("/metrics");
    let metrics = metrics.as_str().expect("text").to_owned();
    assert!(metrics.contains("peristyle_table_writes_total{keyspace=\"k\",table=\"t\"} 20\n"), "{metrics}");
}

#[test]
fn flush_writes_memtables_out_and_compact_makes_few_files_of_many() {
    let node = with_table();
    assert_eq!(
        node.post("/v1/flush", r#"{"keyspace": "k", "tables": ["t"]}"#),
        (200, json!({"table_count": 1}))
    );
    let table =
        |node: &Node| node.get("/v1/tablestats?keyspace=k&table=t").1["keyspaces"][0]["tables"][0].clone();
    let flushed = table(&node);
    assert_eq!((&flushed["memtable_bytes"], &flushed["sstable_count"]), (&json!(0), &json!(2)));
    assert!(flushed["space_live_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    node.client().query("INSERT INTO k.t (a, b) VALUES (1, 'newer')");
    assert_eq!(node.post("/v1/flush", "").0, 200);
    assert_eq!(table(&node)["sstable_count"], json!(3));
    assert_eq!(node.post("/v1/compact", r#"{"keyspace": "k"}"#), (200, json!({"table_count": 1})));
    assert_eq!(table(&node)["sstable_count"], json!(2));
    assert_eq!(node.client().rows("SELECT b FROM k.t WHERE a = 1"), ["newer"]);
}

#[test]
fn what_is_wrong_is_told_in_a_json_object() {
    let node = Node::start();
    let missing_keyspace = json!({"error": "Keyspace [nope] does not exist."});
    assert_eq!(node.get("/v1/tablestats?keyspace=nope"), (404, missing_keyspace.clone()));
    assert_eq!(node.get("/v1/status?keyspace=nope"), (404, missing_keyspace.clone()));
    assert_eq!(node.post("/v1/flush", r#"{"keyspace": "nope"}"#), (404, missing_keyspace));
    let missing_table = json!({"error": "Unknown keyspace/cf pair (system.nope)"});
    assert_eq!(
        node.post("/v1/compact", r#"{"keyspace": "system", "tables": ["nope"]}"#),
        (404, missing_table)
    );
    assert_eq!(node.get("/v1/nothing").0, 404);
    assert_eq!(node.get("/v1/flush").0, 400);
    assert_eq!(node.post("/v1/flush", "{").0, 400);
    assert_eq!(node.post("/v1/flush", r#"{"keyspace": 1}"#).0, 400);
}

#[test]
fn web_pages_are_refused() {
    let node = Node::start();
    let request = "POST /v1/drain HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://example.org\r\nContent-Length: 0\r\n\
                   Connection: close\r\n\r\n";
    assert_eq!(node.http(request), (403, json!({"error": "not for web pages"})));
    assert_eq!(node.get("/v1/info").1["draining"], json!(false));
}

#[test]
fn a_drained_node_refuses_writes_and_connections_and_still_answers() {
    let node = with_table();
    let mut client = node.client();
    assert_eq!(node.post("/v1/drain", ""), (200, json!({})));
    assert_eq!(node.post("/v1/drain", ""), (200, json!({})));
    let (_, info) = node.get("/v1/info");
    assert_eq!((&info["draining"], &info["native_transport_active"]), (&json!(true), &json!(false)));
    let (_, stats) = node.get("/v1/tablestats?keyspace=k");
    assert_eq!(stats["keyspaces"][0]["tables"][0]["memtable_bytes"], json!(0));
    assert_eq!(node.post("/v1/flush", "").0, 409);
    assert_eq!(client.rows("SELECT b FROM k.t WHERE a = 7"), ["value"]);
    let refused = client.query("INSERT INTO k.t (a, b) VALUES (100, 'late')");
    assert!(matches!(refused, Response::Error(_)), "{refused:?}");
    let node = node.restart();
    assert_eq!(node.client().rows("SELECT COUNT(*) FROM k.t"), ["20"]);
}
