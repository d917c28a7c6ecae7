//! What a table on a shard has done, counted where it happens.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use cache::ChunkLengthStats;
use runtime::Clock;
use sstable::{TableFile, TableSummary};
use types::Token;

use crate::PrefetchStats;

/// Counters of one table on one shard. Plain cells: only their own shard touches them.
#[derive(Debug, Default)]
pub struct TableMetrics {
    pub(crate) read_count: Cell<u64>,
    pub(crate) read_nanos: Cell<u64>,
    /// Writes.
    pub write_count: Cell<u64>,
    /// What they took together, in nanoseconds.
    pub write_nanos: Cell<u64>,
    /// How long the last read and the last write took that were [sampled](Sample).
    read_sample: Cell<u64>,
    write_sample: Cell<u64>,
    pub(crate) flush_count: Cell<u64>,
    pub(crate) speculative_retry_count: Cell<u64>,
    /// Chunks that the cache had.
    pub cache_hit_count: Cell<u64>,
    /// Those that it had not.
    pub cache_miss_count: Cell<u64>,
    slices: RefCell<SliceMinutes>,
}

impl TableMetrics {
    /// Begins a read whose time is [sampled](Sample).
    #[inline]
    pub fn begin_reads<'a>(&'a self, count: usize, clock: &'a dyn Clock) -> Sample<'a> {
        Sample::begin(&self.read_count, &self.read_nanos, &self.read_sample, count, clock)
    }

    /// The same for writes.
    #[inline]
    pub fn begin_writes<'a>(&'a self, count: usize, clock: &'a dyn Clock) -> Sample<'a> {
        Sample::begin(&self.write_count, &self.write_nanos, &self.write_sample, count, clock)
    }

    /// Notes what a read came upon; `now` is since the start of the process.
    #[inline]
    pub fn note_slice(&self, now: Duration, live_count: u64, tombstone_count: u64) {
        self.slices.borrow_mut().note(minute(now), live_count, tombstone_count);
    }

    /// Counts a read, and what it came upon; times are since the start of the process.
    #[inline]
    pub fn note_read(&self, started: Duration, now: Duration, live_count: u64, tombstone_count: u64) {
        Self::add(&self.read_count, 1);
        Self::add_nanos(&self.read_nanos, now.saturating_sub(started));
        self.note_slice(now, live_count, tombstone_count);
    }

    /// Counts reads for which one more replica was asked, because another one was late.
    pub fn note_speculative_retries(&self, count: u64) {
        Self::add(&self.speculative_retry_count, count);
    }

    /// What reads of the last five minutes came upon: live rows, and tombstones.
    pub(crate) fn slices(&self, now: Duration) -> (SliceStats, SliceStats) {
        self.slices.borrow().recent(minute(now))
    }

    /// Counts.
    #[inline]
    pub fn add(counter: &Cell<u64>, count: u64) {
        counter.set(counter.get().wrapping_add(count));
    }

