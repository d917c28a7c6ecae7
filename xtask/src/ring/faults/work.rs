//! Writers that know what their rows may hold, and read what they wrote.
//!
//! Each row has one writer, which numbers its writes by the microsecond and gives that number as the timestamp. What
//! was acknowledged last, or was tried since, may be seen; a read narrows it, because a later one must not go back:
//!
//! ```text
//!   write 7  acknowledged        a read may see   7
//!   write 9  lost                                 7 9
//!   delete   lost                                 7 9 nothing
//!   read     sees 9                               9 nothing
//!   write 12 acknowledged                        12
//! ```
//!
//! What is not checked: rows with several writers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::super::Host;
use super::client::{Client, Lost, now_us, rows};
use crate::crash::Dice;
use crate::report::Failure;
use crate::wire::Answer;

/// Of each writer.
const ROW_COUNT_MAX: u64 = 4_000;
/// Of so many writes one begins a row; of so many one deletes one.
const NEW_ROW_EVERY: u64 = 3;
const DELETE_EVERY: u64 = 16;
/// Wrong answers are told so many times.
const WRONG_MAX: usize = 5;
/// Indexes of [`statements_of`].
pub(in crate::ring) const INSERT: usize = 0;
pub(in crate::ring) const DELETE: usize = 1;
pub(in crate::ring) const SELECT: usize = 2;

/// Some writers with a table and the nodes that they ask.
#[derive(Clone)]
pub(super) struct Orders {
    pub(super) hosts: Vec<Host>,
    /// With its keyspace; made by [`table`].
    pub(super) table: String,
    pub(super) consistency: u16,
    pub(super) writers: std::ops::Range<u64>,
    /// Between two requests of a writer.
    pub(super) pause: Duration,
}

/// A statement that makes the table of writers.
pub(in crate::ring) fn table(name: &str) -> String {
    format!("CREATE TABLE {name} (id bigint PRIMARY KEY, version bigint, v text)")
}

/// What reads all of it, and when it was written.
pub(super) fn select_all(table: &str) -> String {
    format!("SELECT id, version, v, writetime(v) FROM {table}")
}

/// What is done with a row.
pub(in crate::ring) fn statements_of(table: &str) -> Vec<String> {
    vec![
        format!("INSERT INTO {table} (id, version, v) VALUES (?, ?, ?)"),
        format!("DELETE FROM {table} WHERE id = ?"),
        format!("SELECT version, v FROM {table} WHERE id = ?"),
    ]
}

/// What [`INSERT`] binds.
pub(in crate::ring) fn insert_values(id: i64, version: i64) -> Vec<Vec<u8>> {
    vec![id.to_be_bytes().to_vec(), version.to_be_bytes().to_vec(), text(id, version).into_bytes()]
}

/// Rows by their ids: what may be seen, the oldest first. `None` is no row.
pub(super) type Ledger = BTreeMap<i64, Vec<Option<i64>>>;

/// What came of the work.
#[derive(Default)]
pub(super) struct Done {
    pub(super) ledger: Ledger,
    pub(super) lost: Vec<Lost>,
    pub(super) wrong: Vec<String>,
    /// Requests that were answered.
    pub(super) answered_count: u64,
    /// How often the next node was asked.
    pub(super) moved_count: u64,
}

impl Done {
    /// What others did besides.
    pub(super) fn add(&mut self, other: Done) {
        self.ledger.extend(other.ledger);
        self.lost.extend(other.lost);
        self.wrong.extend(other.wrong);
        self.answered_count += other.answered_count;
        self.moved_count += other.moved_count;
    }
}

/// Writers at work.
pub(super) struct Work {
    writers: Vec<JoinHandle<Done>>,
    is_over: Arc<AtomicBool>,
    answered_count: Arc<AtomicU64>,
}

