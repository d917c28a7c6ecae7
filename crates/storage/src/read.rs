//! What is asked of storage, and what it answers.

use std::sync::Arc;

use rows::{Clustering, PartitionKey, Row, Slices};
use schema::{ColumnId, Table};
use smallvec::SmallVec;
use types::Token;

/// A read of some rows of one table.
#[derive(Clone, Debug)]
pub struct ReadCommand {
    /// The table as the statement saw it.
    pub table: Arc<Table>,
    /// Which partitions.
    pub target: ReadTarget,
    /// Which rows of each; none to get only keys and static rows.
    pub slices: Slices,
    /// Which columns of each row.
    pub columns: ReadColumns,
    /// Last rows of a partition first.
    pub reversed: bool,
    /// When to stop.
    pub limits: ReadLimits,
    /// The moment that decides what has expired, seconds since 1970.
    pub now: u32,
    /// Where the page before ended.
    pub resume: Option<ReadPosition>,
}

impl ReadCommand {
    /// The first page of these partitions, whole.
    pub fn new(table: Arc<Table>, target: ReadTarget, now: u32) -> Self {
        ReadCommand {
            table,
            target,
            slices: Slices::all(),
            columns: ReadColumns::All,
            reversed: false,
            limits: ReadLimits::PAGE,
            now,
            resume: None,
        }
    }

    /// Is every partition asked for whole, and at most one row?
    pub(crate) fn has_single_rows(&self) -> bool {
        self.table.clustering_types().is_empty() && self.limits.rows_per_partition > 0 && self.slices.is_all()
    }
}

/// The static and regular columns that a read needs. A row that has none of them is answered all the same, since the
/// others decide, too, whether it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadColumns {
    /// All that the table has.
    All,
    /// These, ascending. Cells of others are left out of rows of more than a few bytes.
    Some(Arc<[ColumnId]>),
}

impl ReadColumns {
    /// Is the column one of them?
    pub fn contains(&self, id: ColumnId) -> bool {
        match self {
            ReadColumns::All => true,
            ReadColumns::Some(ids) => ids.binary_search(&id).is_ok(),
        }
    }
}

/// Which partitions a read is about.
#[derive(Clone, Debug)]
pub enum ReadTarget {
    /// These, answered in this order.
    Keys(Vec<PartitionKey>),
    /// All in a part of the ring, in ring order.
    Range(RingRange),
}

/// A part of the ring that does not wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingRange {
    /// First token in the range.
    pub first: Token,
    /// Last token in the range. The range is empty when it is below `first`.
    pub last: Token,
}

impl RingRange {
    /// The whole ring.
    pub const ALL: RingRange = RingRange { first: Token(i64::MIN), last: Token(i64::MAX) };

    /// Is the token in it?
    pub fn contains(&self, token: Token) -> bool {
        self.first <= token && token <= self.last
    }
}

/// When a page is full. A partition that gives only its static row counts as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Rows in all.
    pub row_count: u32,
    /// Rows of one partition, over all pages.
    pub rows_per_partition: u32,
    /// Bytes of memory ([`PartitionRows::memory_bytes`]) with which a page ends early.
    pub bytes: usize,
    /// Bytes of memory that a page never has more of: a row that would bring it above begins the next page. One that
    /// is too large for a page of its own is [`crate::StorageError::RowTooLarge`].
    pub bytes_max: usize,
}

impl ReadLimits {
    /// As much as one page may hold.
    pub const PAGE: ReadLimits =
        ReadLimits { row_count: 10_000, rows_per_partition: u32::MAX, bytes: 4 << 20, bytes_max: usize::MAX };
}

/// The last thing a page returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPosition {
    /// The partition it was in.
    pub key: PartitionKey,
    /// The row; `None` when the partition gave its static row alone, and is done.
    pub clustering: Option<Clustering>,
    /// Rows this partition has given so far.
    pub row_count: u32,
}

/// The live rows of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRows {
    /// Its key.
    pub key: PartitionKey,
    /// Its static row, as far as it is live.
    pub static_row: Option<Row>,
    /// Its rows in the order asked for.
    pub rows: RowList,
}

impl PartitionRows {
    /// What it takes in memory without its rows, about.
    pub const OWN_BYTES: usize = size_of::<PartitionRows>();

    /// What a row of a partition takes in memory, about.
    pub fn row_bytes(row: &Row) -> usize {
        size_of::<Row>() + row.as_encoded().len()
    }

    /// What all of it takes in memory, about.
    pub fn memory_bytes(&self) -> usize {
        let rows = self.rows.iter().chain(&self.static_row).map(PartitionRows::row_bytes);
        PartitionRows::OWN_BYTES + self.key.bytes.len() + rows.sum::<usize>()
    }
}

/// Rows of one partition: of many partitions there is one, which needs no memory of its own.
pub type RowList = SmallVec<[Row; 1]>;

/// One page of an answer.
#[derive(Clone, Debug, Default)]
pub struct ReadPage {
    /// Partitions that hold anything, in the order asked for; the first may go on from the page before.
    pub partitions: Vec<PartitionRows>,
    /// Where to go on; `None` when there is nothing more.
    pub next: Option<ReadPosition>,
    /// Tombstones passed on the way, as Cassandra counts them: of keys, those of each partition that has any; of a
    /// range, all together.
    pub tombstones: Vec<PartitionTombstones>,
}

impl ReadPage {
    /// What its rows take in memory, about.
    pub fn memory_bytes(&self) -> usize {
        self.partitions.iter().map(PartitionRows::memory_bytes).sum()
    }

    /// All tombstones passed on the way.
    pub fn tombstone_count(&self) -> u64 {
        self.tombstones.iter().map(|partition| partition.count).sum()
    }

    /// Adds what a further part of a range had.
    pub fn add_tombstones_of_range(&mut self, more: Vec<PartitionTombstones>) {
        for part in more {
            match self.tombstones.last_mut() {
                None => self.tombstones.push(part),
                Some(all) => {
                    all.count += part.count;
                    all.key = part.key.max(all.key.clone());
                }
            }
        }
    }
}

/// How many tombstones a read came upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionTombstones {
    /// In which partition; of a range, the last one that was looked at.
    pub key: PartitionKey,
    /// So many.
    pub count: u64,
}

/// How many tombstones a read may come upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TombstoneThresholds {
    /// Above this the client and the log are told.
    pub warn: u64,
    /// Above this the read fails.
    pub failure: u64,
}

impl TombstoneThresholds {
    /// As many as there are.
    pub const NONE: TombstoneThresholds = TombstoneThresholds { warn: u64::MAX, failure: u64::MAX };
}

impl Default for TombstoneThresholds {
    fn default() -> Self {
        TombstoneThresholds { warn: 1_000, failure: 100_000 }
    }
}
