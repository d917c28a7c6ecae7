//! What a table on a shard has done, counted where it happens.

use std::cell::Cell;
use std::time::Duration;

/// Counters of one table on one shard. Plain cells: only their own shard touches them.
#[derive(Debug, Default)]
pub(crate) struct TableMetrics {
    pub(crate) read_count: Cell<u64>,
    pub(crate) read_nanos: Cell<u64>,
    pub(crate) write_count: Cell<u64>,
    pub(crate) write_nanos: Cell<u64>,
    pub(crate) flush_count: Cell<u64>,
    pub(crate) cache_hit_count: Cell<u64>,
    pub(crate) cache_miss_count: Cell<u64>,
}

impl TableMetrics {
    pub(crate) fn add(counter: &Cell<u64>, count: u64) {
        counter.set(counter.get().wrapping_add(count));
    }

    pub(crate) fn add_nanos(counter: &Cell<u64>, duration: Duration) {
        Self::add(counter, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }
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
    pub filter_bytes: u64,
    pub file_memory_bytes: u64,
    pub cache_hit_count: u64,
    pub cache_miss_count: u64,
    pub damaged_files: Vec<String>,
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
        self.filter_bytes += other.filter_bytes;
        self.file_memory_bytes += other.file_memory_bytes;
        self.cache_hit_count += other.cache_hit_count;
        self.cache_miss_count += other.cache_miss_count;
        self.damaged_files.extend(other.damaged_files.iter().cloned());
    }
}
