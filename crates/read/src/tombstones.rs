//! Tombstones that a read comes upon: counted for its page, and refused when they are too many.
//!
//! A read skips what is deleted without keeping any of it, but it does look at it: hundreds of thousands of
//! tombstones before the first row are work that the client does not see. So they are told with the page, for
//! each partition that is read by its key and for a range as a whole, and end a read above
//! `tombstone_failure_threshold`. What counts is said in [`rows::LiveRows::filter`]; each edge of a range
//! tombstone counts once, a partition's deletion does not.

use rows::{Clustering, LiveRows, Marker, PartitionKey};
use schema::Table;

use crate::{ReadError, TooManyTombstones};

/// What the node keeps for itself can always be read.
const KEYSPACES_WITHOUT: [&str; 2] = ["system", "system_schema"];

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

    /// Those that hold for a table, of a node that has these.
    #[must_use]
    pub fn of_table(self, table: &Table) -> Self {
        if KEYSPACES_WITHOUT.contains(&table.keyspace()) { TombstoneThresholds::NONE } else { self }
    }

    /// Are so many tombstones of the table more than the client may not hear of? `self` is the node's.
    #[inline]
    pub fn are_passed(self, tombstone_count: u64, table: &Table) -> bool {
        self.is_above(tombstone_count, table, |thresholds| thresholds.warn.min(thresholds.failure))
    }

    /// Are they more than one of the table's thresholds?
    #[inline]
    fn is_above(self, count: u64, table: &Table, threshold: impl Fn(Self) -> u64) -> bool {
        // The table is asked only when it matters.
        count > threshold(self) && count > threshold(self.of_table(table))
    }
}

impl Default for TombstoneThresholds {
    fn default() -> Self {
        TombstoneThresholds { warn: 1_000, failure: 100_000 }
    }
}

/// Tombstones that a read has come upon.
#[derive(Debug)]
pub(crate) struct Passed {
    /// Of the node; the table may have none.
    thresholds: TombstoneThresholds,
    /// In the partition that is read by its key, or in the range.
    count: u64,
    /// Rows that the page had before the partition.
    rows_before: u32,
    /// The last partition of a range that gave nothing to the page.
    last: Option<PartitionKey>,
    told: Vec<PartitionTombstones>,
}

impl Passed {
    pub(crate) fn new(thresholds: TombstoneThresholds) -> Self {
        Passed { thresholds, count: 0, rows_before: 0, last: None, told: Vec::new() }
    }

    /// Counts some more of a table, for a page that has so many rows.
    ///
    /// # Errors
    /// They are too many, which ends the read at that place.
    #[inline]
    pub(crate) fn add(
        &mut self,
        count: u64,
        table: &Table,
        row_count: u32,
        place: impl FnOnce() -> (PartitionKey, Clustering),
    ) -> Result<(), ReadError> {
        self.count += count;
        let is_too_many = self.thresholds.is_above(self.count, table, |thresholds| thresholds.failure);
        if is_too_many { Err(self.too_many(row_count, place())) } else { Ok(()) }
    }

    fn too_many(&self, row_count: u32, (key, clustering): (PartitionKey, Clustering)) -> ReadError {
        assert!(self.rows_before <= row_count, "rows of a page only get more");
        let live_count = u64::from(row_count - self.rows_before);
        let clustering = Some(clustering);
        let found = TooManyTombstones { tombstone_count: self.count, live_count, key, clustering };
        ReadError::TooManyTombstones(Box::new(found))
    }

    /// All that were come upon.
    pub(crate) fn total(&self) -> u64 {
        self.count + self.told.iter().map(|partition| partition.count).sum::<u64>()
    }

    /// A partition of a range gave nothing.
    pub(crate) fn pass(&mut self, key: PartitionKey) {
        self.last = Some(key);
    }

    /// The partition was read by its key, and the page has so many rows with it.
    pub(crate) fn leave(&mut self, key: &PartitionKey, row_count: u32) {
        let count = std::mem::take(&mut self.count);
        self.rows_before = row_count;
        if count > 0 {
            self.told.push(PartitionTombstones { key: key.clone(), count });
        }
    }

    /// What is to be told with the page, whose last partition is `given`; of a range, all together.
    pub(crate) fn told(mut self, is_range: bool, given: Option<&PartitionKey>) -> Vec<PartitionTombstones> {
        if is_range && self.count > 0 {
            let key = self.last.as_ref().max(given).cloned();
            self.told.extend(key.map(|key| PartitionTombstones { key, count: self.count }));
        }
        self.told
    }
}

/// How many tombstones an edge of a range tombstone counts for.
pub(crate) fn count_of(marker: &Marker, live: LiveRows) -> u64 {
    u64::from(live.counts(marker.left) || live.counts(marker.right))
}