    /// Adds time that was spent.
    #[inline]
    pub fn add_nanos(counter: &Cell<u64>, duration: Duration) {
        Self::add(counter, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// The time of something so short that to ask the clock twice is a good part of it: one in sixteen is timed,
/// and stands for those that follow.
pub struct Sample<'a> {
    count: &'a Cell<u64>,
    nanos: &'a Cell<u64>,
    last: &'a Cell<u64>,
    clock: &'a dyn Clock,
    started: Option<Duration>,
}

const SAMPLED_PART: u64 = 16;
const _: () = assert!(SAMPLED_PART.is_power_of_two(), "to count up to it takes no division");

impl<'a> Sample<'a> {
    /// Of so many things that are done together.
    fn begin(
        count: &'a Cell<u64>,
        nanos: &'a Cell<u64>,
        last: &'a Cell<u64>,
        together: usize,
        clock: &'a dyn Clock,
    ) -> Self {
        let since_timed = count.get() % SAMPLED_PART;
        let is_timed = since_timed == 0 || since_timed + together as u64 > SAMPLED_PART;
        Sample { count, nanos, last, clock, started: is_timed.then(|| clock.elapsed()) }
    }

    /// Counts so many that were done.
    #[inline]
    pub fn end(self, done: u64) {
        if let Some(started) = self.started {
            let spent = self.clock.elapsed().saturating_sub(started).as_nanos() / u128::from(done.max(1));
            self.last.set(u64::try_from(spent).unwrap_or(u64::MAX));
        }
        TableMetrics::add(self.count, done);
        TableMetrics::add(self.nanos, self.last.get().saturating_mul(done));
    }
}

fn minute(now: Duration) -> u64 {
    now.as_secs() / 60
}

/// What reads came upon in each of the last minutes. The bound is that of Cassandra's histograms, which
/// forget what is older than five.
#[derive(Debug, Default)]
struct SliceMinutes([SliceMinute; MINUTES_KEPT as usize]);

const MINUTES_KEPT: u64 = 5;
const _: () = assert!(MINUTES_KEPT > 0, "the present minute is kept");

#[derive(Clone, Copy, Debug, Default)]
struct SliceMinute {
    /// Which one, from the start of the process.
    minute: u64,
    live: SliceStats,
    tombstones: SliceStats,
}

impl SliceMinutes {
    fn note(&mut self, minute: u64, live_count: u64, tombstone_count: u64) {
        let kept = &mut self.0[(minute % MINUTES_KEPT) as usize];
        if kept.minute != minute {
            *kept = SliceMinute { minute, ..SliceMinute::default() };
        }
        kept.live.note(live_count);
        kept.tombstones.note(tombstone_count);
    }

    fn recent(&self, minute: u64) -> (SliceStats, SliceStats) {
        let (mut live, mut tombstones) = Default::default();
        for kept in self.0.iter().filter(|kept| kept.minute + MINUTES_KEPT > minute) {
            SliceStats::add(&mut live, kept.live);
            SliceStats::add(&mut tombstones, kept.tombstones);
        }
        (live, tombstones)
    }
}

/// How much of something single reads came upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceStats {
    /// Reads.
    pub read_count: u64,
    /// Of all of them.
    pub total: u64,
    /// Of the one that came upon most.
    pub max: u64,
}

impl SliceStats {
    fn note(&mut self, count: u64) {
        self.add(SliceStats { read_count: 1, total: count, max: count });
    }

    fn add(&mut self, other: SliceStats) {
        self.read_count += other.read_count;
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
    }

    /// Of one read, on the average; `None` when there was none.
    pub fn mean(&self) -> Option<f64> {
        (self.read_count > 0).then(|| self.total as f64 / self.read_count as f64)
    }
}

/// Bytes of partitions, as the statistics of table files estimate them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionBytes {
    /// Of the smallest; 0 when there is none.
    pub min: u64,
    /// Of the largest.
    pub max: u64,
    /// How many were counted.
    pub count: u64,
    /// Of all of them.
    pub total: u128,
}

impl PartitionBytes {
    fn of_file(summary: &TableSummary) -> Self {
        let bytes = &summary.partition_bytes;
        let (count, mean) = (bytes.count(), bytes.mean());
        let total = u128::from(mean) * u128::from(count);
        PartitionBytes { min: bytes.min(), max: bytes.max(), count, total }
    }

    /// Adds those of other files.
    pub fn add(&mut self, other: &PartitionBytes) {
        self.min =
            if self.count == 0 || (other.count > 0 && other.min < self.min) { other.min } else { self.min };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.total += other.total;
    }

    /// On the average; 0 when there is none.
    pub fn mean(&self) -> u64 {
        let mean = self.total.checked_div(u128::from(self.count)).unwrap_or(0);
        u64::try_from(mean).unwrap_or(u64::MAX)
    }
}

/// Which part of the ring a file covers, and what of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileSpan {
    /// Token of the first partition.
    pub first: Token,
    /// Token of the last one.
    pub last: Token,
    /// How many partitions.
    pub partition_count: u64,
    /// How large they are.
    pub partition_bytes: PartitionBytes,
}

impl FileSpan {
    /// About how many partitions lie above `start` and up to `end`: tokens are scattered evenly.
    pub fn partitions_between(&self, start: Token, end: Token) -> f64 {
        let (first, last) = (i128::from(self.first.0), i128::from(self.last.0));
        let from = first.max(i128::from(start.0) + 1);
        let to = last.min(i128::from(end.0));
        if from > to {
            return 0.0;
        }
        self.partition_count as f64 * (to - from + 1) as f64 / (last - first + 1) as f64
    }
}

