//! The management port tells and does what `docs/internals/management.md` says.

use serde_json::json;

use super::support::Node;
use protocol::Response;

pub(crate) fn with_table() -> Node {
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
fn a_lone_node_has_everything() {
    let node = with_table();
    let (status, cluster) = node.get("/v1/cluster");
    assert_eq!((status, &cluster["name"]), (200, &json!("Test Cluster")));
    assert_eq!(cluster["data_centers"], json!({"datacenter1": {"node_count": 1, "down_count": 0}}));
    let version = &node.client().rows("SELECT schema_version FROM system.local")[0];
    assert_eq!(cluster["schema_versions"], json!({version: ["127.0.0.1"]}));
    assert_eq!((&cluster["unreachable"], &cluster["seeds"]), (&json!([]), &json!([])));
    let keyspace = cluster["keyspaces"].as_object().and_then(|all| all.keys().find(|name| *name == "k"));
    assert!(keyspace.is_some(), "{cluster}");
    let (_, ranges) = node.get("/v1/ranges?keyspace=k");
    assert_eq!(ranges["schema_version"], json!(version));
    let list = ranges["ranges"].as_array().expect("ranges");
    assert!(list.len() == 16 && list[0]["start_token"] == list[15]["end_token"], "{ranges}");
    let here = json!([{"address": "127.0.0.1", "cql_address": "127.0.0.1", "data_center": "datacenter1", "rack": "rack1"}]);
    assert!(list.iter().all(|range| range["replicas"] == here), "{ranges}");
    assert_eq!(node.get("/v1/endpoints?keyspace=k&table=t&key=7").1, json!({"addresses": ["127.0.0.1"]}));
    for (path, status) in [
        ("/v1/ranges?keyspace=nope", 404),
        ("/v1/ranges?keyspace=system", 400),
        ("/v1/endpoints?keyspace=k&table=nope&key=7", 404),
        ("/v1/endpoints?keyspace=k&table=t&key=seven", 400),
        ("/v1/endpoints?keyspace=k&table=t", 400),
        ("/v1/cluster?keyspace=k", 400),
    ] {
        assert_eq!(node.get(path).0, status, "{path}");
    }
}

#[test]
fn memory_is_told_by_use_and_the_sum_is_what_the_process_has() {
    let node = with_table();
    let mut client = node.client();
    client.prepare("SELECT * FROM k.t WHERE a = ?");
    let (_, info) = node.get("/v1/info");
    let uses = info["memory"].as_array().expect("uses");
    let held = |name: &str| {
        let found = uses.iter().find(|memory_use| memory_use["name"] == name).expect("is told");
        found["held_bytes"].as_u64().expect("a figure")
    };
    assert!(held("memtables") > 0 && held("prepared statements") > 0 && held("program") > 0, "{uses:?}");
    let sum: u64 = uses.iter().filter_map(|memory_use| memory_use["held_bytes"].as_u64()).sum();
    let resident = info["memory_used_bytes"].as_u64().expect("a figure");
    // They are read one after the other, beside other tests.
    assert!(sum.abs_diff(resident) < 64 << 20, "{sum} of {resident}");
    assert_eq!(info["prepared_statements"]["count"], json!(1));
    assert_eq!(info["prepared_statements"]["evicted_count"], json!(0));
    let names = client.rows("SELECT name FROM system_views.memory_use");
    assert_eq!(names.len(), uses.len());
    let shares = client.rows("SELECT share_bytes FROM system_views.memory_use WHERE name = 'memtables'");
    assert_eq!(shares, [uses[0]["share_bytes"].to_string()]);
}

#[test]
fn timeouts_are_told_and_set() {
    let node = Node::start();
    let defaults = json!({
        "read": 5000, "range": 10_000, "write": 2000, "truncate": 60_000, "cascontention": 1800, "counterwrite": 5000
    });
    assert_eq!(node.get("/v1/timeouts"), (200, json!({ "milliseconds": defaults })));
    let wanted = json!({ "kind": "range", "milliseconds": 77 });
    assert_eq!(node.post("/v1/timeouts", &wanted.to_string()), (200, json!({})));
    assert_eq!(node.get("/v1/timeouts").1["milliseconds"]["range"], json!(77));
    for wrong in [
        json!({ "kind": "ranges", "milliseconds": 77 }),
        json!({ "kind": "range", "milliseconds": 0 }),
        json!({ "kind": "range" }),
    ] {
        assert_eq!(node.post("/v1/timeouts", &wrong.to_string()).0, 400, "{wrong}");
    }
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
    for name in ["unfinished_batches", "kept_batches", "replayed_batches_total"] {
        assert!(metrics.contains(&format!("\nperistyle_{name} 0\n")), "{metrics}");
    }
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
fn figures_of_files_and_reads_are_measured() {
    let node = with_table();
    node.post("/v1/flush", r#"{"keyspace": "k"}"#);
    let mut client = node.client();
    client.query("DELETE b FROM k.t WHERE a = 1");
    assert_eq!(client.rows("SELECT COUNT(*) FROM k.t"), ["20"]);
    // Below the first key or past a filter: the row index is asked for none of these.
    (100..400).for_each(|key| assert!(client.rows(&format!("SELECT b FROM k.t WHERE a = {key}")).is_empty()));
    let (_, stats) = node.get("/v1/tablestats?keyspace=k");
    let table = &stats["keyspaces"][0]["tables"][0];
    let figure = |name: &str| table[name].as_f64().unwrap_or(f64::NAN);
    for name in [
        "sstable_size_max_bytes",
        "off_heap_bytes",
        "filter_bytes",
        "filter_off_heap_bytes",
        "compression_metadata_off_heap_bytes",
        "partition_min_bytes",
        "unrepaired_bytes",
        "live_cells_per_slice_mean",
    ] {
        assert!(figure(name) > 0.0, "{name}: {}", table[name]);
    }
    assert!(figure("partition_min_bytes") <= figure("partition_mean_bytes"));
    assert!(figure("partition_mean_bytes") <= figure("partition_max_bytes"));
    assert!(figure("partition_max_bytes") < 100.0);
    assert!(figure("live_cells_per_slice_max") >= 5.0, "{}", table["live_cells_per_slice_max"]);
    assert!(figure("tombstones_per_slice_mean") >= 0.0, "{}", table["tombstones_per_slice_mean"]);
    assert!(figure("filter_false_ratio") < 0.1, "{}", table["filter_false_ratio"]);
    assert!(figure("filter_off_heap_bytes") + 16.0 == figure("filter_bytes"), "a head for each of two files");
    assert_eq!(client.rows("SELECT mebibytes FROM system_views.max_partition_size WHERE keyspace_name = 'k' AND table_name = 't'"), ["1"]);
    assert_eq!(client.rows("SELECT mebibytes FROM system_views.max_sstable_size WHERE keyspace_name = 'k' AND table_name = 't'"), ["1"]);
}

#[test]
fn spark_finds_how_much_lies_in_which_range() {
    let node = with_table();
    node.post("/v1/flush", r#"{"keyspace": "k"}"#);
    let mut client = node.client();
    let whose = "WHERE keyspace_name = 'k' AND table_name = 't'";
    let starts = client.rows(&format!("SELECT range_start FROM system.size_estimates {whose}"));
    assert_eq!(starts.len(), 17, "16 tokens, one range in two parts");
    let sizes =
        client.rows(&format!("SELECT mean_partition_size FROM system.size_estimates {whose} LIMIT 3"));
    assert_eq!(sizes.len(), 3);
    let sum = client.rows(&format!("SELECT SUM(partitions_count) FROM system.size_estimates {whose}"));
    let sum: i64 = sum[0].parse().expect("a number");
    assert!((10..=30).contains(&sum), "about 20 partitions, not {sum}");
    let types = client
        .rows(&format!("SELECT COUNT(*) FROM system.table_estimates {whose} AND range_type = 'primary'"));
    assert_eq!(types, ["17"]);
    let own = client.rows("SELECT range_start FROM system.size_estimates WHERE keyspace_name = 'system'");
    assert!(own.is_empty(), "a keyspace without a place on the ring");
}

#[test]
fn server_errors_are_counted_and_mistakes_of_clients_are_not() {
    let node = with_table();
    let mut client = node.client();
    let mistaken = client.query("SELECT nope FROM k.t");
    assert!(matches!(mistaken, Response::Error(_)));
    assert_eq!(node.get("/v1/info").1["exception_count"], json!(0));
    node.post("/v1/drain", "");
    let refused = client.query("INSERT INTO k.t (a, b) VALUES (100, 'late')");
    let is_server =
        matches!(&refused, Response::Error(error) if matches!(error.kind, protocol::ErrorKind::Server));
    assert_eq!(node.get("/v1/info").1["exception_count"], json!(u8::from(is_server)), "{refused:?}");
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
    assert_eq!(node.get("/v1/flush").0, 405);
    assert_eq!(node.post("/v1/flush", "{").0, 400);
    assert_eq!(node.post("/v1/flush", r#"{"keyspace": 1}"#).0, 400);
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
