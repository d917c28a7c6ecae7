//! What is asked: which rows of which partitions, how many, from where on.

use std::sync::Arc;

use rows::{Clustering, ClusteringComparator, Increments, PartitionKey, RingRange, Slice, Slices};
use schema::{ColumnId, Table};

/// A read of some rows of one table.
#[derive(Clone, Debug)]
pub struct ReadCommand {
    /// The table as the statement saw it, which says what of a row is shown. Versions of a row are merged by the table
    /// as it is where they lie: that knows the columns they have.
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

    /// The same of these keys, which are some of its own; it goes on where the page before ended, if that was in one of
    /// them.
    #[must_use]
    pub fn of_keys(&self, keys: Vec<PartitionKey>) -> Self {
        // Not all of it is cloned: its own keys may be many.
        ReadCommand {
            table: Arc::clone(&self.table),
            slices: self.slices.clone(),
            columns: self.columns.clone(),
            reversed: self.reversed,
            limits: self.limits,
            now: self.now,
            resume: self.resume.clone().filter(|position| keys.contains(&position.key)),
            target: ReadTarget::Keys(keys),
        }
    }

    /// The rows of a partition as they are before something is added to counters of them.
    pub fn of_increments(table: Arc<Table>, key: PartitionKey, increments: &Increments, now: u32) -> Self {
        let comparator = ClusteringComparator::new(Arc::clone(table.clustering_types()));
        let rows = increments.rows.iter().map(|clustering| Slice::prefix(clustering.clone()));
        ReadCommand {
            slices: Slices::new(rows.collect(), &comparator),
            columns: ReadColumns::Some(increments.columns.as_slice().into()),
            ..ReadCommand::new(table, ReadTarget::Keys(vec![key]), now)
        }
    }

    /// How many rows of a partition earlier pages gave, if the one before ended in it.
    pub fn resumed_in(&self, key: &PartitionKey) -> Option<u32> {
        self.resume.as_ref().filter(|resume| resume.key == *key).map(|resume| resume.row_count)
    }

    /// Do the partitions that are asked for come in the order of the ring, each once?
    pub fn is_in_ring_order(&self) -> bool {
        match &self.target {
            ReadTarget::Keys(keys) => keys.is_sorted_by(|one, other| one < other),
            ReadTarget::Range(_) => true,
        }
    }

    /// Is every partition asked for whole, and at most one row?
    pub fn has_single_rows(&self) -> bool {
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

    /// Do they ascend, so that each is found?
    pub(crate) fn are_sorted(&self) -> bool {
        match self {
            ReadColumns::All => true,
            ReadColumns::Some(ids) => ids.is_sorted_by(|a, b| a < b),
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

/// When a page is full. A partition that gives only its static row counts as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Rows in all.
    pub row_count: u32,
    /// Rows of one partition, over all pages.
    pub rows_per_partition: u32,
    /// Bytes of memory ([`crate::PartitionRows::memory_bytes`]) with which a page ends early.
    pub bytes: usize,
    /// Bytes of memory that a page never has more of: a row that would bring it above begins the next page. One that
    /// is too large for a page of its own can not be read by it.
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

impl ReadPosition {
    /// Behind a partition that gives no more.
    pub fn behind(key: PartitionKey) -> Self {
        ReadPosition { key, clustering: None, row_count: 0 }
    }
}
