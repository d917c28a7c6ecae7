//! Clients that write as fast as they are acknowledged, and remember what they did.

use std::thread::JoinHandle;
use std::time::Instant;

use super::Dice;
use super::ledger::{Emptied, Key, Place, State, Write};
use super::operator::Operator;
use crate::report::Failure;
use crate::wire::{Answer, Connection, Request, WireError};

/// Connections at once, besides the operator's.
pub(super) const WORKER_COUNT: u32 = 12;
/// Keys of one worker, in partitions of `BUCKET_KEYS`.
const KEY_COUNT: u64 = 400;
const BUCKET_KEYS: u32 = 50;
const BATCH_COUNT: u64 = 100;
/// Partitions that one batch writes to.
pub(super) const BATCH_PARTS: u32 = 3;
/// Bytes of a row's text.
const TEXT_BYTES: std::ops::Range<u64> = 20..1_500;

/// The keyspace and its tables; harmless when they are there.
pub(super) const SCHEMA: &[&str] = &[
    "CREATE KEYSPACE IF NOT EXISTS crash WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE IF NOT EXISTS crash.rows (worker int, bucket int, key int, version bigint, head text, tail text, \
     PRIMARY KEY ((worker, bucket), key))",
    "CREATE TABLE IF NOT EXISTS crash.batches (part int, worker int, id int, version bigint, \
     PRIMARY KEY ((part, worker), id))",
    "CREATE TABLE IF NOT EXISTS crash.columns (key int PRIMARY KEY)",
];

/// What a round writes.
pub(super) struct Workload {
    pub(super) address: String,
    pub(super) seed: u64,
    /// The first version to give.
    pub(super) versions_from: u64,
}

/// Running clients.
pub(super) struct Workers(Vec<JoinHandle<Report>>);

/// What one client did until its connection broke.
pub(super) struct Report {
    pub(super) writes: Vec<Write>,
    pub(super) emptied: Vec<Emptied>,
    pub(super) acknowledged: u64,
    pub(super) errors: u64,
    pub(super) error_example: Option<String>,
    pub(super) ended_at: Instant,
    pub(super) ending: String,
}

impl Workload {
    /// Starts all clients.
    pub(super) fn start(&self, mut operator: Operator) -> Workers {
        let start = |worker| {
            let (address, first_version) = (self.address.clone(), self.versions_from);
            let mut dice = Dice(self.seed ^ (u64::from(worker) << 32));
            std::thread::spawn(move || {
                Report::of(|report| write_until_broken(&address, worker, first_version, &mut dice, report))
            })
        };
        let mut workers: Vec<_> = (0..WORKER_COUNT).map(start).collect();
        let (address, first_version) = (self.address.clone(), self.versions_from);
        workers.push(std::thread::spawn(move || {
            Report::of(|report| operator.act_until_broken(&address, first_version, report))
        }));
        Workers(workers)
    }
}

impl Workers {
    /// Waits until all connections have broken.
    pub(super) fn join(self) -> Result<Vec<Report>, Failure> {
        let reports =
            self.0.into_iter().map(|worker| worker.join().map_err(|_| Failure::new("a worker panicked")));
        reports.collect()
    }
}

impl Report {
    fn of(work: impl FnOnce(&mut Report) -> Result<(), WireError>) -> Report {
        let mut report = Report {
            writes: Vec::new(),
            emptied: Vec::new(),
            acknowledged: 0,
            errors: 0,
            error_example: None,
            ended_at: Instant::now(),
            ending: String::new(),
        };
        let outcome = work(&mut report);
        report.ended_at = Instant::now();
        report.ending = outcome.err().map(|error| Failure::from(error).to_string()).unwrap_or_default();
        report
    }

    /// Asks for something, and remembers what that may have changed. Was it done?
    pub(super) fn ask(
        &mut self,
        connection: &mut Connection,
        statement: &str,
        writes: &[(Key, State)],
        empties: Option<Place>,
    ) -> Result<bool, WireError> {
        let asked = Instant::now();
        let (first_write, first_emptied) = (self.writes.len(), self.emptied.len());
        let write = |&(key, state): &(Key, State)| Write { key, state, asked, acknowledged: None };
        self.writes.extend(writes.iter().map(write));
        self.emptied.extend(empties.map(|place| Emptied { place, asked, acknowledged: None }));
        if let Answer::Error { code, message, .. } = connection.query(statement, &Request::default())?.answer
        {
            self.errors += 1;
            self.error_example.get_or_insert(format!("{statement:.100}: {code:#06x} {message}"));
            return Ok(false);
        }
        self.acknowledged += 1;
        let now = Some(Instant::now());
        self.writes[first_write..].iter_mut().for_each(|write| write.acknowledged = now);
        self.emptied[first_emptied..].iter_mut().for_each(|emptied| emptied.acknowledged = now);
        Ok(true)
    }
}

fn write_until_broken(
    address: &str,
    worker: u32,
    first_version: u64,
    dice: &mut Dice,
    report: &mut Report,
) -> Result<(), WireError> {
    let mut connection = Connection::open(address, 5)?;
    for version in first_version.. {
        let (key, state, statement) = next_write(worker, version, dice);
        report.ask(&mut connection, &statement, &[(key, state)], None)?;
    }
    Ok(())
}

/// Six inserts or overwrites, two deletes and two batches of ten writes.
fn next_write(worker: u32, version: u64, dice: &mut Dice) -> (Key, State, String) {
    let kind = dice.between(0, 10);
    if kind < 2 {
        let id = dice.between(0, BATCH_COUNT) as u32;
        let inserts = (0..BATCH_PARTS).map(|part| {
            format!(
                "INSERT INTO crash.batches (part, worker, id, version) VALUES ({part}, {worker}, {id}, {version});"
            )
        });
        let statement = format!("BEGIN BATCH {} APPLY BATCH", inserts.collect::<Vec<_>>().join(" "));
        return (Key::Batch { worker, id }, Some(version), statement);
    }
    let key = dice.between(0, KEY_COUNT) as u32;
    let bucket = key / BUCKET_KEYS;
    if kind < 4 {
        let statement =
            format!("DELETE FROM crash.rows WHERE worker = {worker} AND bucket = {bucket} AND key = {key}");
        return (Key::Row { worker, key }, None, statement);
    }
    let (head, tail) = texts(worker, key, version);
    let statement = format!(
        "INSERT INTO crash.rows (worker, bucket, key, version, head, tail) \
         VALUES ({worker}, {bucket}, {key}, {version}, '{head}', '{tail}')"
    );
    (Key::Row { worker, key }, Some(version), statement)
}

/// The texts of a row follow from its key and version, so that a mixture of two writes is seen.
pub(super) fn texts(worker: u32, key: u32, version: u64) -> (String, String) {
    let mut dice = Dice(version ^ (u64::from(worker) << 48) ^ (u64::from(key) << 32));
    let length = dice.between(TEXT_BYTES.start, TEXT_BYTES.end) as usize;
    let text = |dice: &mut Dice, length: usize| {
        std::iter::repeat_with(|| char::from(b'a' + (dice.next() % 26) as u8))
            .take(length)
            .collect::<String>()
    };
    let head = text(&mut dice, length);
    let tail = text(&mut dice, length / 4 + 1);
    (head, tail)
}
