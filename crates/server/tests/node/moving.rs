//! Data moves in and out of a node over its management port.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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

/// Files somewhere below a folder whose paths hold both words.
fn files(folder: &Path, one: &str, other: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = path.display().to_string();
        if path.is_dir() {
            found.extend(files(&path, one, other));
        } else if text.contains(one) && text.contains(other) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Data of the table `t` that counts, and that is in the folders of a name beside it.
fn data_of(node: &Node, folder: &str) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let all = files(node.directory(), "/t-", "-Data.db");
    let is_in = |path: &PathBuf| path.display().to_string().contains(&format!("/{folder}/"));
    let (kept, live): (Vec<_>, Vec<_>) = all.into_iter().partition(is_in);
    let is_live = |path: &PathBuf| {
        ["backups", "snapshots"].iter().all(|word| !path.display().to_string().contains(word))
    };
    (live.into_iter().filter(is_live).collect(), kept)
}

fn inodes(files: &[PathBuf]) -> Vec<u64> {
    let mut inodes: Vec<u64> = files.iter().map(|file| fs::metadata(file).expect("there").ino()).collect();
    inodes.sort_unstable();
    inodes
}

#[test]
fn snapshots_and_backups_are_links_to_files_and_what_is_put_back_is_refreshed() {
    let node = with_keyspace();
    node.client().query("CREATE TABLE k.t (a int PRIMARY KEY, b text)");
    assert_eq!(node.get("/v1/backups"), (200, json!({"enabled": false})));
    assert_eq!(node.post("/v1/backups", r#"{"enabled": true}"#), (200, json!({"enabled": true})));
    (0..20).for_each(|key| drop(node.client().query(&format!("INSERT INTO k.t (a, b) VALUES ({key}, 'b')"))));
    assert_eq!(node.post("/v1/flush", r#"{"keyspace": "k"}"#).0, 200);
    let (live, backups) = data_of(&node, "backups");
    assert!(!live.is_empty());
    assert_eq!(inodes(&live), inodes(&backups), "links, not copies");
    assert_eq!(node.post("/v1/snapshot", r#"{"tag": "s", "keyspaces": ["k"], "table": "t"}"#).0, 200);
    let (_, kept) = data_of(&node, "snapshots");
    assert_eq!(inodes(&live), inodes(&kept));
    let (_, listed) = node.get("/v1/snapshots");
    let facts = &listed["snapshots"][0];
    assert_eq!((&facts["tag"], &facts["keyspace"], &facts["table"]), (&json!("s"), &json!("k"), &json!("t")));
    assert!(facts["disk_bytes"].as_u64() > Some(0), "{facts}");

    node.client().query("TRUNCATE k.t");
    assert!(node.client().rows("SELECT a FROM k.t").is_empty());
    let directory = live[0].parent().expect("the table's").to_owned();
    for file in files(node.directory(), "/t-", "/backups/") {
        fs::copy(&file, directory.join(file.file_name().expect("a name"))).expect("put back");
    }
    let (status, done) = node.post("/v1/refresh", r#"{"keyspace": "k", "table": "t"}"#);
    assert_eq!((status, &done["file_count"]), (200, &json!(live.len())), "{done}");
    assert_eq!(node.client().rows("SELECT a FROM k.t").len(), 20);
    let node = node.restart();
    assert_eq!(node.client().rows("SELECT a FROM k.t").len(), 20);
    assert_eq!(node.post("/v1/snapshots/clear", r#"{"all": true}"#).0, 200);
    assert_eq!(node.get("/v1/snapshots").1["snapshots"], json!([]));
    assert!(data_of(&node, "snapshots").1.is_empty());
    assert_eq!(node.post("/v1/snapshots/clear", "{}").0, 400);
    assert_eq!(node.post("/v1/refresh", r#"{"keyspace": "k", "table": "no"}"#).0, 404);
}
