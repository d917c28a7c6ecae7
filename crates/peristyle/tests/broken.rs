//! A node that breaks a promise of its own code ends, says which, and the next start finds what was acknowledged.

#![expect(clippy::expect_used, reason = "a test ends at the first thing that does not go well")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use client::{ConnectOptions, Connection};

/// `EX_SOFTWARE`.
const INVARIANT_BROKEN_CODE: i32 = 70;
const ROW_COUNT: i32 = 100;

/// A node that serves, and ends with the test.
struct Node {
    process: Child,
    address: String,
}

impl Node {
    fn start(directory: &Path, plant: Option<&str>) -> Node {
        let mut command = Command::new(env!("CARGO_BIN_EXE_peristyle"));
        command.arg("serve").arg("--data-dir").arg(directory).args(["--shards", "1", "--memory", "64MiB"]);
        command.args(["--listen", "127.0.0.1:0", "--management", "127.0.0.1:0"]);
        command.env_remove("PERISTYLE_PLANT").envs(plant.map(|plant| ("PERISTYLE_PLANT", plant)));
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut ready = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut ready).expect("a line");
        let address = ready.trim().rsplit(' ').next().expect("a word").to_owned();
        assert!(ready.starts_with("ready: "), "{ready}");
        Node { process, address }
    }

    fn connect(&self) -> Connection {
        Connection::open(self.address.as_str(), &ConnectOptions::default()).expect("it listens")
    }

    /// How it ended by itself, and what it said last.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let stderr = self.process.stderr.as_mut().expect("it is piped");
        stderr.read_to_string(&mut said).expect("text");
        let status = self.process.wait().expect("it ends");
        (status.code(), said.lines().last().unwrap_or_default().to_owned())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // One that has ended already is no failure.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The keys of all rows.
fn keys(connection: &mut Connection) -> Vec<i32> {
    let rows = connection.query("SELECT id FROM k.t").expect("an answer").rows().expect("rows").rows;
    let number = |cell: &[u8]| i32::from_be_bytes(cell.try_into().expect("four bytes"));
    let mut keys: Vec<i32> = rows.iter().map(|row| number(row[0].as_ref().expect("a key"))).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn a_broken_promise_ends_the_process_in_words_and_nothing_acknowledged_is_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let node = Node::start(directory.path(), None);
    let mut connection = node.connect();
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    connection.query(&format!("CREATE KEYSPACE k WITH replication = {replication}")).expect("a keyspace");
    connection.query("CREATE TABLE k.t (id int PRIMARY KEY, v text)").expect("a table");
    for id in 0..ROW_COUNT {
        connection.query(&format!("INSERT INTO k.t (id, v) VALUES ({id}, 'v')")).expect("acknowledged");
    }
    drop(node);
    let node = Node::start(directory.path(), Some("UnappliedMutation"));
    let insert = |id| format!("INSERT INTO k.t (id, v) VALUES ({id}, 'v');");
    let both = format!("BEGIN UNLOGGED BATCH {} {} APPLY BATCH", insert(ROW_COUNT), insert(ROW_COUNT + 1));
    node.connect().query(&both).expect_err("it is merged in part");

    let (code, last) = node.end();
    assert_eq!(code, Some(INVARIANT_BROKEN_CODE), "{last}");
    let words = "an invariant of the node is broken, at work on a write: ";
    assert!(last.starts_with(&format!("peristyle: {words}")), "{last}");
    assert!(last.contains("every mutation of a record is merged into a memtable"), "{last}");

    let node = Node::start(directory.path(), None);
    let found = keys(&mut node.connect());
    let acknowledged: Vec<i32> = (0..ROW_COUNT).collect();
    assert_eq!(found[..acknowledged.len()], acknowledged);
    // Of the batch, which was not acknowledged, all is there or nothing.
    assert!([0, 2].contains(&(found.len() - acknowledged.len())), "{found:?}");
}
