//! Prepared reads and writes of one row that wait longer than they may: each is told so, as every other request is, and
//! the connection goes on.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::{Consistency, ErrorKind, ErrorResponse, Prepared, RequestEnvelope, Response, WriteType};
use runtime::memory_disk::Operation;
use runtime::{Clock, MemoryDisk, Runtime, SystemClock};
use serde_json::json;

use crate::support::{Client, Node, execute_at};
use crate::traces::traced;

const ROWS: i16 = 32;
/// Enough for what does not hang.
const LIMIT_MS: u64 = 500;
const LIMIT_THAT_IS_NONE_MS: u64 = 3_600_000;

/// A clock that keeps the thread of the last shard when it is told to.
#[derive(Debug, Default)]
struct KeepingClock {
    clock: SystemClock,
    state: Mutex<Keeping>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Keeping {
    is_wanted: bool,
    has_thread: bool,
}

/// As long as it is there, the thread is kept.
struct Kept<'a>(&'a KeepingClock);

impl KeepingClock {
    const THREAD: &str = "shard-1";

    fn state(&self) -> MutexGuard<'_, Keeping> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, goes_on: impl Fn(&mut Keeping) -> bool) {
        drop(self.changed.wait_while(self.state(), goes_on).unwrap_or_else(PoisonError::into_inner));
    }

    /// Keeps the thread from when it next asks for the time.
    fn keep(&self) -> Kept<'_> {
        self.state().is_wanted = true;
        Kept(self)
    }
}

impl Kept<'_> {
    /// Waits until the thread has come.
    fn await_thread(&self) {
        self.0.wait(|keeping| !keeping.has_thread);
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        *self.0.state() = Keeping::default();
        self.0.changed.notify_all();
    }
}

impl Clock for KeepingClock {
    fn now_micros(&self) -> i64 {
        self.clock.now_micros()
    }

    fn elapsed(&self) -> Duration {
        if std::thread::current().name() == Some(KeepingClock::THREAD) {
            let mut state = self.state();
            state.has_thread = state.is_wanted;
            drop(state);
            self.changed.notify_all();
            self.wait(|keeping| keeping.is_wanted);
        }
        self.clock.elapsed()
    }
}

/// A client of a table, and how it writes and reads a row.
struct Table {
    client: Client,
    insert: Prepared,
    select: Prepared,
}

impl Table {
    fn of(mut client: Client) -> Table {
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        client.query(&format!("CREATE KEYSPACE k WITH replication = {replication}"));
        client.query("CREATE TABLE k.t (a int PRIMARY KEY, b text)");
        let insert = client.prepare("INSERT INTO k.t (a, b) VALUES (?, ?)");
        let select = client.prepare("SELECT b FROM k.t WHERE a = ?");
        Table { client, insert, select }
    }

    fn write_all(&mut self) -> BTreeMap<i16, Response> {
        let insert = self.insert.clone();
        self.all(|row| execute_at(level(row), &insert, &[&i32::from(row).to_be_bytes(), b"v"]))
    }

    fn read_all(&mut self) -> BTreeMap<i16, Response> {
        let select = self.select.clone();
        self.all(|row| execute_at(level(row), &select, &[&i32::from(row).to_be_bytes()]))
    }

    /// Sends a request for each row in one go, and gives back the answers.
    fn all(&mut self, request: impl Fn(i16) -> RequestEnvelope) -> BTreeMap<i16, Response> {
        let bytes: Vec<u8> = (0..ROWS).flat_map(|row| self.client.encoded(row, request(row))).collect();
        self.client.send_bytes(&bytes);
        let answers: BTreeMap<_, _> = (0..ROWS)
            .map(|_| self.client.receive())
            .map(|(stream, answer)| (stream, answer.response))
            .collect();
        assert_eq!(answers.len(), ROWS as usize, "every stream is answered once");
        answers
    }

