//! What a client hears of reads that come upon many tombstones, and what the log says. That the client's words and
//! numbers are Cassandra's is shown by `tests/cql/tombstones.cql`.

use std::io;
use std::sync::{Mutex, PoisonError};

use protocol::{ErrorKind, Response, ResponseEnvelope};
use read::TombstoneThresholds;
use runtime::MemoryDisk;
use storage::StorageOptions;

use super::support::{Client, Node, execute, request};

const OVERWHELMED: &str =
    "Operation failed - received 0 responses and 1 failures: READ_TOO_MANY_TOMBSTONES from /127.0.0.1:7000";

fn few(storage: &mut StorageOptions) {
    storage.tombstones = TombstoneThresholds { warn: 5, failure: 20 };
}

fn ask(client: &mut Client, text: &str) -> ResponseEnvelope {
    client.call(request(text).into())
}

/// A partition for each count of deleted rows; all have a row that lives behind them.
fn with_deleted_rows(client: &mut Client, counts: &[i32]) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client.query(&format!("CREATE KEYSPACE k WITH replication = {replication}"));
    client.query("CREATE TABLE k.t (a int, b int, c set<int>, PRIMARY KEY (a, b))");
    for count in counts {
        client.query(&format!("INSERT INTO k.t (a, b) VALUES ({count}, 100)"));
        for b in 0..*count {
            client.query(&format!("DELETE FROM k.t WHERE a = {count} AND b = {b}"));
        }
    }
}

#[test]
fn a_client_is_warned_above_one_threshold_and_refused_above_the_other() {
    let node = Node::on_disk(&MemoryDisk::new(), few);
    let mut client = node.client();
    with_deleted_rows(&mut client, &[5, 6, 20, 21]);
    let mut check = |a: i32, is_warned: bool, is_failed: bool| {
        let answer = ask(&mut client, &format!("SELECT * FROM k.t WHERE a = {a}"));
        assert_eq!(answer.warnings.len(), usize::from(is_warned), "{a}: {:?}", answer.warnings);
        let (live, met) = if is_failed { (0, 21) } else { (1, a) };
        let words = format!(
            "Read {live} live rows and {met} tombstone cells for query SELECT * FROM k.t WHERE a = {a} ALLOW FILTERING; token "
        );
        assert!(answer.warnings.iter().all(|warning| warning.starts_with(&words)), "{:?}", answer.warnings);
        match answer.response {
            Response::Rows(rows) => assert!(!is_failed && rows.row_count == 1),
            Response::Error(error) => {
                assert!(is_failed && error.message == OVERWHELMED, "{error:?}");
                assert!(matches!(error.kind, ErrorKind::ReadFailure { .. }));
            }
            other => panic!("{a}: {other:?}"),
        }
    };
    check(5, false, false);
    check(6, true, false);
    check(20, true, false);
    check(21, true, true);
    // Each partition of an IN is for itself; a scan goes over all.
    let answer = ask(&mut client, "SELECT * FROM k.t WHERE a IN (5, 6, 20)");
    assert_eq!(answer.warnings.len(), 2, "{:?}", answer.warnings);
    assert!(matches!(ask(&mut client, "SELECT * FROM k.t").response, Response::Error(_)));
}

/// What all nodes of this process have logged, from warnings on.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lines of the log with these words.
fn logged(words: &str) -> Vec<String> {
    let log = String::from_utf8_lossy(&LOG.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
    log.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
}

/// The line named the module of failed requests, and a statement that no client had sent.
#[test]
fn the_log_has_one_warning_of_a_read_with_the_client_s_statement_and_the_counts() {
    let log = tracing_subscriber::fmt().with_ansi(false).with_max_level(tracing::Level::WARN);
    log.with_writer(|| Log).try_init().expect("nobody else listens");
    let node = Node::on_disk(&MemoryDisk::new(), few);
    let mut client = node.client();
    with_deleted_rows(&mut client, &[6, 20, 21]);
    let answer = ask(&mut client, "SELECT b,  a\nFROM k.t WHERE a IN (6, 20)");
    assert_eq!(answer.warnings.len(), 2, "the client hears of each partition: {:?}", answer.warnings);
    let lines = logged("IN (6, 20)");
    let [line] = &lines[..] else { panic!("{lines:?}") };
    for part in [
        " WARN ",
        ": a read came upon many tombstones ",
        " statement=SELECT b, a FROM k.t WHERE a IN (6, 20) ",
        " table=k.t key=20 tombstone_count=20 live_count=1 partition_count=2 ",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!line.contains("failed") && !line.contains("ALLOW FILTERING"), "{line}");

    // A prepared one is shown as it was prepared, and a long one in part.
    let prepared = client.prepare("SELECT a AS six FROM k.t WHERE a = ?");
    client.call(execute(&prepared, &[&6_i32.to_be_bytes()]));
    assert_eq!(logged(" statement=SELECT a AS six FROM k.t WHERE a = ? ").len(), 1);
    let long = format!("SELECT a AS {} FROM k.t WHERE a = 6", "l".repeat(500));
    ask(&mut client, &long);
    assert_eq!(logged(&format!("{}… ", "l".repeat(400 - "SELECT a AS ".len()))).len(), 1);

    // One that was ended failed, which is an error and no warning.
    ask(&mut client, "SELECT b FROM k.t WHERE a = 21");
    let lines = logged("statement=SELECT b FROM k.t WHERE a = 21");
    assert!(matches!(&lines[..], [line] if line.contains("ERROR ")), "{lines:?}");
}
