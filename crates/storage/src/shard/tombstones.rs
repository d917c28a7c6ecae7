//! Tombstones that a read comes upon: counted for its page, and refused when they are too many.
//!
//! A read skips what is deleted without keeping any of it, but it does look at it: hundreds of thousands of
//! tombstones before the first row are work that the client does not see. So they are told with the page, for
//! each partition that is read by its key and for a range as a whole, and end a read above
//! `tombstone_failure_threshold`. What counts is said in [`rows::LiveRows::filter`]; each edge of a range
//! tombstone counts once, a partition's deletion does not.

use rows::{Clustering, Marker, PartitionKey, Row};
use schema::Table;

use super::Shard;
use super::read::Reading;
use crate::{StorageError, TooManyTombstones};
use read::{PartitionTombstones, ReadTarget, TombstoneThresholds};

/// What the node keeps for itself can always be read.
const KEYSPACES_WITHOUT: [&str; 2] = ["system", "system_schema"];

/// About as many small rows as are decoded into one piece of memory.
const DEAD_NEARBY_MAX: u32 = 256;

/// Tombstones that a read has come upon.
#[derive(Default)]
pub(super) struct Passed {
    /// In the partition that is read by its key, or in the range.
    count: u64,
    /// How many rows are dead of those that were read last.
    dead_nearby: u32,
    /// Rows that the page had before the partition.
    rows_before: u32,
    /// The last partition of a range that gave nothing to the page.
    last: Option<PartitionKey>,
}

impl Passed {
    /// A row that lives: in memory of its own, if dead ones may lie in what it came with, which the page would keep.
    fn apart(&mut self, row: Row) -> Row {
        if self.dead_nearby == 0 {
            return row;
        }
        self.dead_nearby -= 1;
        if row.is_small() { row.copied() } else { row }
    }
}

impl Shard {
    /// How many tombstones a read of the table may come upon.
    pub fn tombstone_thresholds(&self, table: &Table) -> TombstoneThresholds {
        match KEYSPACES_WITHOUT.contains(&table.keyspace()) {
            true => TombstoneThresholds::NONE,
            false => self.options.tombstones,
        }
    }

    /// Are they so many that the client is to hear of them, or that the read is to end?
    pub(super) fn is_to_be_told(&self, tombstone_count: u64, table: &Table) -> bool {
        let least = |thresholds: TombstoneThresholds| thresholds.warn.min(thresholds.failure);
        // The table is asked only when it matters.
        tombstone_count > least(self.options.tombstones)
            && tombstone_count > least(self.tombstone_thresholds(table))
    }
}

impl Reading<'_> {
    /// Counts some more; are they too many?
    pub(super) fn pass(&mut self, count: u64) -> bool {
        self.passed.count += count;
        // The table is asked only when it matters.
        self.passed.count > self.shard.options.tombstones.failure
            && self.passed.count > self.shard.tombstone_thresholds(&self.command.table).failure
    }

    /// Counts an edge of a range tombstone.
    ///
    /// # Errors
    /// That was one too many.
    pub(super) fn pass_marker(&mut self, marker: &Marker, key: &PartitionKey) -> Result<(), StorageError> {
        let is_counted = self.live.counts(marker.left) || self.live.counts(marker.right);
        self.pass_at(u64::from(is_counted), key, || marker.prefix.clone())
    }

    /// Counts tombstones of a place in a partition.
    ///
    /// # Errors
    /// Those were too many.
    pub(super) fn pass_at(
        &mut self,
        count: u64,
        key: &PartitionKey,
        place: impl FnOnce() -> Clustering,
    ) -> Result<(), StorageError> {
        match self.pass(count) {
            true => Err(self.too_many(key.clone(), Some(place()))),
            false => Ok(()),
        }
    }

    /// What a client may see of a merged row; counts what is dead of it.
    ///
    /// # Errors
    /// That was too much.
    pub(super) fn live_row(&mut self, row: Row, key: &PartitionKey) -> Result<Option<Row>, StorageError> {
        if row.is_plain() {
            return Ok(Some(self.passed.apart(row)));
        }
        let mut count = 0;
        let live = self.live.filter(row.clone(), &mut count);
        self.passed.dead_nearby = (self.passed.dead_nearby + u32::from(live.is_none())).min(DEAD_NEARBY_MAX);
        self.pass_at(count, key, || row.clustering())?;
        Ok(live)
    }

    /// The error that ends a read.
    pub(super) fn too_many(&self, key: PartitionKey, clustering: Option<Clustering>) -> StorageError {
        let Passed { count: tombstone_count, rows_before, .. } = self.passed;
        assert!(rows_before <= self.row_count, "rows of a page only get more");
        let live_count = u64::from(self.row_count - rows_before);
        let found = TooManyTombstones { tombstone_count, live_count, key, clustering };
        StorageError::TooManyTombstones(Box::new(found))
    }

    /// A partition of a range gave nothing.
    pub(super) fn pass_partition(&mut self, key: PartitionKey) {
        self.passed.last = Some(key);
    }

    /// Tells with the page what the partition had that was read by its key.
    pub(super) fn tell_passed(&mut self, key: &PartitionKey) {
        let count = std::mem::take(&mut self.passed.count);
        self.passed.rows_before = self.row_count;
        if count > 0 {
            self.page.tombstones.push(PartitionTombstones { key: key.clone(), count });
        }
    }

    /// Tells with the page what the range had.
    pub(super) fn tell_passed_of_range(&mut self) {
        if self.passed.count == 0 || !matches!(self.command.target, ReadTarget::Range(_)) {
            return;
        }
        let given = self.page.partitions.last().map(|partition| &partition.key);
        if let Some(key) = self.passed.last.as_ref().max(given).cloned() {
            self.tell_passed(&key);
        }
    }
}
