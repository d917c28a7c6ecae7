//! What a client hears of reads that come upon many tombstones. That the words and numbers are Cassandra's is shown by
//! `tests/cql/tombstones.cql`.

use protocol::{ErrorKind, Response, ResponseEnvelope};
use runtime::MemoryDisk;
use storage::{StorageOptions, TombstoneThresholds};

use super::support::{Client, Node, request};

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
