//! Clients who note what they asked and saw, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::Host;
use super::super::faults::client::{Client, now_us};
use super::super::faults::work::{DELETE, INSERT, SELECT, insert_values, seen, statements_of};
use super::record::{History, Kind, Operation};
use crate::crash::Dice;
use crate::report::Failure;

/// Between two requests of a client, at most.
const PAUSE_MAX_US: u64 = 4_000;
/// Of so many writes one deletes the row.
const DELETE_EVERY: u64 = 8;
/// So long clients stay with a row: what the judge remembers grows with the square of a row's requests.
const ROW_TIME: Duration = Duration::from_secs(8);
/// Rows that are worked on at a time, at most; those of the next time have greater numbers by that.
const ROW_COUNT_MAX: u64 = 1_000;

/// Who works on what.
pub(super) struct Orders {
    pub(super) hosts: Vec<Host>,
    /// Made by [`table`](super::super::faults::work::table).
    pub(super) table: String,
    pub(super) consistency: u16,
    /// At a time.
    pub(super) row_count: u64,
    /// Of each row, beside its one writer.
    pub(super) reader_count: u64,
}

/// Clients at work.
pub(super) struct Clients {
    threads: Vec<JoinHandle<Result<Vec<Operation>, Failure>>>,
    is_over: Arc<AtomicBool>,
    answered_count: Arc<AtomicU64>,
}

impl Clients {
    /// Begins the work.
    pub(super) fn begin(orders: &Orders, seed: u64) -> Clients {
        let (is_over, answered_count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let began = Instant::now();
        let mut threads = Vec::new();
        for place_of_row in 0..orders.row_count.min(ROW_COUNT_MAX) {
            for reader in 0..=orders.reader_count {
                let number = threads.len() as u64;
                let statements = statements_of(&orders.table);
                let client = Client::new(&orders.hosts, statements, orders.consistency, number as usize);
                let watcher = Watcher {
                    client,
                    place_of_row,
                    number,
                    began,
                    dice: Dice(seed ^ number << 32),
                    last: 0,
                    noted: Vec::new(),
                };
                let (is_over, answered_count) = (Arc::clone(&is_over), Arc::clone(&answered_count));
                let is_writer = reader == 0;
                threads.push(std::thread::spawn(move || watcher.work(is_writer, &is_over, &answered_count)));
            }
        }
        Clients { threads, is_over, answered_count }
    }

    /// Requests that were answered so far.
    pub(super) fn answered_count(&self) -> u64 {
        self.answered_count.load(Ordering::Relaxed)
    }

    /// Ends it when all that is under way is answered or lost; gives all that was noted, in the order of asking.
    pub(super) fn end(mut self) -> Result<History, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut noted = Vec::new();
        for thread in self.threads.drain(..) {
            noted.extend(thread.join().map_err(|_| Failure::new("a client panicked"))??);
        }
        noted.sort_by_key(|operation: &Operation| operation.asked_ns);
        Ok(History(noted))
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

struct Watcher {
    client: Client,
    place_of_row: u64,
    number: u64,
    began: Instant,
    dice: Dice,
    last: i64,
    noted: Vec<Operation>,
}

impl Watcher {
    /// # Errors
    /// A read shows what no write has written whole.
    fn work(
        mut self,
        is_writer: bool,
        is_over: &AtomicBool,
        answered_count: &AtomicU64,
    ) -> Result<Vec<Operation>, Failure> {
        while !is_over.load(Ordering::Relaxed) {
            if if is_writer { self.write() } else { self.read()? } {
                answered_count.fetch_add(1, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_micros(self.dice.between(0, PAUSE_MAX_US)));
        }
        Ok(self.noted)
    }

    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// That of now; all clients of a row go to the next one at the same moment.
    fn row(&self) -> i64 {
        let turn = self.began.elapsed().as_secs() / ROW_TIME.as_secs();
        (turn * ROW_COUNT_MAX + self.place_of_row) as i64
    }

    fn note(&mut self, row: i64, kind: Kind, asked_ns: u64, answered_ns: Option<u64>, number: Option<i64>) {
        let client = self.number;
        self.noted.push(Operation { row, client, kind, asked_ns, answered_ns, number });
    }

    /// Writes or deletes the row at a greater number than before. Was it answered?
    fn write(&mut self) -> bool {
        let (row, number) = (self.row(), self.last.max(now_us() as i64 - 1) + 1);
        self.last = number;
        let (kind, statement, values) = match self.dice.between(0, DELETE_EVERY) {
            0 => (Kind::Delete, DELETE, vec![row.to_be_bytes().to_vec()]),
            _ => (Kind::Write, INSERT, insert_values(row, number)),
        };
        let asked_ns = self.elapsed_ns();
        let outcome = self.client.execute(statement, values, Some(number));
        let answered_ns = self.elapsed_ns();
        match &outcome {
            Ok(_) => self.note(row, kind, asked_ns, Some(answered_ns), Some(number)),
            // All have refused it: it must not be seen.
            Err(lost) if lost.node.is_none() => {}
            Err(_) => self.note(row, kind, asked_ns, None, Some(number)),
        }
        outcome.is_ok()
    }

    fn read(&mut self) -> Result<bool, Failure> {
        let (row, asked_ns) = (self.row(), self.elapsed_ns());
        let Ok(answer) = self.client.execute(SELECT, vec![row.to_be_bytes().to_vec()], None) else {
            return Ok(false);
        };
        let answered_ns = self.elapsed_ns();
        let number = seen(row, answer).map_err(|what| Failure::new(format!("row {row}: {what}")))?;
        self.note(row, Kind::Read, asked_ns, Some(answered_ns), number);
        Ok(true)
    }
}
