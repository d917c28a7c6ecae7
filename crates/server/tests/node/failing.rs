//! What clients and the management port see of a failing or full disk.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use protocol::{ErrorKind, Response, WriteType};
use runtime::MemoryDisk;
use runtime::memory_disk::{Fault, Operation};
use serde_json::json;
use storage::{CommitFailurePolicy, DiskFailurePolicy, StorageOptions};

use super::support::{Client, Node, execute};

const ROW_BYTES: usize = 20_000;

fn small(storage: &mut StorageOptions) {
    storage.segment_bytes = 256 << 10;
    storage.memtable_bytes = 1 << 20;
}

fn with_rows(node: &Node) -> Client {
    let mut client = node.client();
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client.query(&format!("CREATE KEYSPACE k WITH replication = {replication}"));
    client.query("CREATE TABLE k.t (a int PRIMARY KEY, b text)");
    for key in 0..10 {
        assert!(matches!(insert(&mut client, key), Response::Void));
    }
    client
}

fn insert(client: &mut Client, key: i32) -> Response {
    let value = "x".repeat(ROW_BYTES);
    client.query(&format!("INSERT INTO k.t (a, b) VALUES ({key}, '{value}')"))
}

fn kind(response: &Response) -> &ErrorKind {
    match response {
        Response::Error(error) => &error.kind,
        other => panic!("no error: {other:?}"),
    }
}

