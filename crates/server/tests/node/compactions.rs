//! What the management port and the system tables tell of compactions, and what can be told to them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{Client, Node};
use protocol::Response;

const TABLE: &str = r#"{"keyspace": "k", "tables": ["t"]}"#;
/// Rows of a hundred kilobytes, so that there need not be many.
const KEYS: u64 = 40;
/// A piece of a merge takes a quarter of an hour: it goes on until somebody tells it something.
const SLOW_BYTES_PER_SECOND: u64 = 1 << 10;

fn run(client: &mut Client, statement: &str) {
    let answer = client.query(statement);
    assert!(!matches!(answer, Response::Error(_)), "{statement}: {answer:?}");
}

/// A node with `k.t`, whose rows do not compress: two files on each shard, each more than a piece of a merge.
fn with_files() -> Node {
    let node = Node::start();
    let mut client = node.client();
    run(
        &mut client,
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    run(&mut client, "CREATE TABLE k.t (a int PRIMARY KEY, b blob)");
    for half in 0..2 {
        for key in 0..KEYS {
            let blob: String = (0..12_800u64)
                .map(|at| format!("{:016x}", stir(at + 12_800 * (key + KEYS * half))))
                .collect();
            run(&mut client, &format!("INSERT INTO k.t (a, b) VALUES ({key}, 0x{blob})"));
        }
        assert_eq!(node.post("/v1/flush", TABLE).0, 200);
    }
    node
}

fn stir(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_add(1).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Asks again until the answer is as it should become. Fails after long.
#[expect(clippy::disallowed_methods, reason = "a node on threads of its own is waited for")]
fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(300), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn set_rate(node: &Node, bytes_per_second: u64) {
    let body = json!({ "bytes_per_second": bytes_per_second }).to_string();
    assert_eq!(node.post("/v1/compactions/throughput", &body), (200, json!({})));
    let told = &node.get("/v1/compactions").1["throughput_bytes_per_second"];
    assert_eq!(told, &json!(bytes_per_second));
}

fn active(node: &Node) -> Vec<Value> {
    let (status, compactions) = node.get("/v1/compactions");
    assert_eq!(status, 200);
    compactions["active"].as_array().expect("a list").clone()
}

fn history(node: &Node) -> Vec<Value> {
    node.get("/v1/compactionhistory").1["compactions"].as_array().expect("a list").clone()
}

fn set_auto(node: &Node, enabled: bool) {
    let body = json!({ "keyspace": "k", "tables": ["t"], "enabled": enabled }).to_string();
    assert_eq!(node.post("/v1/compactions/auto", &body), (200, json!({"table_count": 1})));
}

/// `/v1/tablestats` of `k.t`.
fn table_stats(node: &Node) -> Value {
    node.get("/v1/tablestats?keyspace=k&table=t").1["keyspaces"][0]["tables"][0].clone()
}

#[test]
fn a_slow_compaction_is_told_of_can_be_stopped_and_made_quick() {
    let node = with_files();
    let mut client = node.client();
    set_rate(&node, SLOW_BYTES_PER_SECOND);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| node.post("/v1/compact", TABLE));
        let [first] = &wait("it begins", || Some(active(&node)).filter(|active| !active.is_empty()))[..]
        else {
            panic!("shards are asked one after the other");
        };
        assert_eq!(
            (&first["keyspace"], &first["table"], &first["files"]),
            (&json!("k"), &json!("t"), &json!(2))
        );
        assert_eq!(first["kind"], json!("Major compaction"));
        let total = first["total_bytes"].as_u64().expect("a number");
        assert!(
            total > 1 << 20 && first["completed_bytes"].as_u64().is_some_and(|bytes| bytes < total),
            "{first}"
        );
        let id = first["id"].as_str().expect("text");
        let tasks = client.rows(
            "SELECT task_id, kind, sstables, total, unit FROM system_views.sstable_tasks \
             WHERE keyspace_name = 'k' AND table_name = 't'",
        );
        assert_eq!(tasks, [format!("{id}|major compaction|2|{total}|bytes")]);

        let other_kind = node.post("/v1/compactions/stop", r#"{"kind": "upgrade_sstables"}"#);
        assert_eq!(other_kind, (200, json!({"stopped": 0})));
        let stop = json!({ "id": id, "kind": "compaction" }).to_string();
        assert_eq!(node.post("/v1/compactions/stop", &stop), (200, json!({"stopped": 1})));
        // The second shard's turn; without a limit it is soon over.
        wait("the next", || active(&node).iter().any(|active| active["id"] != json!(id)).then_some(()));
        set_rate(&node, 0);
        assert_eq!(asked.join().expect("answers"), (200, json!({"table_count": 1})));
    });
    let (_, compactions) = node.get("/v1/compactions");
    assert_eq!((&compactions["completed"], &compactions["aborted"]), (&json!(1), &json!(1)), "{compactions}");
    assert_eq!(compactions["completed_in_15_minutes"], json!(1));
    assert_eq!(compactions["active"], json!([]));
    let [record] = &history(&node)[..] else { panic!("one ended well") };
    assert_eq!(record["properties"], json!({"compaction_type": "Major compaction"}));
    let partitions = record["rows_merged"][0][1].as_i64().expect("a number");
    assert_eq!(record["rows_merged"], json!([[2, partitions]]), "each was in both files");
    let (into, out) = (&record["bytes_in"], &record["bytes_out"]);
    assert!(into.as_u64() > out.as_u64(), "{record}");
    let rows = client.rows(
        "SELECT keyspace_name, columnfamily_name, bytes_in, bytes_out, rows_merged, compaction_properties \
         FROM system.compaction_history",
    );
    let expected = format!("k|t|{into}|{out}|{{2: {partitions}}}|{{'compaction_type': 'Major compaction'}}");
    assert_eq!(rows, [expected]);
    assert_eq!(client.rows("SELECT COUNT(*) FROM k.t"), [KEYS.to_string()]);
}

