//! What each partition is known to hold: the number that a conditional statement has to expect.
//!
//! A lightweight transaction only holds if it expects what is there. So the last number that was applied is kept for
//! each partition, shared by all threads; an answer that says "not applied, it is 7" teaches that it is 7. Two
//! operations on one partition at the same time expect the same, and one of them is not applied: that is what such a
//! load is about, and it is counted apart.

use std::sync::atomic::{AtomicU64, Ordering};

/// Partitions whose number is kept, at most: 128 MB.
pub(super) const PARTITION_COUNT_MAX: u64 = 1 << 24;

/// Nothing is known of a partition, it may not be there.
const UNKNOWN: u64 = u64::MAX;

/// The numbers.
#[derive(Debug)]
pub(super) struct Held {
    numbers: Vec<AtomicU64>,
}

impl Held {
    /// Of so many partitions of which nothing is known.
    pub(super) fn new(partition_count: u64) -> Held {
        Held { numbers: (0..partition_count).map(|_| AtomicU64::new(UNKNOWN)).collect() }
    }

    /// What a partition holds, if that is known.
    pub(super) fn of(&self, partition: u64) -> Option<u64> {
        let number = self.numbers.get(partition as usize)?.load(Ordering::Relaxed);
        (number != UNKNOWN).then_some(number)
    }

    /// This is what it holds now; none if it is not there.
    pub(super) fn set(&self, partition: u64, number: Option<u64>) {
        if let Some(place) = self.numbers.get(partition as usize) {
            place.store(number.unwrap_or(UNKNOWN), Ordering::Relaxed);
        }
    }
}

/// The number in a cell, of any whole type of CQL.
pub(super) fn number_of(cell: &[u8]) -> Option<u64> {
    let first = *cell.first()?;
    let is_small = cell.len() <= 8 && first < 0x80;
    is_small.then(|| cell.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_held_and_others_are_unknown() {
        let held = Held::new(3);
        held.set(1, Some(7));
        held.set(99, Some(7));
        assert_eq!((held.of(0), held.of(1), held.of(99)), (None, Some(7), None));
        held.set(1, None);
        assert_eq!(held.of(1), None);
    }

    #[test]
    fn cells_of_any_width_are_numbers() {
        assert_eq!(number_of(&300i32.to_be_bytes()), Some(300));
        assert_eq!(number_of(&300i64.to_be_bytes()), Some(300));
        assert_eq!(number_of(&[7]), Some(7));
        assert_eq!((number_of(&[]), number_of(&(-1i32).to_be_bytes())), (None, None));
    }
}
