//! Reading partitions step by step without waiting: a cursor says what it lacks instead.

use crate::{PartitionHeader, Unfiltered};

/// What a cursor yields. A stream is a run of partitions in ring order, each a header and then
/// its content in clustering order (or in reverse, when the cursor was made so).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<N> {
    /// The next partition begins.
    Header(PartitionHeader),
    /// The next row or marker of the current partition.
    Item(Unfiltered),
    /// Bytes are missing; fetch them and call again.
    Need(N),
    /// Nothing more.
    End,
}

/// A source of partitions: a memtable, a table file, or several merged.
///
/// Synchronous and pure, so that merging is: whoever drives it decides how bytes are fetched.
pub trait UnfilteredCursor {
    /// What to fetch before calling again.
    type Need;
    /// Why the source can not be read.
    type Error;

    /// The next step. After `Need`, the same step is tried again; after `End`, `End` forever.
    ///
    /// # Errors
    /// Whatever the source finds wrong, damage above all. The cursor is of no use afterwards.
    fn step(&mut self) -> Result<Step<Self::Need>, Self::Error>;

    /// Is the next step another version of the row that the last one gave? It is there at once.
    fn has_more_versions(&self) -> bool {
        false
    }
}
