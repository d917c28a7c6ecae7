//! The compaction job: several table files merged into one, without what nobody needs.
//!
//! A tombstone may go when it is older than `gc_grace_seconds` and nothing it could hide is left
//! elsewhere: no other file that may hold its partition, and no memtable, has a write as old.

use std::sync::Arc;

use ring::Sharding;
use rows::{
    DeletionTime, Marker, MergeCursor, PartitionHeader, PartitionKey, Slices, Step, Unfiltered,
    UnfilteredCursor, purge_row,
};
use runtime::Disk;
use schema::Table;
use sstable::{
    Descriptor, DirectChunks, EncodingStats, RingRange, SstableError, TableFile, TableWriter, WriterOptions,
};

use crate::StorageError;

/// What to merge, and what must be known to purge.
pub(super) struct MergeJob {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) descriptor: Descriptor,
    pub(super) table: Arc<Table>,
    pub(super) inputs: Vec<Arc<TableFile>>,
    /// Files of the table that are not merged.
    pub(super) others: Vec<Arc<TableFile>>,
    /// The oldest write in any memtable.
    pub(super) memtable_timestamp_min: Option<i64>,
    pub(super) now: u32,
    pub(super) sharding: Sharding,
    /// Only this shard's partitions are kept: a file from before a change of the shards is split so.
    pub(super) shard: usize,
}

/// Merges. `None` when nothing is left.
pub(super) fn merge_files(job: &MergeJob) -> Result<Option<Arc<TableFile>>, StorageError> {
    let options = WriterOptions {
        estimated_partitions: job.inputs.iter().map(|file| file.summary().partition_count).sum(),
        encoding_stats: job
            .inputs
            .iter()
            .map(|file| file.summary().encoding_stats)
            .reduce(EncodingStats::merge)
            .unwrap_or(EncodingStats::NONE),
        repaired_at: job.inputs.iter().map(|file| file.summary().repaired_at).min().unwrap_or(0),
        ..WriterOptions::for_table(&job.table)
    };
    let writer =
        TableWriter::create(Arc::clone(&job.disk), job.descriptor.clone(), Arc::clone(&job.table), options)?;
    let mut output = Output { writer, pending: None, partition_count: 0, is_open: false };
    match run(job, &mut output) {
        Ok(()) if output.partition_count > 0 => {
            output.writer.finish()?;
            Ok(Some(TableFile::open(Arc::clone(&job.disk), job.descriptor.clone(), &job.table)?))
        }
        Ok(()) => {
            output.writer.abort()?;
            Ok(None)
        }
        Err(error) => {
            // What is left of an aborted file is swept up at the next start.
            _ = output.writer.abort();
            Err(error.into())
        }
    }
}

fn run(job: &MergeJob, output: &mut Output) -> Result<(), SstableError> {
    let cursors =
        job.inputs.iter().map(|file| file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all()));
    let mut merged = MergeCursor::new(Arc::clone(&job.table), false, cursors);
    let gc_before = job.now.saturating_sub(job.table.options().gc_grace_seconds);
    let mut purge = Purge { gc_before, now: job.now, timestamp_min: i64::MIN };
    let mut is_ours = false;
    loop {
        match merged.step()? {
            Step::Header(header) => {
                output.end_partition()?;
                is_ours = job.sharding.shard_of(header.key.token) == job.shard;
                if is_ours {
                    purge.timestamp_min = job.oldest_elsewhere(&header.key);
                    output.pending = Some(purge.header(header));
                    output.write_pending_if_full()?;
                }
            }
            Step::Item(item) if is_ours => {
                if let Some(item) = purge.item(item) {
                    output.append(&item)?;
                }
            }
            Step::Item(_) => {}
            Step::Need(_) => {
                unreachable!("a direct source reads what it lacks")
            }
            Step::End => return output.end_partition(),
        }
    }
}

impl MergeJob {
    /// No write of the partition outside the inputs is older than this.
    fn oldest_elsewhere(&self, key: &PartitionKey) -> i64 {
        let in_files =
            self.others.iter().filter(|file| file.may_contain(key)).map(|file| file.summary().min_timestamp);
        in_files.chain(self.memtable_timestamp_min).min().unwrap_or(i64::MAX)
    }
}

struct Purge {
    gc_before: u32,
    now: u32,
    timestamp_min: i64,
}

impl Purge {
    fn deletion(&self, deletion: DeletionTime) -> DeletionTime {
        let goes = deletion.is_purgeable(self.gc_before) && deletion.timestamp < self.timestamp_min;
        if goes { DeletionTime::LIVE } else { deletion }
    }

    fn row(&self, row: &rows::Row) -> Option<rows::Row> {
        purge_row(row, self.now, self.gc_before, |timestamp| timestamp < self.timestamp_min)
    }

    fn header(&self, header: PartitionHeader) -> PartitionHeader {
        let static_row = header.static_row.as_ref().and_then(|row| self.row(row));
        PartitionHeader { deletion: self.deletion(header.deletion), static_row, ..header }
    }

    fn item(&self, item: Unfiltered) -> Option<Unfiltered> {
        match item {
            Unfiltered::Row(row) => self.row(&row).map(Unfiltered::Row),
            Unfiltered::Marker(marker) => {
                let (left, right) = (self.deletion(marker.left), self.deletion(marker.right));
                (left != right).then_some(Unfiltered::Marker(Marker { left, right, ..marker }))
            }
        }
    }
}

/// Begins a partition in the file only once there is something to write.
struct Output {
    writer: TableWriter,
    pending: Option<PartitionHeader>,
    partition_count: u64,
    is_open: bool,
}

impl Output {
    fn write_pending_if_full(&mut self) -> Result<(), SstableError> {
        let is_full = |header: &PartitionHeader| !header.deletion.is_live() || header.static_row.is_some();
        if self.pending.as_ref().is_some_and(is_full) { self.write_pending() } else { Ok(()) }
    }

    fn write_pending(&mut self) -> Result<(), SstableError> {
        if let Some(header) = self.pending.take() {
            self.writer.start_partition(&header)?;
            self.partition_count += 1;
            self.is_open = true;
        }
        Ok(())
    }

    fn append(&mut self, item: &Unfiltered) -> Result<(), SstableError> {
        self.write_pending()?;
        self.writer.append(item)
    }

    fn end_partition(&mut self) -> Result<(), SstableError> {
        self.pending = None;
        if std::mem::take(&mut self.is_open) { self.writer.end_partition() } else { Ok(()) }
    }
}