/// What the files of a table say.
pub(crate) fn of_files(files: &[Arc<TableFile>], gc_before: u32) -> TableStats {
    let mut stats = TableStats::default();
    for file in files {
        let summary = file.summary();
        stats.sstable_count += 1;
        stats.old_sstable_count += u64::from(!file.descriptor().version.is_current());
        stats.sstable_bytes_max = stats.sstable_bytes_max.max(summary.disk_bytes);
        stats.space_used_live += summary.disk_bytes;
        stats.space_used_total += summary.disk_bytes;
        stats.uncompressed_bytes += summary.uncompressed_bytes;
        if summary.repaired_at != 0 {
            stats.repaired_bytes += summary.uncompressed_bytes;
        } else if summary.pending_repair.is_some() {
            stats.pending_repair_bytes += summary.uncompressed_bytes;
        }
        stats.compressed_bytes += summary.data_file_bytes;
        stats.estimated_partition_count += summary.partition_count;
        stats.filter_bytes += file.filter().memory_bytes();
        stats.filter_disk_bytes += file.filter().disk_bytes();
        stats.index_summary_bytes += file.index_summary_bytes();
        stats.compression_metadata_bytes += file.chunks().compression_metadata_bytes();
        stats.file_memory_bytes += file.memory_bytes();
        let filter = file.filter().counts();
        stats.filter_false_positives += filter.false_positive_count;
        stats.filter_checks += filter.negative_count + filter.positive_count + filter.false_positive_count;
        stats.droppable_tombstones += summary.tombstone_drop_times.sum(gc_before);
        let cells = &summary.cells_per_partition;
        stats.file_cells += u128::from(cells.mean()) * u128::from(cells.count());
        let partition_bytes = PartitionBytes::of_file(summary);
        stats.partition_bytes.add(&partition_bytes);
        stats.spans.push(FileSpan {
            first: summary.first_key.token,
            last: summary.last_key.token,
            partition_count: summary.partition_count,
            partition_bytes,
        });
    }
    stats
}

/// What is known of a table on one shard, or on all of them together.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "named as nodetool tablestats prints them")]
pub struct TableStats {
    pub read_count: u64,
    pub read_nanos: u64,
    pub write_count: u64,
    pub write_nanos: u64,
    pub pending_flushes: u64,
    pub sstable_count: u64,
    pub space_used_live: u64,
    pub space_used_total: u64,
    pub uncompressed_bytes: u64,
    pub compressed_bytes: u64,
    pub estimated_partition_count: u64,
    pub memtable_cell_count: u64,
    pub memtable_data_size: u64,
    pub memtable_switch_count: u64,
    pub memtable_partition_count: u64,
    pub speculative_retries: u64,
    pub filter_bytes: u64,
    pub filter_disk_bytes: u64,
    pub filter_false_positives: u64,
    pub filter_checks: u64,
    pub index_summary_bytes: u64,
    pub compression_metadata_bytes: u64,
    pub old_sstable_count: u64,
    pub current_sstable_count: u64,
    pub current_compressed_bytes: u64,
    pub sstable_bytes_max: u64,
    pub repaired_bytes: u64,
    pub pending_repair_bytes: u64,
    pub droppable_tombstones: f64,
    pub file_cells: u128,
    pub partition_bytes: PartitionBytes,
    pub live_rows_per_read: SliceStats,
    pub tombstones_per_read: SliceStats,
    pub spans: Vec<FileSpan>,
    pub file_memory_bytes: u64,
    pub cache_hit_count: u64,
    pub cache_miss_count: u64,
    pub damaged_files: Vec<String>,
    pub chunk_length: Option<ChunkLengthStats>,
    pub prefetch: Option<PrefetchStats>,
}