    /// What a full request is answered that fails.
    fn error(&mut self, text: &str) -> ErrorResponse {
        match self.client.query(text) {
            Response::Error(error) => error,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn has_all(&mut self) {
        for (row, answer) in self.read_all() {
            assert!(matches!(&answer, Response::Rows(rows) if rows.row_count == 1), "{row}: {answer:?}");
        }
    }
}

fn set_limits(node: &Node, milliseconds: u64) {
    for kind in ["read", "write"] {
        let wanted = json!({ "kind": kind, "milliseconds": milliseconds });
        assert_eq!(node.post("/v1/timeouts", &wanted.to_string()).0, 200);
    }
}

/// The level that a row is written and read at: each is told its own.
fn level(row: i16) -> Consistency {
    if row % 2 == 0 { Consistency::One } else { Consistency::Quorum }
}

fn write_timeout(consistency: Consistency) -> ErrorResponse {
    timeout(ErrorKind::WriteTimeout {
        consistency,
        received: 0,
        block_for: 1,
        write_type: WriteType::Simple,
        contentions: None,
    })
}

fn read_timeout(consistency: Consistency) -> ErrorResponse {
    timeout(ErrorKind::ReadTimeout { consistency, received: 0, block_for: 1, data_present: false })
}

fn timeout(kind: ErrorKind) -> ErrorResponse {
    ErrorResponse::new(kind, "Operation timed out - received only 0 responses.")
}

/// What so many requests hold at least.
fn held_by(count: i16) -> u64 {
    const REQUEST_BYTES: u64 = 4 << 10;
    REQUEST_BYTES * count as u64
}

/// The rows that were answered by this error, at their level.
fn rows_with(error: impl Fn(Consistency) -> ErrorResponse, answers: &BTreeMap<i16, Response>) -> Vec<i16> {
    let failed = answers.iter().filter(|(row, answer)| **answer == Response::Error(error(level(**row))));
    failed.map(|(row, _)| *row).collect()
}

/// A client whose shard is not the one that the clock keeps: the kernel spreads them.
fn client_of_another_shard(node: &Node) -> Client {
    let is_of_another = |client: &mut Client| {
        let (_, id) = traced(client, "SELECT key FROM system.local");
        let threads =
            client.rows(&format!("SELECT thread FROM system_traces.events WHERE session_id = {id}"));
        // That of the first event, which is that the text is parsed.
        threads[0] != KeepingClock::THREAD
    };
    let mut clients = (0..64).map(|_| node.client());
    clients.find_map(|mut client| is_of_another(&mut client).then_some(client)).expect("one of many")
}

#[test]
fn writes_whose_log_hangs_time_out_and_stand_when_it_goes_on() {
    let disk = MemoryDisk::new();
    let node = Node::on_disk(&disk, |_| {});
    let mut table = Table::of(node.client());
    set_limits(&node, LIMIT_MS / 5);
    let hang = disk.faults().hang_all(Operation::Sync);
    let answers = table.write_all();
    let full = table.error("INSERT INTO k.t (a, b) VALUES (-1, 'v')");
    assert_eq!(full, write_timeout(Consistency::One));
    assert_eq!(rows_with(write_timeout, &answers), (0..ROWS).collect::<Vec<_>>(), "{answers:?}");
    // They are answered, and in memory all the same.
    assert!(node.held_bytes() >= held_by(ROWS), "{}", node.held_bytes());
    set_limits(&node, LIMIT_THAT_IS_NONE_MS);
    drop(hang);
    table.has_all();
    for (row, answer) in table.write_all() {
        assert_eq!(answer, Response::Void, "{row}");
    }
    node.await_nothing_held();
}

#[test]
fn writes_count_until_their_log_has_them_although_their_client_has_gone() {
    let disk = MemoryDisk::new();
    let node = Node::on_disk(&disk, |_| {});
    let mut table = Table::of(node.client());
    let mut other = node.client();
    set_limits(&node, LIMIT_THAT_IS_NONE_MS);
    let hang = disk.faults().hang_all(Operation::Sync);
    let insert = table.insert.clone();
    for row in 0..ROWS {
        table.client.send(row, execute_at(level(row), &insert, &[&i32::from(row).to_be_bytes(), b"v"]));
    }
    let all_are_held = || node.held_bytes() >= held_by(ROWS);
    assert!((0..1000).any(|_| all_are_held()), "{}", node.held_bytes());
    drop(table);
    let connection_count = || node.get("/v1/info").1["connection_count"].as_u64();
    assert!((0..1000).any(|_| connection_count() == Some(1)), "{:?}", connection_count());
    assert!(all_are_held(), "{}", node.held_bytes());
    drop(hang);
    node.await_nothing_held();
    assert_eq!(other.rows("SELECT count(*) FROM k.t"), [ROWS.to_string()]);
}

#[test]
fn late_writes_that_wait_for_room_on_another_shard_end() {
    let disk = MemoryDisk::new();
    let node = Node::on_disk(&disk, |options| options.memtable_bytes = 1 << 20);
    let mut table = Table::of(node.client());
    set_limits(&node, LIMIT_MS / 5);
    // No memtable is written out, and the log is well.
    let hang = disk.faults().hang_all(Operation::Create);
    let (insert, value) = (table.insert.clone(), [b'x'; 60_000]);
    let answers = table.all(|row| execute_at(level(row), &insert, &[&i32::from(row).to_be_bytes(), &value]));
    assert!(!rows_with(write_timeout, &answers).is_empty(), "there was room");
    // Though nothing is written out yet.
    node.await_nothing_held();
    drop(hang);
}

#[test]
fn reads_and_writes_of_a_shard_that_does_not_answer_time_out_and_others_are_answered() {
    let clock = Arc::new(KeepingClock::default());
    let replace = |runtime: &mut Runtime| {
        runtime.disk = Arc::new(MemoryDisk::new());
        runtime.clock = clock.clone();
    };
    let node = Node::begin(replace, |_| {}).expect("a node");
    let mut table = Table::of(client_of_another_shard(&node));
    table.write_all();
    set_limits(&node, LIMIT_MS);
    let kept = clock.keep();
    let written = table.write_all();
    kept.await_thread();
    let read = table.read_all();
    let late = rows_with(write_timeout, &written);
    let full = table.error(&format!("SELECT b FROM k.t WHERE a = {}", late[0]));
    assert_eq!(full, read_timeout(Consistency::One));
    assert_eq!(rows_with(read_timeout, &read), late, "{read:?}");
    let is_late = |row: &i16| late.contains(row);
    assert!((0..ROWS).any(|row| !is_late(&row)), "each shard has some");
    for row in (0..ROWS).filter(|row| !is_late(row)) {
        assert_eq!(written[&row], Response::Void, "{row}");
        assert!(matches!(&read[&row], Response::Rows(rows) if rows.row_count == 1), "{row}: {read:?}");
    }
    set_limits(&node, LIMIT_THAT_IS_NONE_MS);
    drop(kept);
    table.has_all();
    for (row, answer) in table.write_all() {
        assert_eq!(answer, Response::Void, "{row}");
    }
    node.await_nothing_held();
}
