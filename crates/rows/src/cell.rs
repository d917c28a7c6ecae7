//! One value at one time, and which of two wins.

use crate::NO_DELETION_TIME;

/// A cell, seen in place in the bytes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// µs.
    pub timestamp: i64,
    /// Seconds to live as written; 0 when the cell does not expire.
    pub ttl: u32,
    /// Expiring cell: when it expires. Tombstone: when it was deleted. Else [`NO_DELETION_TIME`].
    pub local_deletion_time: u32,
    /// Which element of a multi-cell collection or field of a user type; empty for a simple cell.
    pub path: &'a [u8],
    /// The value in its native encoding; empty for a tombstone.
    pub value: &'a [u8],
}

impl<'a> CellRef<'a> {
    /// A lasting value.
    pub fn live(timestamp: i64, value: &'a [u8]) -> Self {
        CellRef { timestamp, ttl: 0, local_deletion_time: NO_DELETION_TIME, path: b"", value }
    }

    /// A value that expires.
    pub fn expiring(timestamp: i64, ttl: u32, local_deletion_time: u32, value: &'a [u8]) -> Self {
        CellRef { timestamp, ttl, local_deletion_time, path: b"", value }
    }

    /// A deleted value.
    pub fn tombstone(timestamp: i64, local_deletion_time: u32) -> Self {
        CellRef { timestamp, ttl: 0, local_deletion_time, path: b"", value: b"" }
    }

    /// The same cell under a path.
    pub fn with_path(self, path: &'a [u8]) -> Self {
        CellRef { path, ..self }
    }

    /// Does it expire some day?
    pub fn is_expiring(&self) -> bool {
        self.ttl != 0
    }

    /// Is it deleted, or will it expire?
    pub fn ends(&self) -> bool {
        self.local_deletion_time != NO_DELETION_TIME
    }

    /// Is it a deletion?
    pub fn is_tombstone(&self) -> bool {
        self.ends() && self.ttl == 0
    }

    /// Does it hold a value at `now` (seconds)?
    pub fn is_live(&self, now: u32) -> bool {
        !self.ends() || (self.ttl != 0 && now < self.local_deletion_time)
    }

    /// Which of two cells of one column and path wins, by Cassandra 5's `Cells.resolveRegular`:
    /// newer timestamp; deleted or expiring over lasting (CASSANDRA-14592); tombstone over
    /// expiring; later local deletion time; lower TTL; greater value. Last the greater path, since
    /// paths may be equal in their type's order and differ in their bytes.
    #[must_use]
    pub fn reconcile(self, other: CellRef<'a>) -> CellRef<'a> {
        let is_newer = self.timestamp > other.timestamp;
        let wins = is_newer || (self.timestamp == other.timestamp && self.rank() >= other.rank());
        if wins { self } else { other }
    }

    /// Of cells of one timestamp.
    fn rank(&self) -> (bool, bool, u32, std::cmp::Reverse<u32>, &[u8], &[u8]) {
        (
            self.ends(),
            self.is_tombstone(),
            self.local_deletion_time,
            std::cmp::Reverse(self.ttl),
            self.value,
            self.path,
        )
    }
}