impl TableStats {
    /// Adds what another shard says.
    pub fn add(&mut self, other: &TableStats) {
        self.read_count += other.read_count;
        self.read_nanos += other.read_nanos;
        self.write_count += other.write_count;
        self.write_nanos += other.write_nanos;
        self.pending_flushes += other.pending_flushes;
        self.sstable_count += other.sstable_count;
        self.space_used_live += other.space_used_live;
        self.space_used_total += other.space_used_total;
        self.uncompressed_bytes += other.uncompressed_bytes;
        self.compressed_bytes += other.compressed_bytes;
        self.estimated_partition_count += other.estimated_partition_count;
        self.memtable_cell_count += other.memtable_cell_count;
        self.memtable_data_size += other.memtable_data_size;
        self.memtable_switch_count += other.memtable_switch_count;
        self.memtable_partition_count += other.memtable_partition_count;
        self.speculative_retries += other.speculative_retries;
        self.filter_bytes += other.filter_bytes;
        self.filter_disk_bytes += other.filter_disk_bytes;
        self.filter_false_positives += other.filter_false_positives;
        self.filter_checks += other.filter_checks;
        self.index_summary_bytes += other.index_summary_bytes;
        self.compression_metadata_bytes += other.compression_metadata_bytes;
        self.old_sstable_count += other.old_sstable_count;
        self.current_sstable_count += other.current_sstable_count;
        self.current_compressed_bytes += other.current_compressed_bytes;
        self.sstable_bytes_max = self.sstable_bytes_max.max(other.sstable_bytes_max);
        self.repaired_bytes += other.repaired_bytes;
        self.pending_repair_bytes += other.pending_repair_bytes;
        self.droppable_tombstones += other.droppable_tombstones;
        self.file_cells += other.file_cells;
        self.partition_bytes.add(&other.partition_bytes);
        self.live_rows_per_read.add(other.live_rows_per_read);
        self.tombstones_per_read.add(other.tombstones_per_read);
        self.spans.extend(&other.spans);
        self.file_memory_bytes += other.file_memory_bytes;
        self.cache_hit_count += other.cache_hit_count;
        self.cache_miss_count += other.cache_miss_count;
        self.damaged_files.extend(other.damaged_files.iter().cloned());
        if let Some(other) = &other.chunk_length {
            self.chunk_length.get_or_insert_default().add(other);
        }
        if let Some(other) = &other.prefetch {
            self.prefetch.get_or_insert_default().add(other);
        }
    }

    /// The share of tombstones that may go among the cells of all files.
    pub fn droppable_tombstone_ratio(&self) -> f64 {
        if self.file_cells == 0 { 0.0 } else { self.droppable_tombstones / self.file_cells as f64 }
    }

    /// The share of wrong answers of filters among all of them.
    pub fn filter_false_ratio(&self) -> f64 {
        if self.filter_checks == 0 {
            0.0
        } else {
            self.filter_false_positives as f64 / self.filter_checks as f64
        }
    }

    /// What Cassandra calls off heap: what open files keep in memory of filters and places.
    pub fn file_index_bytes(&self) -> u64 {
        self.filter_bytes + self.index_summary_bytes + self.compression_metadata_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_the_last_five_minutes_count() {
        let metrics = TableMetrics::default();
        let at = |minutes: u64| Duration::from_secs(minutes * 60 + 7);
        assert_eq!(metrics.slices(at(0)).0.mean(), None);
        metrics.note_read(at(0), at(0), 10, 4);
        metrics.note_read(at(2), at(2), 20, 0);
        let (live, tombstones) = metrics.slices(at(4));
        assert_eq!((live.mean(), live.max), (Some(15.0), 20));
        assert_eq!((tombstones.mean(), tombstones.max), (Some(2.0), 4));
        let (live, tombstones) = metrics.slices(at(5));
        assert_eq!((live.mean(), live.max, tombstones.max), (Some(20.0), 20, 0));
        metrics.note_read(at(7), at(7), 1, 0);
        assert_eq!(metrics.slices(at(7)).0, SliceStats { read_count: 1, total: 1, max: 1 });
    }

    #[test]
    fn partitions_are_counted_by_the_part_of_the_ring() {
        let span = |first, last| FileSpan {
            first: Token(first),
            last: Token(last),
            partition_count: 100,
            partition_bytes: PartitionBytes::default(),
        };
        let between = |span: FileSpan, start, end| span.partitions_between(Token(start), Token(end)).round();
        assert_eq!(between(span(1, 1000), 0, 500), 50.0);
        assert_eq!(between(span(1, 1000), 500, 5000), 50.0);
        assert_eq!(between(span(1, 1000), 1000, 5000), 0.0);
        assert_eq!(between(span(7, 7), 6, 7), 100.0);
        assert_eq!(between(span(i64::MIN, i64::MAX), i64::MIN, i64::MAX), 100.0);
    }

    #[test]
    fn every_sixteenth_is_timed_and_stands_for_the_others() {
        let (metrics, clock) = (TableMetrics::default(), runtime::ManualClock::default());
        for spent in 1..=17 {
            let sample = metrics.begin_reads(1, &clock);
            clock.advance(Duration::from_micros(spent));
            sample.end(1);
        }
        assert_eq!(metrics.read_count.get(), 17);
        assert_eq!(metrics.read_nanos.get(), 16 * 1_000 + 17_000);
        let sample = metrics.begin_reads(16, &clock);
        clock.advance(Duration::from_micros(30));
        sample.end(10);
        assert_eq!(metrics.read_nanos.get(), 33_000 + 30_000);
    }
}