#[test]
fn a_failed_flush_disconnects_clients_and_leaves_the_management_port() {
    let disk = MemoryDisk::new();
    let node = Node::on_disk(&disk, |_| {});
    let mut client = with_rows(&node);
    assert_eq!(node.get("/v1/info").1["native_transport_active"], json!(true));
    // A flush writes under new names; the log and its syncs are well.
    disk.faults().fail_all(Some(Operation::Create), Fault::InputOutput);
    assert_eq!(node.post("/v1/flush", r#"{"keyspace": "k"}"#).0, 500);
    assert!(client.is_closed());
    // Each shard closes its listener by itself.
    let address = node.server().listen();
    assert!((0..1000).any(|_| TcpStream::connect(address).is_err()), "nobody listens");
    let (status, faults) = node.get("/v1/faults");
    assert_eq!((status, &faults["disk_failure_policy"]), (200, &json!("stop")));
    assert_eq!(
        (&faults["stopped_by_failure"], &faults["faults"][0]["kind"]),
        (&json!(true), &json!("write"))
    );
    assert_eq!(node.get("/v1/info").1["native_transport_active"], json!(false));
    disk.faults().clear();
}

#[test]
fn the_policy_die_tells_whoever_runs_the_server() {
    let disk = MemoryDisk::new();
    let node = Node::on_disk(&disk, |storage| storage.disk_failure_policy = DiskFailurePolicy::Die);
    with_rows(&node);
    disk.faults().fail_all(Some(Operation::Create), Fault::InputOutput);
    assert_eq!(node.post("/v1/flush", r#"{"keyspace": "k"}"#).0, 500);
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    waiting.block_on(node.server().disk_failed());
    disk.faults().clear();
}

#[test]
fn a_failed_change_of_the_schema_is_told_and_can_be_made_again() {
    let disk = MemoryDisk::new();
    let node = Node::on_disk(&disk, |storage| {
        storage.disk_failure_policy = DiskFailurePolicy::Ignore;
        storage.commit_failure_policy = CommitFailurePolicy::Ignore;
    });
    let mut client = with_rows(&node);
    let create = "CREATE TABLE k.other (a int PRIMARY KEY)";
    disk.faults().fail_all(Some(Operation::Sync), Fault::InputOutput);
    let failed = client.query(create);
    assert!(matches!(kind(&failed), ErrorKind::Server), "{failed:?}");
    let told = if let Response::Error(error) = &failed { error.message.as_str() } else { "" };
    assert!(told.contains("schema.log: ") && !told.contains('/'), "the file and not where it is: {told}");
    disk.faults().clear();
    let (_, faults) = node.get("/v1/faults");
    let acts: Vec<_> = faults["faults"].as_array().into_iter().flatten().map(|fault| &fault["act"]).collect();
    assert!(acts.contains(&&json!("change the schema")), "{faults}");
    assert!(matches!(client.query(create), Response::SchemaChange(_)));
    node.abandon();
}

#[test]
fn a_failed_log_is_a_write_failure_and_reads_go_on_under_stop_commit() {
    let disk = MemoryDisk::new();
    let node =
        Node::on_disk(&disk, |storage| storage.commit_failure_policy = CommitFailurePolicy::StopCommit);
    let mut client = with_rows(&node);
    disk.faults().fail_all(Some(Operation::Sync), Fault::InputOutput);
    let failed = insert(&mut client, 11);
    assert!(matches!(kind(&failed), ErrorKind::WriteFailure { .. }), "{failed:?}");
    assert_eq!(client.rows("SELECT a FROM k.t WHERE a = 3"), ["3"]);
    disk.faults().clear();
    let refused = insert(&mut client, 11);
    assert!(matches!(kind(&refused), ErrorKind::WriteFailure { .. }), "until a restart: {refused:?}");
    let two_rows = "INSERT INTO k.t (a) VALUES (1); INSERT INTO k.t (a) VALUES (2)";
    for (kind_of_batch, write_type) in [("UNLOGGED", WriteType::UnloggedBatch), ("", WriteType::Batch)] {
        let refused = client.query(&format!("BEGIN {kind_of_batch} BATCH {two_rows}; APPLY BATCH"));
        let told = match kind(&refused) {
            ErrorKind::WriteFailure { write_type, .. } => Some(*write_type),
            // Recorded by the shard whose log is well, it will be whole after a restart.
            ErrorKind::WriteTimeout { write_type: WriteType::Batch, .. } => Some(WriteType::Batch),
            _ => None,
        };
        assert_eq!(told, Some(write_type), "{refused:?}");
    }
    assert_eq!(node.get("/v1/faults").1["faults"][0]["kind"], json!("commit log"));
    node.abandon();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a node on threads of its own is waited for")]
fn a_full_disk_refuses_writes_serves_reads_and_takes_writes_again() {
    let disk = MemoryDisk::new();
    let node = Node::on_disk(&disk, small);
    let mut client = with_rows(&node);
    disk.faults().set_capacity_bytes(disk.used_bytes() + (512 << 10));
    let (mut key, mut acknowledged) = (10, 10);
    let refused = loop {
        match insert(&mut client, key) {
            Response::Void => acknowledged += 1,
            other => break other,
        }
        key += 1;
        assert!(key < 1_000, "the disk is never full");
    };
    let is_told = matches!(kind(&refused), ErrorKind::WriteFailure { .. } | ErrorKind::Overloaded);
    assert!(is_told, "{refused:?}");
    // The first to find the disk full may be in the log already; the next are refused before that.
    let mut told = Vec::new();
    for other in 0..8 {
        if let Response::Error(error) = insert(&mut client, key + 1 + other) {
            told.push((error.kind, error.message));
        }
    }
    let says = |words: &str| told.iter().any(|(_, message)| message.contains(words));
    assert!(told.iter().any(|(kind, _)| *kind == ErrorKind::Overloaded), "{told:?}");
    // Which of the two comes first, a log without room or a memtable that can not be written out, is chance.
    let is_named = says("the disk is full: writes are refused until there is space, reads are served")
        || says("writing it out fails");
    assert!(is_named, "{told:?}");
    for row in 0..acknowledged {
        assert_eq!(client.rows(&format!("SELECT a FROM k.t WHERE a = {row}")), [row.to_string()]);
    }
    disk.faults().set_capacity_bytes(u64::MAX);
    let freed = Instant::now();
    while !matches!(insert(&mut client, 5_000), Response::Void) {
        assert!(freed.elapsed() < Duration::from_secs(20), "writes do not go on");
        std::thread::sleep(Duration::from_millis(100));
    }
    for row in (0..acknowledged).chain([5_000]) {
        assert_eq!(client.rows(&format!("SELECT a FROM k.t WHERE a = {row}")), [row.to_string()]);
    }
    assert_eq!(node.get("/v1/faults").1["stopped_by_failure"], json!(false));
}

#[test]
fn verify_finds_damage_and_scrub_sets_it_aside_over_the_management_port() {
    use runtime::Disk;
    let disk = MemoryDisk::new();
    let node = Node::on_disk(&disk, |storage| storage.directory = "/node".into());
    let mut client = with_rows(&node);
    let body = r#"{"keyspace": "k"}"#;
    assert_eq!(node.post("/v1/flush", body).0, 200);
    let (status, sound) = node.post("/v1/verify", body);
    assert_eq!(status, 200);
    let files = sound["files"].as_array().expect("files").clone();
    assert!(!files.is_empty() && files.iter().all(|file| file["problem"].is_null()), "{sound}");
    let path = std::path::PathBuf::from(files[0]["path"].as_str().expect("a path"));
    disk.flip_bits(&path, 30, 0x10).expect("flips");
    let (_, found) = node.post("/v1/verify", body);
    let problems = found["files"].as_array().expect("files").iter().filter(|file| !file["problem"].is_null());
    assert_eq!(problems.count(), 1, "{found}");
    let (status, scrubbed) = node.post("/v1/scrub", body);
    assert_eq!((status, scrubbed["files"].as_array().map(Vec::len)), (200, Some(1)), "{scrubbed}");
    assert!(!disk.exists(&path).expect("asked"));
    let (_, faults) = node.get("/v1/faults");
    assert_eq!(faults["quarantined"].as_array().map(Vec::len), Some(1), "{faults}");
    assert!(client.rows("SELECT a FROM k.t").len() < 10, "the rest is read");
}

#[test]
fn a_full_disk_refuses_only_writes_of_which_nothing_was_taken() {
    // Whether the log or a flush finds the disk full first is a matter of time.
    let found = (0..20).map(|_| doubtful_writes_on_a_full_disk()).find(|count| *count > 0);
    assert!(found.is_some(), "some were in the log when the disk was full");
}

/// Fills a disk by writes that come together, holds every answer against what is there, and gives how many were
/// neither taken nor refused.
fn doubtful_writes_on_a_full_disk() -> usize {
    const TOGETHER: i32 = 16;
    let disk = MemoryDisk::new();
    let node = Node::on_disk(&disk, small);
    let mut client = with_rows(&node);
    let insert = client.prepare("INSERT INTO k.t (a, b) VALUES (?, ?)");
    disk.faults().set_capacity_bytes(disk.used_bytes() + (512 << 10));
    let value = "x".repeat(ROW_BYTES);
    let mut answers = BTreeMap::new();
    // Until the disk has been full for as many as come together.
    while answers.values().rev().take(TOGETHER as usize).any(|answer| *answer == Response::Void)
        || answers.is_empty()
    {
        let first = 100 + answers.len() as i32;
        for stream in 0..TOGETHER {
            let key = (first + stream).to_be_bytes();
            client.send(stream as i16, execute(&insert, &[&key, value.as_bytes()]));
        }
        for _ in 0..TOGETHER {
            let (stream, answer) = client.receive();
            answers.insert(first + i32::from(stream), answer.response);
        }
        assert!(answers.len() < 1_000, "the disk is never full");
    }
    let mut doubtful_count = 0;
    for (key, answer) in &answers {
        let is_there = !client.rows(&format!("SELECT a FROM k.t WHERE a = {key}")).is_empty();
        match answer {
            Response::Void => assert!(is_there, "{key} was acknowledged"),
            answer if matches!(kind(answer), ErrorKind::Overloaded) => {
                assert!(!is_there, "{key} was refused")
            }
            answer => {
                assert!(matches!(kind(answer), ErrorKind::WriteFailure { .. }), "{answer:?}");
                doubtful_count += 1;
            }
        }
    }
    disk.faults().clear();
    node.abandon();
    doubtful_count
}
