//! How many replicas a consistency level means.

use protocol::Consistency;

/// Those that clients use.
pub(crate) const LEVELS: [Consistency; 5] =
    [Consistency::One, Consistency::Two, Consistency::Quorum, Consistency::LocalQuorum, Consistency::All];

/// How many replicas of so many.
pub(crate) fn count_of(level: Consistency, factor: usize) -> usize {
    match level {
        Consistency::One => 1,
        Consistency::Two => 2,
        Consistency::Quorum | Consistency::LocalQuorum => factor / 2 + 1,
        Consistency::All => factor,
        other => unreachable!("{other:?} is none of theirs"),
    }
}
