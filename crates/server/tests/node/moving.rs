//! Data moves in and out of a node over its management port.

use std::path::Path;

use serde_json::{Value, json};

use super::support::Node;

fn with_keyspace() -> Node {
    let node = Node::start();
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    node.client().query(&format!("CREATE KEYSPACE k WITH replication = {replication}"));
    node
}

/// Keys and values of a table of the fixture `compound`, as Cassandra's own dump of it tells them.
fn dumped(folder: &Path) -> Vec<String> {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a fixture") {
        let path = entry.expect("an entry").path();
        if !path.to_string_lossy().ends_with("-dump.json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("read");
        let partitions: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        for partition in &partitions {
            let key = partition["partition"]["key"].as_array().expect("a key");
            let key: Vec<&str> = key.iter().filter_map(Value::as_str).collect();
            rows.push(format!("{}|{}", key.join("|"), partition["rows"][0]["cells"][0]["value"]));
        }
    }
    rows.sort();
    rows
}

#[test]
fn tables_of_cassandra_are_imported_read_compacted_and_kept() {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats/cassandra-big");
    let node = with_keyspace();
    for version in ["nb", "oa"] {
        let folder = formats.join(version).join("compound");
        let create =
            format!("CREATE TABLE k.{version} (a int, b text, c uuid, v int, PRIMARY KEY ((a, b, c)))");
        node.client().query(&create);
        let body = json!({
            "keyspace": "k", "table": version, "directories": [folder.display().to_string()], "copy_data": true,
        });
        let (status, done) = node.post("/v1/import", &body.to_string());
        assert_eq!((status, &done["failed"], &done["file_count"]), (200, &json!([]), &json!(1)), "{done}");
    }
    let check = |node: &Node| {
        for version in ["nb", "oa"] {
            let mut rows = node.client().rows(&format!("SELECT a, b, c, v FROM k.{version}"));
            rows.sort();
            assert_eq!(rows, dumped(&formats.join(version).join("compound")));
        }
    };
    check(&node);
    let node = node.restart();
    check(&node);
    assert_eq!(node.post("/v1/compact", r#"{"keyspace": "k"}"#).0, 200);
    let (_, stats) = node.get("/v1/tablestats?keyspace=k&table=nb");
    assert_eq!(stats["keyspaces"][0]["tables"][0]["old_sstable_count"], json!(0));
    check(&node.restart());
}

#[test]
fn what_only_a_snapshot_holds_is_counted_for_its_table() {
    let node = with_keyspace();
    node.client().query("CREATE TABLE k.t (a int PRIMARY KEY, b text)");
    (0..20).for_each(|key| drop(node.client().query(&format!("INSERT INTO k.t (a, b) VALUES ({key}, 'b')"))));
    let held = |node: &Node| {
        let (_, stats) = node.get("/v1/tablestats?keyspace=k&table=t");
        stats["keyspaces"][0]["tables"][0]["space_snapshots_bytes"].as_u64().expect("a number")
    };
    assert_eq!(held(&node), 0);
    assert_eq!(
        node.post("/v1/snapshot", r#"{"tag": "s", "keyspaces": ["k"]}"#),
        (200, json!({"table_count": 1}))
    );
    let lists = held(&node);
    (0..20).for_each(|key| drop(node.client().query(&format!("INSERT INTO k.t (a, b) VALUES ({key}, 'c')"))));
    assert_eq!(node.post("/v1/flush", r#"{"keyspace": "k"}"#).0, 200);
    assert_eq!(node.post("/v1/compact", r#"{"keyspace": "k"}"#).0, 200);
    assert!(held(&node) > lists, "the files before the compaction");
    assert_eq!(node.post("/v1/snapshots/clear", r#"{"tag": "s"}"#).0, 200);
    assert_eq!(held(&node), 0);
}
