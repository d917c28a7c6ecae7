//! Numbers of rows that are inserted while others are read.
//!
//! A row may be chosen for reading once its insert was acknowledged, and all before it were: what YCSB's
//! `AcknowledgedCounterGenerator` keeps.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows that are there, and those that are on their way.
#[derive(Debug)]
pub(super) struct Acknowledged {
    /// The next row's number.
    next: AtomicU64,
    /// All rows below are there.
    there: AtomicU64,
    /// Rows that are there though one below them is not.
    ahead: Mutex<BTreeSet<u64>>,
    /// Rows whose insert failed: they are there or not.
    doubtful: Mutex<BTreeSet<u64>>,
}

impl Acknowledged {
    /// Of so many rows that are there.
    pub(super) fn new(count: u64) -> Acknowledged {
        Acknowledged {
            next: AtomicU64::new(count),
            there: AtomicU64::new(count),
            ahead: Mutex::new(BTreeSet::new()),
            doubtful: Mutex::new(BTreeSet::new()),
        }
    }

    /// The number of a row that is inserted now.
    pub(super) fn begin(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Its insert was acknowledged.
    pub(super) fn acknowledge(&self, row: u64) {
        let mut ahead = self.ahead.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        ahead.insert(row);
        let mut there = self.there.load(Ordering::Relaxed);
        while ahead.remove(&there) {
            there += 1;
        }
        self.there.store(there, Ordering::Relaxed);
    }

    /// Its insert failed. It counts as a row that is there, so that those behind it are chosen; who does not find it
    /// has found nothing wrong.
    pub(super) fn doubt(&self, row: u64) {
        self.doubtful.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(row);
        self.acknowledge(row);
    }

    /// May it be missing?
    pub(super) fn is_doubtful(&self, row: u64) -> bool {
        self.doubtful.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains(&row)
    }

    /// How many rows are there; they have the numbers below.
    pub(super) fn count(&self) -> u64 {
        self.there.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_there_once_all_before_it_are() {
        let rows = Acknowledged::new(10);
        let begun: Vec<u64> = (0..3).map(|_| rows.begin()).collect();
        assert_eq!(begun, [10, 11, 12]);
        rows.acknowledge(12);
        rows.acknowledge(11);
        assert_eq!(rows.count(), 10);
        rows.acknowledge(10);
        assert_eq!(rows.count(), 13);
    }

    #[test]
    fn an_insert_that_failed_holds_up_no_other() {
        let rows = Acknowledged::new(0);
        let [first, second] = [rows.begin(), rows.begin()];
        rows.acknowledge(second);
        rows.doubt(first);
        assert_eq!((rows.count(), rows.is_doubtful(first), rows.is_doubtful(second)), (2, true, false));
    }
}
