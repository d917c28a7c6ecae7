//! Reading rows by their keys without waiting: what applications ask for most.
//!
//! When a row is in one memtable alone, and plain, it is shown where it lies; else its versions are merged
//! as for every read. When it can not be told at once, because a chunk is not in memory or there is more than a
//! row, it is not shown, and [`Shard::read`] begins from the start: it can wait, and it knows what to say of
//! errors and of many tombstones.

use std::ops::ControlFlow;
use std::sync::Arc;

use rows::{PartitionKey, Row};
use schema::Table;
use smallvec::SmallVec;

use super::Shard;
use super::lone::LoneFound;
use super::read::{LoneVersions, live_rows};
use crate::memtable::KEYS_TOGETHER;

/// Reads of the only rows that partitions can have.
#[derive(Clone, Copy, Debug)]
pub struct PointReads<'a> {
    /// The table as the statement saw it, without clustering columns.
    pub table: &'a Arc<Table>,
    /// Whose rows: up to [`crate::KEYS_TOGETHER`] keys of one shard.
    pub keys: &'a [&'a PartitionKey],
    /// The moment that decides what has expired, seconds since 1970.
    pub now: u32,
}

/// The same, to be sent to the shard that owns the keys.
#[derive(Clone, Debug)]
pub struct PointReadsSent {
    /// As [`PointReads::table`].
    pub table: Arc<Table>,
    /// As [`PointReads::keys`].
    pub keys: Vec<PartitionKey>,
    /// As [`PointReads::now`].
    pub now: u32,
}

impl Shard {
    /// [`Shard::point_reads`] of what another shard has sent.
    pub(crate) fn sent_point_reads(
        &self,
        reads: &PointReadsSent,
        show: impl FnMut(usize, Option<&Row>) -> ControlFlow<()>,
    ) {
        let keys: SmallVec<[&PartitionKey; KEYS_TOGETHER]> = reads.keys.iter().collect();
        self.point_reads(PointReads { table: &reads.table, keys: &keys, now: reads.now }, show);
    }

    /// Shows the live row of each partition, by the index of its key, or that there is none, until it is
    /// told to stop; those of which that can not be told at once are passed over. How many were shown?
    pub(crate) fn point_reads(
        &self,
        reads: PointReads<'_>,
        mut show: impl FnMut(usize, Option<&Row>) -> ControlFlow<()>,
    ) -> u64 {
        debug_assert!(reads.table.clustering_types().is_empty(), "a partition has one row");
        let Ok(store) = self.store(reads.table.id()) else { return 0 };
        if store.check_readable().is_err() || !reads.table.dropped_columns().is_empty() {
            return 0;
        }
        let clock = &*self.runtime.clock;
        let sample = store.metrics.begin_reads(reads.keys.len(), clock);
        let now = clock.elapsed_roughly();
        let mut shown_count = 0;
        store.each_lone(&self.cache, reads.keys, |index, found| {
            let mut tombstone_count = 0;
            let merged;
            let row = match found.plain_row() {
                Some(row) => Some(row).filter(|row| !row.is_empty()),
                None => {
                    let live = live_rows(reads.now, reads.table);
                    let whole = found.into_versions().merge(reads.table);
                    merged = whole.and_then(|row| live.filter(row, &mut tombstone_count));
                    merged.as_ref()
                }
            };
            if self.is_to_be_told(tombstone_count, reads.table) {
                return ControlFlow::Continue(());
            }
            store.metrics.note_slice(now, u64::from(row.is_some()), tombstone_count);
            shown_count += 1;
            show(index, row)
        });
        sample.end(shown_count);
        shown_count
    }

    /// [`Shard::point_reads`] for a visitor.
    pub(crate) fn visiting_point_reads(
        &self,
        reads: PointReads<'_>,
        show: impl FnMut(usize, Option<&Row>) -> ControlFlow<()>,
    ) {
        let shown_count = self.point_reads(reads, show);
        self.visit_count.set(self.visit_count.get() + shown_count);
    }
}

impl<'m> LoneFound<'m> {
    /// The row as it lies in memory, if that is all there is and all of it counts.
    fn plain_row(&self) -> Option<&'m Row> {
        match self.in_memory.as_slice() {
            [row] if self.versions.rows.is_empty() && self.versions.deletion.is_live() => {
                Some(*row).filter(|row| row.is_plain())
            }
            _ => None,
        }
    }

    /// All versions, in memory that this holds.
    pub(super) fn into_versions(mut self) -> LoneVersions {
        self.versions.rows.extend(self.in_memory.into_iter().cloned());
        self.versions
    }
}
