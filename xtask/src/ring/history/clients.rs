//! Clients who note what they asked and saw, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::Host;
use super::super::faults::QUORUM;
use super::super::faults::client::{Client, now_us};
use super::super::faults::work::{DELETE, INSERT, SELECT, insert_values, seen, statements_of};
use super::contenders::{Contender, Game};
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
    pub(super) crowd: Crowd,
}

/// How many work on how much.
#[derive(Clone, Copy)]
pub(super) struct Crowd {
    /// Rows with one writer, at a time; and as many readers of each.
    pub(super) row_count: u64,
    pub(super) reader_count: u64,
    /// Rows of each game, at a time; and as many contenders of each.
    pub(super) contended_count: u64,
    pub(super) contender_count: u64,
}

/// What a client does with its row.
#[derive(Clone, Copy)]
enum Part {
    Writer,
    Reader,
    Contender(Game),
}

impl Crowd {
    /// What each client does, and which of the rows of a time is its row.
    fn parts(&self) -> Vec<(Part, u64)> {
        let mut parts = Vec::new();
        for place in 0..self.row_count {
            parts.push((Part::Writer, place));
            parts.extend((0..self.reader_count).map(|_| (Part::Reader, place)));
        }
        let mut place = self.row_count;
        for game in Game::ALL {
            for _ in 0..self.contended_count {
                parts.extend((0..self.contender_count).map(|_| (Part::Contender(game), place)));
                place += 1;
            }
        }
        assert!(place <= ROW_COUNT_MAX, "the rows of a time have numbers of their own");
        parts
    }
}

/// Clients at work.
pub(super) struct Clients {
    threads: Vec<JoinHandle<Result<Vec<Operation>, Failure>>>,
    going: Arc<Going>,
}

/// Whether clients go on, and how far they are.
#[derive(Default)]
struct Going {
    is_over: AtomicBool,
    answered_count: AtomicU64,
}

impl Going {
    fn is_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    fn count(&self, is_answered: bool) {
        self.answered_count.fetch_add(u64::from(is_answered), Ordering::Relaxed);
    }
}

impl Clients {
    /// Begins the work.
    pub(super) fn begin(orders: &Orders, seed: u64) -> Clients {
        let (going, began) = (Arc::new(Going::default()), Instant::now());
        let mut threads = Vec::new();
        for (number, (part, place_of_row)) in (0..).zip(orders.crowd.parts()) {
            let statements = match part {
                Part::Contender(game) => game.statements(),
                Part::Writer | Part::Reader => statements_of(&orders.table),
            };
            let client = Client::new(&orders.hosts, statements, QUORUM, number as usize);
            let dice = Dice(seed ^ number << 32);
            let watcher = Watcher { client, place_of_row, number, began, dice, last: 0, noted: Vec::new() };
            let going = Arc::clone(&going);
            threads.push(std::thread::spawn(move || watcher.work(part, &going)));
        }
        Clients { threads, going }
    }

    /// Requests that were answered so far.
    pub(super) fn answered_count(&self) -> u64 {
        self.going.answered_count.load(Ordering::Relaxed)
    }

    /// Ends it when all that is under way is answered or lost; gives all that was noted, in the order of asking.
    pub(super) fn end(mut self) -> Result<History, Failure> {
        self.going.is_over.store(true, Ordering::Relaxed);
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
        self.going.is_over.store(true, Ordering::Relaxed);
    }
}

/// A client that notes.
pub(super) struct Watcher {
    pub(super) client: Client,
    pub(super) number: u64,
    pub(super) dice: Dice,
    place_of_row: u64,
    began: Instant,
    last: i64,
    noted: Vec<Operation>,
}

impl Watcher {
    /// # Errors
    /// An answer shows what nobody has written whole.
    fn work(mut self, part: Part, going: &Going) -> Result<Vec<Operation>, Failure> {
        match part {
            Part::Writer => {
                while going.is_on() {
                    going.count(self.write());
                    self.pause();
                }
            }
            Part::Reader => {
                while going.is_on() {
                    going.count(self.read()?);
                    self.pause();
                }
            }
            Part::Contender(game) => {
                let mut contender = Contender::new(self, game);
                while going.is_on() {
                    going.count(contender.ask()?);
                    contender.watcher.pause();
                }
                return Ok(contender.watcher.noted);
            }
        }
        Ok(self.noted)
    }

    fn pause(&mut self) {
        std::thread::sleep(Duration::from_micros(self.dice.between(0, PAUSE_MAX_US)));
    }

    pub(super) fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// That of now; all clients of a row go to the next one at the same moment.
    pub(super) fn row(&self) -> i64 {
        let turn = self.began.elapsed().as_secs() / ROW_TIME.as_secs();
        (turn * ROW_COUNT_MAX + self.place_of_row) as i64
    }

    /// Notes a request: when it was asked and answered, what it expected and what it has written or seen.
    pub(super) fn note(
        &mut self,
        row: i64,
        kind: Kind,
        (asked_ns, answered_ns): (u64, Option<u64>),
        (expected, number): (Option<i64>, Option<i64>),
    ) {
        let client = self.number;
        self.noted.push(Operation { row, client, kind, asked_ns, answered_ns, expected, number });
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
            Ok(_) => self.note(row, kind, (asked_ns, Some(answered_ns)), (None, Some(number))),
            // All have refused it: it must not be seen.
            Err(lost) if lost.node.is_none() => {}
            Err(_) => self.note(row, kind, (asked_ns, None), (None, Some(number))),
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
        self.note(row, Kind::Read, (asked_ns, Some(answered_ns)), (None, number));
        Ok(true)
    }
}
