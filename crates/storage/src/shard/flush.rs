//! How a memtable becomes a table file.
//!
//! 1. Freeze: a new memtable takes the writes; the log position at that moment is noted. Whatever
//!    the table was sent below it is in the frozen memtable or in a file already.
//! 2. Write, as a background job over the frozen memtable. What is in it is made durable in the log,
//!    too: a record may hold writes to other tables, and stands or falls as one.
//! 3. Commit: the manifest names the file and the position, in one step.
//! 4. Swap: readers find the file instead of the memtable; the log gives up segments nobody needs.
//!
//! A flush that fails leaves the memtable frozen, still read, still in the log; the next one tries
//! it again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cache::Reservation;
use commitlog::{CommitLogError, LogPosition};
use memtable::{Memtable, MemtableSlot};
use rows::{DeletionTime, Unfiltered, merge_row};
use runtime::{Disk, Plant};
use schema::{CompressionOptions, Table, TableId};
use sstable::{Descriptor, KeptRoom, TableFile, TableWriter, WriterOptions};
use tokio::sync::Notify;
use uuid::Uuid;

use super::commit::{FileChange, Removed};
use super::{Shard, TableStore};
use crate::StorageError;
use crate::health::is_full;
use crate::metrics::TableMetrics;

/// After a failed flush writers are told at once that there is no room, for so long.
pub(super) const RETRY_FLUSH_AFTER: Duration = Duration::from_secs(1);

/// An index is no larger than one in so many bytes of Data, mostly, and this.
const INDEX_PART: usize = 16;
const INDEX_BYTES_MIN: usize = 64 << 10;
/// Chunks that come into the cache or go, before others on the shard have their turn: a merge brings ten thousands.
const CHUNKS_PER_TURN: usize = 512;

/// A memtable on its way to disk.
#[derive(Clone)]
pub(super) struct Frozen {
    pub(super) slot: Rc<MemtableSlot>,
    pub(super) memtable: Arc<Memtable>,
    /// The log's end when it was frozen.
    flushed_to: LogPosition,
    /// Its file (or that it needs none), when it was written and the manifest failed.
    written: Option<Option<Arc<TableFile>>>,
}

impl Frozen {
    /// Its file, when that is not part of the table yet.
    pub(super) fn written_id(&self) -> Option<Uuid> {
        self.written.as_ref()?.as_ref().map(|file| file.descriptor().id)
    }
}

/// How the flushes of a shard stand.
#[derive(Default)]
pub(super) struct Flushing {
    /// Those that the shard started by itself and that have not ended.
    pub(super) count: Cell<usize>,
    /// How the last one failed, if none went well since.
    failure: RefCell<Option<FlushFailure>>,
    /// Is one that failed to be tried again soon?
    pub(super) is_tried_again: Cell<bool>,
    /// Told when memtables shrink or a flush fails: writers may be waiting for room.
    pub(super) room: Notify,
}

/// A flush that the shard started by itself, counted as long as it lives.
struct UnderWay(Rc<Shard>);

impl UnderWay {
    fn new(shard: &Rc<Shard>) -> Self {
        let count = &shard.flushing.count;
        count.set(count.get() + 1);
        UnderWay(Rc::clone(shard))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Flushing { count, room, .. } = &self.0.flushing;
        count.set(count.get() - 1);
        room.notify_waiters();
    }
}

/// How a flush failed.
#[derive(Clone)]
struct FlushFailure {
    at: Duration,
    /// Was there no space, for a file or in the log?
    is_full: bool,
    reason: String,
}

impl Shard {
    /// Writes a table's memtable out and waits for it.
    ///
    /// # Errors
    /// The disk failed; nothing is lost, the log keeps what is not in a file.
    pub async fn flush(self: &Rc<Self>, table: TableId) -> Result<(), StorageError> {
        let store = self.store(table)?;
        self.flush_store(&store).await
    }

    /// Writes all memtables out and waits for it.
    ///
    /// # Errors
    /// As [`Shard::flush`]; tables after the failed one are not tried.
    pub async fn flush_all(self: &Rc<Self>) -> Result<(), StorageError> {
        let mut written = Ok(());
        for store in self.stores() {
            written = self.write_out_store(&store).await.map(|_| ());
            if written.is_err() {
                break;
            }
        }
        self.discard_flushed_log().await;
        written
    }

