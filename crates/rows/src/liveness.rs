//! Whether a row exists by itself, apart from its cells.

use crate::NO_DELETION_TIME;

/// What an `INSERT` leaves on a row: it exists even if every cell is null, perhaps for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Liveness {
    /// µs; `i64::MIN` when the row has no liveness of its own.
    pub timestamp: i64,
    /// Seconds to live as written; 0 when it does not expire.
    pub ttl: u32,
    /// Seconds since 1970 when it expires; [`NO_DELETION_TIME`] when it does not.
    pub local_expiration_time: u32,
}

impl Liveness {
    /// No liveness: the row exists only through its cells.
    pub const NONE: Liveness =
        Liveness { timestamp: i64::MIN, ttl: 0, local_expiration_time: NO_DELETION_TIME };

    /// The row exists from that timestamp on.
    pub fn at(timestamp: i64) -> Self {
        Liveness { timestamp, ..Liveness::NONE }
    }

    /// The row exists from that timestamp on, for `ttl` seconds.
    pub fn expiring(timestamp: i64, ttl: u32, local_expiration_time: u32) -> Self {
        Liveness { timestamp, ttl, local_expiration_time }
    }

    /// Is there no liveness?
    pub fn is_none(self) -> bool {
        self.timestamp == i64::MIN
    }

    /// Does it expire some day?
    pub fn is_expiring(self) -> bool {
        self.ttl != 0
    }

    /// Does the row exist by this at `now` (seconds)?
    pub fn is_live(self, now: u32) -> bool {
        !self.is_none() && (!self.is_expiring() || now < self.local_expiration_time)
    }

    /// Does this one win over the other? Cassandra's `LivenessInfo.supersedes`: newer timestamp;
    /// expiring over lasting; later expiration; then the lower TTL.
    pub fn supersedes(self, other: Liveness) -> bool {
        if self.timestamp != other.timestamp {
            return self.timestamp > other.timestamp;
        }
        if self.is_expiring() != other.is_expiring() {
            return self.is_expiring();
        }
        let (mine, theirs) = (self.local_expiration_time, other.local_expiration_time);
        mine > theirs || (mine == theirs && self.ttl < other.ttl)
    }

    /// The one of the two that wins.
    pub fn max(self, other: Liveness) -> Liveness {
        if other.supersedes(self) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_wins_and_of_two_at_once_the_one_that_says_more_of_its_end() {
        let at = Liveness::expiring;
        let rising =
            [Liveness::NONE, Liveness::at(1), at(1, 9, 50), at(1, 9, 51), at(1, 8, 51), Liveness::at(2)];
        for (index, lower) in rising.into_iter().enumerate() {
            for higher in rising.into_iter().skip(index + 1) {
                assert!(higher.supersedes(lower) && !lower.supersedes(higher), "{higher:?} over {lower:?}");
                assert_eq!([lower.max(higher), higher.max(lower)], [higher; 2]);
            }
            assert!(!lower.supersedes(lower));
        }
    }
}
