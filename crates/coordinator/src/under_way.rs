//! Logged batches over several shards that are under way: which tables they write to, how many there may be that could
//! not be finished, and how many of these are written again at a time.
//!
//! An *unfinished* batch is one that was recorded and failed since, or may have been recorded when it failed. It keeps
//! nothing in memory but a small task: when its turn comes, this reads the record and finishes the batch, or takes back
//! what may be recorded.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rows::Mutation;
use schema::TableId;
use smallvec::SmallVec;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::CoordinatorError;

/// When so many are unfinished, no other is begun: what is in their way is in the way of most. Each takes up to
/// `BATCH_BYTES_MAX` of the disk until it is done.
const UNFINISHED_MAX: usize = 256;

/// So many of them are in memory, to be written again, at a time.
const TRIED_TOGETHER_MAX: usize = 4;

/// Those of a node.
#[derive(Debug)]
pub(crate) struct BatchesUnderWay {
    begun: Mutex<Begun>,
    /// Told when one ends: a truncation may be waiting for it.
    ended: Notify,
    unfinished_count: AtomicUsize,
    turns: Semaphore,
}

/// Those that were begun and have not ended.
#[derive(Debug, Default)]
struct Begun {
    /// The number of the next: they are numbered as they begin.
    next_number: u64,
    /// The tables that each writes to, by its number.
    tables: BTreeMap<u64, Tables>,
}

/// Different tables, few of them.
type Tables = SmallVec<[TableId; 2]>;

/// One of them, until this is dropped.
#[derive(Debug)]
pub(crate) struct BatchUnderWay {
    all: Arc<BatchesUnderWay>,
    number: u64,
    is_unfinished: bool,
}

impl Default for BatchesUnderWay {
    fn default() -> Self {
        BatchesUnderWay {
            begun: Mutex::default(),
            ended: Notify::new(),
            unfinished_count: AtomicUsize::new(0),
            turns: Semaphore::new(TRIED_TOGETHER_MAX),
        }
    }
}

impl BatchesUnderWay {
    /// Begins one of these mutations. It is not recorded yet.
    ///
    /// # Errors
    /// `Overloaded`: too many are unfinished.
    pub(crate) fn begin(self: &Arc<Self>, mutations: &[Mutation]) -> Result<BatchUnderWay, CoordinatorError> {
        let count = self.unfinished_count();
        if count >= UNFINISHED_MAX {
            let what = format!("{count} logged batches could not be finished yet");
            return Err(CoordinatorError::Overloaded { what });
        }
        Ok(self.add(mutations))
    }

    fn add(self: &Arc<Self>, mutations: &[Mutation]) -> BatchUnderWay {
        let mut begun = self.begun();
        let number = begun.next_number;
        begun.next_number += 1;
        begun.tables.insert(number, tables_of(mutations));
        BatchUnderWay { all: Arc::clone(self), number, is_unfinished: false }
    }

    /// Waits until those have ended that write to a table and were begun before.
    pub(crate) async fn ended(&self, table: TableId) {
        let end_number = self.begun().next_number;
        loop {
            let mut ended = pin!(self.ended.notified());
            // Registered before the look, so that an end in between is not missed.
            ended.as_mut().enable();
            if !self.begun().write_to(table, end_number) {
                return;
            }
            ended.await;
        }
    }

    /// Does one of them write to that table?
    pub(crate) fn write_to(&self, table: TableId) -> bool {
        self.begun().write_to(table, u64::MAX)
    }

    /// What is done under this lock does not end half way, so a poisoned one still holds a sound value.
    fn begun(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many failed after they were recorded or may have been: they are tried again until they are whole or gone.
    pub(crate) fn unfinished_count(&self) -> usize {
        self.unfinished_count.load(Ordering::Relaxed)
    }
}

impl Begun {
    /// Does one below that number write to the table?
    fn write_to(&self, table: TableId, end_number: u64) -> bool {
        self.tables.range(..end_number).any(|(_, tables)| tables.contains(&table))
    }
}

fn tables_of(mutations: &[Mutation]) -> Tables {
    let mut tables = Tables::new();
    for mutation in mutations {
        if !tables.contains(&mutation.table) {
            tables.push(mutation.table);
        }
    }
    tables
}

impl BatchUnderWay {
    /// It failed after it was recorded or may have been.
    pub(crate) fn note_failure(&mut self) {
        if !std::mem::replace(&mut self.is_unfinished, true) {
            self.all.unfinished_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until it may be written again, as long as what this gives is kept.
    pub(crate) async fn turn(&self) -> SemaphorePermit<'_> {
        self.all.turns.acquire().await.expect("nobody closes it")
    }
}

impl Drop for BatchUnderWay {
    fn drop(&mut self) {
        if self.is_unfinished {
            let before = self.all.unfinished_count.fetch_sub(1, Ordering::Relaxed);
            assert!(before > 0, "what is unfinished was counted");
        }
        let tables = self.all.begun().tables.remove(&self.number);
        assert!(tables.is_some(), "a batch that is under way is known until it ends");
        self.all.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt;
    use rows::{MutationBuilder, PartitionKey};
    use uuid::Uuid;

    use super::*;

    fn table(number: u128) -> TableId {
        TableId(Uuid::from_u128(number))
    }

    fn write_to(number: u128) -> Mutation {
        MutationBuilder::new(table(number), PartitionKey::new(Bytes::from_static(b"key"))).finish()
    }

    #[test]
    fn those_are_waited_for_that_write_to_the_table_and_were_begun_before() {
        let all = Arc::<BatchesUnderWay>::default();
        let begin = |mutations: &[Mutation]| all.begin(mutations).expect("none failed");
        let (of_one, of_both) = (begin(&[write_to(1)]), begin(&[write_to(2), write_to(1), write_to(2)]));
        assert!(all.write_to(table(2)) && !all.write_to(table(3)));
        assert!(all.ended(table(3)).now_or_never().is_some(), "nobody writes to it");
        let mut ended = pin!(all.ended(table(1)));
        assert!(ended.as_mut().now_or_never().is_none(), "two do");
        let later = begin(&[write_to(1)]);
        drop(of_one);
        assert!(ended.as_mut().now_or_never().is_none(), "one still does");
        drop(of_both);
        assert!(ended.now_or_never().is_some(), "what came later is not waited for");
        assert!(all.write_to(table(1)) && !all.write_to(table(2)));
        drop(later);
        assert!(!all.write_to(table(1)));
    }

    #[test]
    fn no_more_than_a_few_are_tried_together() {
        let all = Arc::<BatchesUnderWay>::default();
        let begun: Vec<_> = (0..=TRIED_TOGETHER_MAX).map(|_| all.begin(&[]).expect("none failed")).collect();
        let turns: Vec<_> = begun.iter().map(|batch| batch.turn().now_or_never()).collect();
        let count = turns.iter().flatten().count();
        assert_eq!((count, turns.len()), (TRIED_TOGETHER_MAX, TRIED_TOGETHER_MAX + 1));
        drop(turns);
        assert!(begun[0].turn().now_or_never().is_some(), "the next has its turn");
    }

    #[test]
    #[should_panic(expected = "what is unfinished was counted")]
    fn none_ends_unfinished_that_was_not_counted() {
        let all = Arc::<BatchesUnderWay>::default();
        let mut batch = all.begin(&[]).expect("none failed");
        batch.is_unfinished = true;
    }
}