    /// Flushes what recovery replayed, so that the old log segments can go.
    pub(super) fn flush_replayed(self: &Rc<Self>) {
        for store in self.stores() {
            if !store.active.borrow().with(Memtable::is_empty) {
                self.spawn_flush(store);
            }
        }
        if self.flushing.count.get() == 0 {
            // Nothing is left in memory: the replay may have written all of it out on the way.
            let shard = Rc::clone(self);
            runtime::spawn_local("flush", async move { shard.discard_flushed_log().await });
        }
    }

    /// Starts a flush of the table with most in memory; `false` when no table has anything.
    pub(super) fn flush_largest(self: &Rc<Self>) -> bool {
        let largest = self.stores().into_iter().max_by_key(|store| store.memory_bytes());
        let found = largest.filter(|store| store.memory_bytes() > 0);
        found.map(|store| self.spawn_flush(store)).is_some()
    }

    /// Starts flushes of the tables that hold back the oldest log segments, when the log is longer
    /// than it may be. Without it a table that is hardly written to would keep the whole log.
    pub(super) fn shorten_log(self: &Rc<Self>) {
        let log = self.log.statistics();
        if log.retained_bytes <= self.log_budget() || self.flushing.count.get() > 0 {
            return;
        }
        let oldest = self.stores().iter().filter_map(|store| store.first_position()).min();
        let Some(oldest) = oldest else { return };
        let until = oldest.segment + log.segment_count / 4;
        for store in self.stores() {
            if store.first_position().is_some_and(|position| position.segment <= until) {
                self.spawn_flush(store);
            }
        }
    }

    /// What writers without room are told while flushes fail; `None` when they do not, or when it is time to try again.
    pub(super) fn recent_flush_failure(&self) -> Option<StorageError> {
        let FlushFailure { at, is_full, reason } = self.flushing.failure.borrow().clone()?;
        let is_recent = self.runtime.clock.elapsed().saturating_sub(at) < RETRY_FLUSH_AFTER;
        is_recent.then(|| match is_full {
            true => StorageError::DiskFull { reason },
            false => StorageError::NoRoom { reason },
        })
    }

    pub(super) fn spawn_flush(self: &Rc<Self>, store: Rc<TableStore>) {
        let under_way = UnderWay::new(self);
        runtime::spawn_local("flush", async move {
            let flushed = under_way.0.flush_store(&store).await;
            drop(under_way);
            store.log_failure("flush", flushed);
        });
    }

    pub(super) async fn flush_store(self: &Rc<Self>, store: &Rc<TableStore>) -> Result<(), StorageError> {
        if self.write_out_store(store).await? {
            self.discard_flushed_log().await;
        }
        Ok(())
    }

    /// Writes out what a table has in memory, and has the strategy look at what there is now. Was there anything?
    /// The log is for the caller to shorten.
    async fn write_out_store(self: &Rc<Self>, store: &Rc<TableStore>) -> Result<bool, StorageError> {
        let _turn = store.flush_turn.lock().await;
        self.runtime.failsafe.check()?;
        self.runtime.failsafe.guarded("a flush", self.write_out_in_turn(store)).await
    }

    async fn write_out_in_turn(self: &Rc<Self>, store: &Rc<TableStore>) -> Result<bool, StorageError> {
        self.freeze(store);
        let has_any = !store.frozen.borrow().is_empty();
        if has_any {
            let result = self.flush_frozen(store).await;
            *self.flushing.failure.borrow_mut() = result.as_ref().err().map(|error| FlushFailure {
                at: self.runtime.clock.elapsed(),
                is_full: is_full(error),
                reason: error.to_string(),
            });
            result.inspect_err(|error| self.flush_failed(error))?;
        }
        self.start_compaction(store);
        Ok(has_any)
    }

