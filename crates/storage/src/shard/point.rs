//! Reading one row by its key without waiting: what applications ask for most.
//!
//! ```text
//!   memtables ─┐ in one of them alone, and plain: the row is shown where it lies
//!              ├─ in several places, or with deletions: copies, merged as for every read
//!   files ─────┘ a chunk is not in memory, or there is more than a row: nothing is shown
//! ```
//!
//! When nothing is shown, [`Shard::read`] begins from the start: it can wait, and it knows what to say
//! of errors.

use std::sync::Arc;

use rows::{LiveRows, PartitionKey, Row, Slices};
use schema::Table;
use smallvec::SmallVec;
use sstable::{Chunk, ChunkId, ChunkSource, KeyHash, SstableError, TableFile};

use super::read::{LoneStep, LoneVersions};
use super::{Shard, TableStore};
use crate::cache::ChunkCache;
use crate::memtable::Lone;
use crate::metrics::TableMetrics;

/// A read of the only row that a partition can have.
#[derive(Clone, Copy, Debug)]
pub struct PointRead<'a> {
    /// The table as the statement saw it, without clustering columns.
    pub table: &'a Arc<Table>,
    /// Whose row.
    pub key: &'a PartitionKey,
    /// The moment that decides what has expired, seconds since 1970.
    pub now: u32,
}

impl Shard {
    /// Shows the live row of a partition that this shard owns, or that there is none. `None` when that
    /// cannot be told at once.
    pub(crate) fn point_read<T>(
        &self,
        read: PointRead<'_>,
        show: impl FnOnce(Option<&Row>) -> T,
    ) -> Option<T> {
        debug_assert!(read.table.clustering_types().is_empty(), "a partition has one row");
        let store = self.store(read.table.id()).ok()?;
        if store.check_readable().is_err() || !read.table.dropped_columns().is_empty() {
            return None;
        }
        let clock = &*self.runtime.clock;
        let sample = store.metrics.begin_read(clock);
        let mut versions = LoneVersions::none();
        let (frozen, active) = (store.frozen.borrow(), store.active.borrow());
        let active = active.look();
        let mut in_memory: SmallVec<[&Row; 4]> = SmallVec::new();
        for memtable in frozen.iter().map(|frozen| &*frozen.memtable).chain([&*active]) {
            match memtable.lone_row(read.key) {
                Lone::Absent => {}
                Lone::Row(lone) => {
                    versions.deletion = versions.deletion.max(lone.deletion);
                    in_memory.extend(lone.row);
                }
                Lone::Many => return None,
            }
        }
        store.lone_in_files(read.key, &self.cache, &mut versions)?;
        let mut tombstone_count = u64::from(!versions.deletion.is_live());
        let is_untouched = versions.rows.is_empty() && versions.deletion.is_live();
        let merged;
        let row = match in_memory.as_slice() {
            [row] if is_untouched && row.is_plain() => Some(*row).filter(|row| !row.is_empty()),
            rows => {
                versions.rows.extend(rows.iter().copied().cloned());
                let whole = versions.merge(read.table);
                tombstone_count += u64::from(whole.is_some());
                merged = whole.and_then(|row| LiveRows { now: read.now }.filter(row));
                tombstone_count -= u64::from(merged.is_some());
                merged.as_ref()
            }
        };
        let live_count = u64::from(row.is_some());
        let shown = show(row);
        store.metrics.note_slice(clock.elapsed_roughly(), live_count, tombstone_count);
        sample.end();
        Some(shown)
    }

    /// [`Shard::point_read`] for a visitor.
    pub(crate) fn visiting_point_read<T>(
        &self,
        read: PointRead<'_>,
        show: impl FnOnce(Option<&Row>) -> T,
    ) -> Option<T> {
        let shown = self.point_read(read, show)?;
        self.visit_count.set(self.visit_count.get() + 1);
        Some(shown)
    }
}

impl TableStore {
    /// Adds what files have of a partition; `None` when that cannot be told at once.
    fn lone_in_files(
        &self,
        key: &PartitionKey,
        cache: &ChunkCache,
        versions: &mut LoneVersions,
    ) -> Option<()> {
        let files = self.files.borrow();
        if files.is_empty() {
            return Some(());
        }
        let hash = KeyHash::of(&key.bytes);
        let chunks = CachedChunks { cache, metrics: &self.metrics };
        for file in files.iter().filter(|file| self.may_show(file, key, hash)) {
            let mut cursor = file.partition_cursor(&chunks, key, hash, &Slices::all(), false);
            match versions.take_from(&mut cursor) {
                Ok(LoneStep::Whole) => {}
                Ok(LoneStep::Need(_) | LoneStep::More) | Err(_) => return None,
            }
        }
        Some(())
    }
}

/// The cache alone.
struct CachedChunks<'a> {
    cache: &'a ChunkCache,
    metrics: &'a TableMetrics,
}

impl ChunkSource for CachedChunks<'_> {
    fn get(&self, _file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        let found = self.cache.get(id);
        if found.is_some() {
            TableMetrics::add(&self.metrics.cache_hit_count, 1);
        }
        Ok(found)
    }
}
