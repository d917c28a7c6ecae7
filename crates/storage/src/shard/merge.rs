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
    Descriptor, DirectChunks, EncodingStats, FileCursor, RingRange, SstableError, TableFile, TableWriter,
    WriterOptions,
};

use crate::StorageError;
use crate::scope::{Scoped, Scopes};

/// What to merge, and what must be known to purge.
pub(super) struct MergeJob {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) descriptor: Descriptor,
    pub(super) table: Arc<Table>,
    pub(super) inputs: Vec<(Arc<TableFile>, Option<Scopes>)>,
    /// Files of the table that are not merged.
    pub(super) others: Vec<Arc<TableFile>>,
    /// The oldest write in any memtable.
    pub(super) memtable_timestamp_min: Option<i64>,
    pub(super) now: u32,
    pub(super) sharding: Sharding,
    /// Only this shard's partitions are kept: a file from before a change of the shards is split so.
    pub(super) shard: usize,
}

/// A merge under way. It is advanced piece by piece, so that whoever drives it can hold it to a
/// rate, tell how far it is, and stop it.
pub(super) struct Merge {
    job: MergeJob,
    merged: MergeCursor<Scoped<FileCursor<DirectChunks>>>,
    output: Output,
    purge: Purge,
    /// Is the partition being read this shard's?
    is_ours: bool,
}

/// Where a merge is after a piece.
pub(super) enum Progress {
    /// There is more; so many bytes were written by now.
    Going(Box<Merge>, u64),
    /// All is written; `None` when nothing was left.
    Done(Option<Arc<TableFile>>),
}

impl Merge {
    /// Begins a merge.
    pub(super) fn start(job: MergeJob) -> Result<Box<Merge>, StorageError> {
        let summaries = || job.inputs.iter().map(|(file, _)| file.summary());
        let options = WriterOptions {
            estimated_partitions: summaries().map(|summary| summary.partition_count).sum(),
            encoding_stats: summaries()
                .map(|summary| summary.encoding_stats)
                .reduce(EncodingStats::merge)
                .unwrap_or(EncodingStats::NONE),
            repaired_at: summaries().map(|summary| summary.repaired_at).min().unwrap_or(0),
            ..WriterOptions::for_table(&job.table)
        };
        let (disk, table) = (Arc::clone(&job.disk), Arc::clone(&job.table));
        let writer = TableWriter::create(disk, job.descriptor.clone(), Arc::clone(&table), options)?;
        let scan = |(file, scopes): &(Arc<TableFile>, Option<Scopes>)| {
            Scoped::new(file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all()), scopes.clone())
        };
        let merged = MergeCursor::new(table, false, job.inputs.iter().map(scan));
        let gc_before = job.now.saturating_sub(job.table.options().gc_grace_seconds);
        Ok(Box::new(Merge {
            purge: Purge { gc_before, now: job.now, timestamp_min: i64::MIN },
            output: Output { writer, pending: None, partition_count: 0, is_open: false },
            merged,
            job,
            is_ours: false,
        }))
    }

    /// Goes on until about `bytes` more are written, or to the end.
    pub(super) fn advance(mut self: Box<Self>, bytes: u64) -> Result<Progress, StorageError> {
        let until = self.output.writer.data_bytes_written().saturating_add(bytes);
        match self.run(until) {
            Ok(false) => {
                let written = self.output.writer.data_bytes_written();
                Ok(Progress::Going(self, written))
            }
            Ok(true) if self.output.partition_count > 0 => {
                let Merge { job, output, .. } = *self;
                output.writer.finish()?;
                Ok(Progress::Done(Some(TableFile::open(job.disk, job.descriptor, &job.table)?)))
            }
            Ok(true) => {
                self.output.writer.abort()?;
                Ok(Progress::Done(None))
            }
            Err(error) => {
                self.abandon();
                Err(error.into())
            }
        }
    }

    /// Gives the merge up. What can not be deleted of its file is swept up at the next start.
    pub(super) fn abandon(self: Box<Self>) {
        _ = self.output.writer.abort();
    }

    /// Merges until that many bytes are written; is everything merged?
    fn run(&mut self, until: u64) -> Result<bool, SstableError> {
        loop {
            match self.merged.step()? {
                Step::Header(header) => {
                    self.output.end_partition()?;
                    self.is_ours = self.job.sharding.shard_of(header.key.token) == self.job.shard;
                    if self.is_ours {
                        self.purge.timestamp_min = self.job.oldest_elsewhere(&header.key);
                        self.output.pending = Some(self.purge.header(header));
                        self.output.write_pending_if_full()?;
                    }
                }
                Step::Item(item) if self.is_ours => {
                    if let Some(item) = self.purge.item(item) {
                        self.output.append(&item)?;
                    }
                }
                Step::Item(_) => {}
                Step::Need(_) => unreachable!("a direct source reads what it lacks"),
                Step::End => {
                    self.output.end_partition()?;
                    return Ok(true);
                }
            }
            if self.output.writer.data_bytes_written() >= until {
                return Ok(false);
            }
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