    /// Step 1.
    pub(super) fn freeze(&self, store: &TableStore) {
        if store.active.borrow().with(Memtable::is_empty) {
            return;
        }
        let next = MemtableSlot::active(Memtable::new(store.table()));
        let slot = store.active.replace(next);
        store.active_since.set(self.runtime.clock.elapsed());
        let memtable = slot.freeze();
        let frozen = Frozen { slot, memtable, flushed_to: self.log.end(), written: None };
        let mut before = store.frozen.borrow_mut();
        let last = before.last().map(|last: &Frozen| last.flushed_to);
        assert!(last <= Some(frozen.flushed_to), "memtables are frozen in the order of the log");
        assert!(frozen.memtable.first_position() < Some(frozen.flushed_to), "its writes are below its place");
        before.push(frozen);
        drop(before);
        assert!(
            store.active.borrow().with(Memtable::is_empty),
            "the next memtable takes the writes from here on"
        );
        TableMetrics::add(&store.metrics.flush_count, 1);
    }

    async fn flush_frozen(self: &Rc<Self>, store: &Rc<TableStore>) -> Result<(), StorageError> {
        loop {
            let oldest = store.frozen.borrow().first().cloned();
            let Some(frozen) = oldest else { return Ok(()) };
            // A record of several tables must not outlive a crash in this table's file alone.
            self.log.sync().await.map_err(|error| match error {
                CommitLogError::Closed => StorageError::ShuttingDown,
                other => other.into(),
            })?;
            let spare = self.spare_for(frozen.memtable.memory_bytes());
            let file = match frozen.written {
                Some(file) => file,
                None => self.write_out(store, &frozen, spare.bytes()).await?,
            };
            let change = FileChange {
                added: file.iter().cloned().collect(),
                removed: Removed::These(Vec::new()),
                flushed: Some(if self.runtime.plants.has(Plant::FlushedTooFar) {
                    self.log.end()
                } else {
                    frozen.flushed_to
                }),
            };
            match self.commit(store, change).await {
                // One step for readers: no await between the file's coming and the memtable's going.
                Ok(Some(_)) => {
                    let flushed = Rc::as_ptr(&frozen.slot);
                    drop((frozen.slot, frozen.memtable));
                    let gone_count = self.forget_frozen(store, |other| Rc::as_ptr(&other.slot) == flushed);
                    // Of a table that is dropped meanwhile all have gone.
                    let is_right = gone_count == 1 || store.is_dropped.get();
                    assert!(is_right, "the memtable that is in a file goes, and no other");
                    // Before it can be merged and go.
                    self.back_up(store, file.clone()).await;
                    self.cache_written(spare, file.as_slice()).await;
                }
                Ok(None) => {
                    self.delete_files(file.as_slice()).await;
                    return Ok(());
                }
                Err(error) => {
                    // The manifest on the disk may name the file by now, so it stays: the next try
                    // commits it instead of writing another.
                    if let Some(kept) = store.frozen.borrow_mut().first_mut() {
                        kept.written = Some(file);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Writes a frozen memtable to a file; `None` when there is nothing in it.
    async fn write_out(
        &self,
        store: &TableStore,
        frozen: &Frozen,
        kept_bytes: usize,
    ) -> Result<Option<Arc<TableFile>>, StorageError> {
        let table = store.table();
        let id = self.runtime.random.uuid_v1(&*self.runtime.clock);
        let descriptor = Descriptor::new(self.table_directory(&table)?, id);
        let (disk, memtable) = (Arc::clone(&self.runtime.disk), Arc::clone(&frozen.memtable));
        let compression = store.compression();
        let job = move || write_memtable(disk, descriptor, table, compression, &memtable, kept_bytes);
        self.run_vital("a flush", job).await?
    }

    /// Lets go of frozen memtables and of their memory; how many were they? Row by row it is given back by a
    /// background thread: of a hundred thousand rows that takes tens of milliseconds.
    pub(super) fn forget_frozen(&self, store: &TableStore, goes: impl Fn(&Frozen) -> bool) -> usize {
        let mut gone = Vec::new();
        store.frozen.borrow_mut().retain(|frozen| {
            let stays = !goes(frozen);
            gone.extend((!stays).then(|| Arc::clone(&frozen.memtable)));
            stays
        });
        let gone_bytes: usize = gone.iter().map(|memtable| memtable.memory_bytes()).sum();
        let times = if self.runtime.plants.has(Plant::MemoryGivenBackTwice) { 2 } else { 1 };
        self.forget_memtable_bytes(times * gone_bytes);
        let gone_count = gone.len();
        // Where nothing is done in the background any more, it is given back here.
        _ = self.runtime.background.spawn("free memtables", Box::new(move || drop(gone)));
        gone_count
    }

    pub(super) fn forget_memtable_bytes(&self, bytes: usize) {
        let counted_bytes = self.memtable_bytes.get();
        assert!(bytes <= counted_bytes, "the memory of a memtable is counted until it is let go");
        self.memtable_bytes.set(counted_bytes - bytes);
        let taken_bytes: usize = self.stores().iter().map(|store| store.memory_bytes()).sum();
        assert_eq!(
            self.memtable_bytes.get(),
            taken_bytes,
            "the memory of all memtables is the sum of theirs"
        );
        self.lend();
        self.flushing.room.notify_waiters();
    }

    /// Keeps memory of the cache back for a file of so many uncompressed bytes and its index.
    pub(super) fn spare_for(&self, data_bytes: usize) -> Reservation {
        self.cache.reserve(data_bytes.saturating_add(data_bytes / INDEX_PART).saturating_add(INDEX_BYTES_MIN))
    }

    /// Lets the cache have what new files hold of themselves, in place of what was kept back for them.
    pub(super) async fn cache_written(&self, spare: Reservation, files: &[Arc<TableFile>]) {
        drop(spare);
        for (count, (id, chunk)) in files.iter().flat_map(|file| file.take_kept()).enumerate() {
            self.cache.insert_if_free(id, chunk);
            if count % CHUNKS_PER_TURN == CHUNKS_PER_TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Gives up log segments whose writes are all in files. Those that stay cost space and a longer start; the next
    /// flush tries again.
    async fn discard_flushed_log(&self) {
        if let Err(error) = self.discard_log().await {
            tracing::warn!(%error, "log segments that are not needed were not deleted");
        }
    }

    async fn discard_log(&self) -> Result<(), StorageError> {
        let first_positions = self.stores().into_iter().filter_map(|store| store.first_position());
        let is_hasty = self.runtime.plants.has(Plant::SegmentDiscardedEarly);
        let needed = first_positions.min().filter(|_| !is_hasty).unwrap_or_else(|| self.log.end());
        self.log.discard_below(needed).await?;
        let is_kept = |store: &Rc<TableStore>| store.first_position().is_none_or(|first| first >= needed);
        assert!(self.stores().iter().all(is_kept), "the log keeps what is in no file");
        Ok(())
    }

    /// Deletes files that no manifest of this shard names any more; those that other shards still
    /// use stay. A file that can not be deleted is left for the next start to sweep up.
    pub(super) async fn delete_files(&self, files: &[Arc<TableFile>]) {
        let numbers: Vec<u64> = files.iter().map(|file| file.number()).collect();
        for chunks in self.cache.chunks_of(&numbers).chunks(CHUNKS_PER_TURN) {
            self.cache.remove(chunks);
            tokio::task::yield_now().await;
        }
        // And what a late reader has brought in meanwhile.
        self.cache.forget(&numbers);
        self.release_files(files).await;
    }

    /// Lets go of files that were held; those that nobody lists or holds any more are deleted.
    pub(super) async fn release_files(&self, files: &[Arc<TableFile>]) {
        let unused: Vec<Descriptor> = files
            .iter()
            .map(|file| file.descriptor().clone())
            .filter(|descriptor| self.registry.release(descriptor.id))
            .collect();
        let disk = Arc::clone(&self.runtime.disk);
        self.runtime
            .io
            .run(move || {
                for descriptor in &unused {
                    if let Err(error) = sstable::delete_table_file(&*disk, descriptor) {
                        tracing::warn!(id = %descriptor.id, %error, "an unused table file was not deleted");
                    }
                }
            })
            .await;
    }
}

/// Step 2, on a background thread: writes a memtable that nobody changes any more; the file holds up to
/// `kept_bytes` of what it is for the cache. `None` when there is nothing in the memtable.
pub(crate) fn write_memtable(
    disk: Arc<dyn Disk>,
    descriptor: Descriptor,
    table: Arc<Table>,
    compression: CompressionOptions,
    memtable: &Memtable,
    kept_bytes: usize,
) -> Result<Option<Arc<TableFile>>, StorageError> {
    let mut partitions = memtable.partitions().peekable();
    if partitions.peek().is_none() {
        return Ok(None);
    }
    disk.create_dir_all(&descriptor.directory)
        .map_err(|source| StorageError::Disk { act: "create table directory", source })?;
    let options = WriterOptions {
        estimated_partitions: memtable.partition_count() as u64,
        encoding_stats: memtable.encoding_stats(),
        kept_room: KeptRoom::new(kept_bytes),
        compression,
        ..WriterOptions::for_table(&table)
    };
    let mut writer = TableWriter::create(Arc::clone(&disk), descriptor.clone(), Arc::clone(&table), options)?;
    let mut partition_count = 0;
    let written = partitions.try_for_each(|(mut header, mut items)| {
        partition_count += 1;
        let whole = header.deletion;
        header.static_row = header.static_row.take().and_then(|row| merge_row(row, whole));
        writer.start_partition(&header)?;
        let mut open = DeletionTime::LIVE;
        items.try_for_each(|item| match visible(item, whole, &mut open) {
            Some(item) => writer.append(&item),
            None => Ok(()),
        })?;
        writer.end_partition()
    });
    if let Err(error) = written {
        // What is left of an aborted file is swept up at the next start.
        _ = writer.abort();
        return Err(error.into());
    }
    assert_eq!(writer.partition_count(), partition_count, "every partition of a memtable is in its file");
    let kept = writer.finish_keeping()?;
    let opened = TableFile::open(Arc::clone(&disk), descriptor.clone(), &table)
        .and_then(|file| file.keep(kept).map(|()| file));
    // Written again by the next try: it would only take space until the next start.
    Ok(Some(opened.inspect_err(|_| _ = sstable::delete_table_file(&*disk, &descriptor))?))
}

/// An item without what deletions of the same memtable hide. Cassandra trusts that no file holds that: it
/// applies a file's deletions to what is in other files alone.
fn visible(item: Unfiltered, whole: DeletionTime, open: &mut DeletionTime) -> Option<Unfiltered> {
    match item {
        Unfiltered::Row(row) => merge_row(row, whole.max(*open)).map(Unfiltered::Row),
        Unfiltered::Marker(marker) => {
            *open = marker.right;
            Some(Unfiltered::Marker(marker))
        }
    }
}

#[cfg(test)]
mod tests {
    use rows::{Clustering, Liveness, Marker, RowBuilder, Slice};

    use super::*;

    #[test]
    fn what_a_deletion_of_the_same_memtable_hides_is_not_written() {
        let deletion = |timestamp| DeletionTime { timestamp, local_deletion_time: 1 };
        let row = |timestamp| {
            let liveness = Liveness { timestamp, ..Liveness::NONE };
            Unfiltered::Row(RowBuilder::new(&Clustering::EMPTY, liveness, DeletionTime::LIVE).finish())
        };
        for time in [100, -100] {
            let mut open = DeletionTime::LIVE;
            assert!(visible(row(time), deletion(time), &mut open).is_none(), "of the partition");
            assert!(visible(row(time + 1), deletion(time), &mut open).is_some());
            let marker = Unfiltered::Marker(Marker::at(&Slice::ALL.start, deletion(time + 5)));
            assert!(visible(marker, deletion(time), &mut open).is_some());
            assert!(visible(row(time + 5), deletion(time), &mut open).is_none(), "of the range");
            assert!(visible(row(time + 6), deletion(time), &mut open).is_some());
            let marker = Unfiltered::Marker(Marker::at(&Slice::ALL.end, deletion(time + 5)));
            assert!(visible(marker, deletion(time), &mut open).is_some());
            assert!(visible(row(time + 1), deletion(time), &mut open).is_some(), "behind the range");
        }
    }
}
