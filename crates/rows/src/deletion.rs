//! When something was deleted, and by which clock.

use std::cmp::Ordering;

/// The local deletion time of what is not deleted.
pub const NO_DELETION_TIME: u32 = u32::MAX;

/// A deletion of a partition, row, range or collection: everything under it with a timestamp up
/// to `timestamp` is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeletionTime {
    /// Timestamp of the deletion, µs; `i64::MIN` when nothing is deleted.
    pub timestamp: i64,
    /// Seconds since 1970 by the clock of the deleting node; starts `gc_grace_seconds`.
    pub local_deletion_time: u32,
}

impl DeletionTime {
    /// Nothing is deleted.
    pub const LIVE: DeletionTime =
        DeletionTime { timestamp: i64::MIN, local_deletion_time: NO_DELETION_TIME };

    /// Is nothing deleted?
    pub fn is_live(self) -> bool {
        self.timestamp == i64::MIN && self.local_deletion_time == NO_DELETION_TIME
    }

    /// Does this deletion hide a cell or liveness of that timestamp?
    pub fn deletes(self, timestamp: i64) -> bool {
        !self.is_live() && timestamp <= self.timestamp
    }

    /// Does this deletion win over the other? Newer timestamp first, then later local time.
    pub fn supersedes(self, other: DeletionTime) -> bool {
        self.rank() > other.rank()
    }

    /// The one of the two that wins.
    pub fn max(self, other: DeletionTime) -> DeletionTime {
        if other.supersedes(self) { other } else { self }
    }

    /// May it be forgotten, given that deletions before `gc_before` (seconds) have been seen by all?
    pub fn is_purgeable(self, gc_before: u32) -> bool {
        !self.is_live() && self.local_deletion_time < gc_before
    }

    fn rank(self) -> (i64, bool, u32) {
        // A live time has the greatest local time and must lose against any deletion at i64::MIN.
        (self.timestamp, !self.is_live(), self.local_deletion_time)
    }
}

impl PartialOrd for DeletionTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DeletionTime {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_sort_by_who_wins_and_none_comes_first() {
        let at = |timestamp, local_deletion_time| DeletionTime { timestamp, local_deletion_time };
        let rising = [DeletionTime::LIVE, at(i64::MIN, 1), at(-1, 9), at(0, 1), at(0, 2), at(1, 0)];
        for (index, lower) in rising.into_iter().enumerate() {
            for higher in rising.into_iter().skip(index + 1) {
                assert!(lower < higher && higher.supersedes(lower) && !lower.supersedes(higher));
                assert_eq!([lower.max(higher), higher.max(lower)], [higher; 2]);
            }
            assert!(!lower.supersedes(lower));
        }
    }
}