impl Work {
    /// Begins it.
    pub(super) fn begin(orders: &[Orders], seed: u64) -> Work {
        let (is_over, answered_count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writers = orders.iter().flat_map(|orders| orders.writers.clone().map(move |id| (id, orders)));
        let begin = |(id, orders): (u64, &Orders)| {
            let writer = Writer::new(id, orders, Dice(seed ^ id << 32));
            let (is_over, answered_count, pause) = (is_over.clone(), answered_count.clone(), orders.pause);
            std::thread::spawn(move || writer.work(&is_over, &answered_count, pause))
        };
        let writers = writers.map(begin).collect();
        Work { writers, is_over, answered_count }
    }

    /// Requests that were answered so far.
    pub(super) fn answered_count(&self) -> u64 {
        self.answered_count.load(Ordering::Relaxed)
    }

    /// Ends it when all that is under way is answered or lost.
    pub(super) fn end(mut self) -> Result<Done, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut all = Done::default();
        for writer in self.writers.drain(..) {
            all.add(writer.join().map_err(|_| Failure::new("a writer panicked"))?);
        }
        Ok(all)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

struct Writer {
    client: Client,
    /// The ids of its rows begin here.
    first_id: i64,
    dice: Dice,
    last_version: i64,
    done: Done,
}

impl Writer {
    fn new(id: u64, orders: &Orders, dice: Dice) -> Writer {
        let statements = statements_of(&orders.table);
        let client = Client::new(&orders.hosts, statements, orders.consistency, id as usize);
        Writer { client, first_id: (id * ROW_COUNT_MAX) as i64, dice, last_version: 0, done: Done::default() }
    }

    fn work(mut self, is_over: &AtomicBool, answered_count: &AtomicU64, pause: Duration) -> Done {
        while !is_over.load(Ordering::Relaxed) {
            let outcome = match self.dice.between(0, 2) {
                0 => self.read(),
                _ => self.write(),
            };
            match outcome {
                Ok(()) => {
                    self.done.answered_count += 1;
                    answered_count.fetch_add(1, Ordering::Relaxed);
                }
                Err(lost) => self.done.lost.push(lost),
            }
            std::thread::sleep(pause);
        }
        self.done.moved_count = self.client.moved_count;
        self.done
    }

    fn any_row(&mut self) -> Option<i64> {
        let count = self.done.ledger.len() as u64;
        (count > 0).then(|| self.first_id + self.dice.between(0, count) as i64)
    }

    fn write(&mut self) -> Result<(), Lost> {
        let count = self.done.ledger.len() as u64;
        let is_new = count == 0 || (count < ROW_COUNT_MAX && self.dice.between(0, NEW_ROW_EVERY) == 0);
        let new = self.first_id + count as i64;
        let id = if is_new { new } else { self.any_row().unwrap_or(new) };
        let version = self.last_version.max(now_us() as i64 - 1) + 1;
        self.last_version = version;
        let is_delete = self.dice.between(0, DELETE_EVERY) == 0;
        let outcome = if is_delete { None } else { Some(version) };
        let may_be = self.done.ledger.entry(id).or_insert_with(|| vec![None]);
        may_be.push(outcome);
        let key = id.to_be_bytes().to_vec();
        let (statement, values) = match is_delete {
            true => (DELETE, vec![key]),
            false => (INSERT, insert_values(id, version)),
        };
        self.client.execute(statement, values, Some(version))?;
        *self.done.ledger.entry(id).or_default() = vec![outcome];
        Ok(())
    }

    fn read(&mut self) -> Result<(), Lost> {
        let Some(id) = self.any_row() else { return Ok(()) };
        let answer = self.client.execute(SELECT, vec![id.to_be_bytes().to_vec()], None)?;
        let seen = seen(id, answer);
        let may_be = self.done.ledger.entry(id).or_default();
        match seen.as_ref().ok().and_then(|seen| may_be.iter().position(|one| one == seen)) {
            Some(position) => _ = may_be.drain(..position),
            None if self.done.wrong.len() < WRONG_MAX => {
                self.done.wrong.push(format!("row {id} is shown as {seen:?} and may be {may_be:?}"));
            }
            None => {}
        }
        Ok(())
    }
}

/// The version of a row that was read; its text must be that of the version.
pub(in crate::ring) fn seen(id: i64, answer: Answer) -> Result<Option<i64>, String> {
    let rows = rows(answer).ok_or("no rows")?;
    match rows.rows.first() {
        None => Ok(None),
        Some(cells) => version_of(id, cells).map(Some),
    }
}

/// Of a row's version and text.
fn version_of(id: i64, cells: &[Option<Vec<u8>>]) -> Result<i64, String> {
    let [Some(version), Some(found), ..] = cells else { return Err(format!("half a row: {cells:?}")) };
    let version =
        i64::from_be_bytes(version.as_slice().try_into().map_err(|_| "a version of another length")?);
    match *found == text(id, version).into_bytes() {
        true => Ok(version),
        false => Err(format!("version {version} with another's text")),
    }
}

/// What a node has by [`select_all`] that may not be, or does not have: at most so many are told.
pub(super) fn wrong_rows(ledger: &Ledger, contents: &super::contents::Contents) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, may_be) in ledger {
        let found = match contents.get(id.to_be_bytes().as_slice()) {
            None => Ok(None),
            Some(cells) => version_of(*id, cells).map(Some),
        };
        if !found.as_ref().is_ok_and(|found| may_be.contains(found)) {
            wrong.push(format!("row {id} is {found:?} and may be {may_be:?}"));
        }
    }
    let strangers = contents.keys().filter(|key| {
        let id = key.as_slice().try_into().map(i64::from_be_bytes);
        !id.is_ok_and(|id| ledger.contains_key(&id))
    });
    wrong.extend(strangers.map(|key| format!("nobody wrote row {key:?}")));
    wrong
}

fn text(id: i64, version: i64) -> String {
    format!("{id} {version} {}", "x".repeat((version % 200) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, version: i64) -> (Vec<u8>, Vec<Option<Vec<u8>>>) {
        let cells = vec![Some(version.to_be_bytes().to_vec()), Some(text(id, version).into_bytes()), None];
        (id.to_be_bytes().to_vec(), cells)
    }

    #[test]
    fn a_row_that_was_lost_or_went_back_or_that_nobody_wrote_is_wrong() {
        let ledger = Ledger::from([(1, vec![Some(5)]), (2, vec![None, Some(7)]), (3, vec![None])]);
        let wrong = |rows: &[_]| wrong_rows(&ledger, &rows.iter().cloned().collect());
        assert!(wrong(&[row(1, 5)]).is_empty() && wrong(&[row(1, 5), row(2, 7)]).is_empty());
        assert_eq!(wrong(&[]), ["row 1 is Ok(None) and may be [Some(5)]"]);
        assert_eq!(wrong(&[row(1, 4)]), ["row 1 is Ok(Some(4)) and may be [Some(5)]"]);
        assert_eq!(wrong(&[row(1, 5), row(3, 9)]).len(), 1);
        assert_eq!(wrong(&[row(1, 5), row(4, 9)]).len(), 1);
        let mut torn = row(1, 5);
        torn.1[1] = Some(text(1, 6).into_bytes());
        assert_eq!(wrong(&[torn]), ["row 1 is Err(\"version 5 with another's text\") and may be [Some(5)]"]);
    }
}