#[test]
fn a_strategy_is_asked_only_while_auto_compaction_is_on() {
    let node = with_files();
    set_auto(&node, false);
    for _ in 0..2 {
        for key in 0..20 {
            run(&mut node.client(), &format!("INSERT INTO k.t (a, b) VALUES ({key}, 0x00)"));
        }
        assert_eq!(node.post("/v1/flush", TABLE).0, 200);
    }
    run(
        &mut node.client(),
        "ALTER TABLE k.t WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': '2'}",
    );
    assert_eq!(table_stats(&node)["sstable_count"], json!(8));
    assert!(history(&node).is_empty());
    set_auto(&node, true);
    wait("few files", || (table_stats(&node)["sstable_count"].as_u64() < Some(8)).then_some(()));
    wait("history", || {
        history(&node)
            .iter()
            .any(|record| record["properties"]["compaction_type"] == json!("Compaction"))
            .then_some(())
    });
}

#[test]
fn files_follow_an_altered_table_in_the_background_and_progress_is_seen() {
    let node = with_files();
    set_rate(&node, SLOW_BYTES_PER_SECOND);
    run(&mut node.client(), "ALTER TABLE k.t WITH compression = {'class': 'ZstdCompressor'}");
    let current = |node: &Node| {
        let stats = table_stats(node);
        (stats["current_sstable_count"].as_u64(), stats["sstable_count"].as_u64())
    };
    let first = wait("it begins", || active(&node).first().cloned());
    assert_eq!((&first["kind"], &first["files"]), (&json!("Upgrade sstables"), &json!(1)));
    assert_eq!(active(&node).len(), 1, "one at a time on the whole node");
    assert_eq!(current(&node), (Some(0), Some(4)));
    assert_eq!(table_stats(&node)["current_compressed_bytes"], json!(0));
    set_rate(&node, 0);
    wait("all files are written anew", || (current(&node) == (Some(4), Some(4))).then_some(()));
    wait("history", || (history(&node).len() == 4).then_some(()));
    let stats = table_stats(&node);
    assert_eq!(stats["current_compressed_bytes"], stats["compressed_bytes"]);
    assert_eq!(node.client().rows("SELECT COUNT(*) FROM k.t"), [KEYS.to_string()]);
    let properties = json!({"compaction_type": "Upgrade sstables"});
    assert!(history(&node).iter().all(|record| record["properties"] == properties));
    let metrics = node.get("/metrics").1;
    let metrics = metrics.as_str().expect("text").to_owned();
    assert!(metrics.contains("peristyle_table_current_files{keyspace=\"k\",table=\"t\"} 4\n"), "{metrics}");
}

#[test]
fn files_are_written_anew_on_demand_by_their_version_compression_and_age() {
    let node = with_files();
    let upgrade = |more: &str| {
        node.post("/v1/upgradesstables", &format!(r#"{{"keyspace": "k", "tables": ["t"]{more}}}"#))
    };
    let done = (200, json!({"table_count": 1, "aborted_keyspaces": []}));
    assert_eq!(upgrade(""), done);
    assert_eq!(upgrade(r#", "other_compression": true"#), done);
    assert_eq!(upgrade(r#", "include_all": true, "max_timestamp": 1000"#), done);
    assert!(history(&node).is_empty(), "none is old, compressed otherwise, or of 1970");
    assert_eq!(upgrade(r#", "include_all": true, "jobs": 1"#), done);
    assert_eq!(history(&node).len(), 4);
    set_auto(&node, false);
    run(&mut node.client(), "ALTER TABLE k.t WITH compression = {'enabled': 'false'}");
    assert_eq!(table_stats(&node)["current_sstable_count"], json!(0));
    assert_eq!(upgrade(r#", "other_compression": true"#), done);
    assert_eq!((&table_stats(&node)["current_sstable_count"], history(&node).len()), (&json!(4), 8));
    assert_eq!(upgrade(r#", "other_compression": true, "include_all": true"#).0, 400);
    assert_eq!(node.post("/v1/upgradesstables", r#"{"keyspace": "nope"}"#).0, 404);

    set_rate(&node, SLOW_BYTES_PER_SECOND);
    let stopped = std::thread::scope(|scope| {
        let asked = scope.spawn(|| upgrade(r#", "include_all": true"#));
        // Both shards are at it.
        wait("they begin", || (active(&node).len() == 2).then_some(()));
        let stop = node.post("/v1/compactions/stop", r#"{"kind": "upgrade_sstables"}"#);
        assert_eq!(stop, (200, json!({"stopped": 2})));
        asked.join().expect("answers")
    });
    assert_eq!(stopped, (200, json!({"table_count": 1, "aborted_keyspaces": ["k"]})));
    assert_eq!(history(&node).len(), 8);
}
