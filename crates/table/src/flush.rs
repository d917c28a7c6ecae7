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

use std::rc::Rc;
use std::sync::Arc;

use commitlog::CommitLogError;
use memtable::Memtable;
use rows::{DeletionTime, Unfiltered, merge_row};
use runtime::{Disk, Plant};
use schema::{CompressionOptions, Table};
use sstable::{Descriptor, KeptRoom, TableFile, TableWriter, WriterOptions};

use super::memtables::Frozen;
use super::snapshot::back_up;
use super::{FileChange, TableStore};
use crate::TableError;
use crate::metrics::TableMetrics;
use crate::shared::FlushUnderWay;

impl TableStore {
    /// Starts a flush in the background.
    pub fn spawn_flush(self: &Rc<Self>) {
        let (under_way, store) = (FlushUnderWay::new(&self.shared), Rc::clone(self));
        runtime::spawn_local("flush", async move {
            let flushed = store.flush().await;
            drop(under_way);
            store.log_failure("flush", flushed);
        });
    }

    /// Writes out what is in memory and waits for it; the log goes as far as nobody needs it.
    ///
    /// # Errors
    /// The disk failed; nothing is lost, the log keeps what is not in a file.
    pub async fn flush(self: &Rc<Self>) -> Result<(), TableError> {
        if self.write_out().await? {
            self.shared.discard_flushed_log().await;
        }
        Ok(())
    }

    /// Writes out what is in memory, and has the strategy look at what there is now. Was there anything?
    /// The log is for the caller to shorten.
    ///
    /// # Errors
    /// As [`TableStore::flush`].
    pub async fn write_out(self: &Rc<Self>) -> Result<bool, TableError> {
        let _turn = self.flush_turn.lock().await;
        let failsafe = &self.shared.runtime.failsafe;
        failsafe.check()?;
        failsafe.guarded("a flush", self.write_out_in_turn()).await
    }

    async fn write_out_in_turn(self: &Rc<Self>) -> Result<bool, TableError> {
        self.freeze();
        let has_any = self.memtables.has_frozen();
        if has_any {
            let flushed = flush_frozen(self).await;
            self.shared.room.note_flush(&flushed, self.shared.runtime.clock.elapsed());
            flushed.inspect_err(|error| self.shared.flush_failed(error))?;
        }
        self.start_compaction();
        Ok(has_any)
    }

    /// Step 1.
    pub(super) fn freeze(&self) {
        let (log_end, now) = (self.shared.log.end(), self.shared.runtime.clock.elapsed());
        if self.memtables.freeze(Memtable::new(self.table()), log_end, now) {
            TableMetrics::add(&self.metrics.flush_count, 1);
        }
    }
}

/// Writes out the frozen memtables, oldest first.
async fn flush_frozen(store: &TableStore) -> Result<(), TableError> {
    let shared = &store.shared;
    while let Some(frozen) = store.memtables.oldest_frozen() {
        // A record of several tables must not outlive a crash in this table's file alone.
        shared.log.sync().await.map_err(|error| match error {
            CommitLogError::Closed => TableError::ShuttingDown,
            other => other.into(),
        })?;
        // No test can break it without another log.
        assert!(shared.log.synced_to() >= frozen.flushed_to, "what comes into a file is on the log's disk");
        let spare = shared.spare_for(frozen.memtable.memory_bytes());
        let file = match &frozen.written {
            Some(file) => file.clone(),
            None => write_file(store, &frozen, spare.bytes()).await?,
        };
        let is_hasty = shared.runtime.plants.has(Plant::FlushedTooFar);
        let flushed_to = if is_hasty { shared.log.end() } else { frozen.flushed_to };
        match FileChange::flushing(file.clone(), flushed_to).commit(store).await {
            // One step for readers: no await between the file's coming and the memtable's going.
            Ok(Some(_)) => {
                let flushed = Rc::as_ptr(&frozen.slot);
                drop(frozen);
                let gone_count = store.memtables.let_go(shared, |other| Rc::as_ptr(&other.slot) == flushed);
                // Of a table that is dropped meanwhile all have gone.
                let is_right = gone_count == 1 || store.is_dropped();
                assert!(is_right, "the memtable that is in a file goes, and no other");
                // Before it can be merged and go.
                back_up(store, file.clone()).await;
                shared.cache_written(spare, file.as_slice()).await;
            }
            Ok(None) => {
                shared.delete_files(file.as_slice()).await;
                return Ok(());
            }
            Err(error) => {
                // The manifest on the disk may name the file by now, so it stays: the next try
                // commits it instead of writing another.
                store.memtables.keep_written(file);
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Writes a frozen memtable to a file; `None` when there is nothing in it.
async fn write_file(
    store: &TableStore,
    frozen: &Frozen,
    kept_bytes: usize,
) -> Result<Option<Arc<TableFile>>, TableError> {
    let (shared, table) = (&store.shared, store.table());
    let id = shared.runtime.random.uuid_v1(&*shared.runtime.clock);
    let descriptor = Descriptor::new(shared.table_directory(&table)?, id);
    let (disk, memtable) = (Arc::clone(&shared.runtime.disk), Arc::clone(&frozen.memtable));
    let compression = store.compression();
    let job = move || write_memtable(disk, descriptor, table, compression, &memtable, kept_bytes);
    shared.run_vital("a flush", job).await?
}

/// Step 2, on a background thread: writes a memtable that nobody changes any more; the file holds up to
/// `kept_bytes` of what it is for the cache. `None` when there is nothing in the memtable.
///
/// # Errors
/// The disk fails, or the table's options ask for what can not be written.
pub fn write_memtable(
    disk: Arc<dyn Disk>,
    descriptor: Descriptor,
    table: Arc<Table>,
    compression: CompressionOptions,
    memtable: &Memtable,
    kept_bytes: usize,
) -> Result<Option<Arc<TableFile>>, TableError> {
    let mut partitions = memtable.partitions().peekable();
    if partitions.peek().is_none() {
        return Ok(None);
    }
    disk.create_dir_all(&descriptor.directory)
        .map_err(|source| TableError::Disk { act: "create table directory", source })?;
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
