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
}

impl Acknowledged {
    /// Of so many rows that are there.
    pub(super) fn new(count: u64) -> Acknowledged {
        Acknowledged {
            next: AtomicU64::new(count),
            there: AtomicU64::new(count),
            ahead: Mutex::new(BTreeSet::new()),
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
}
