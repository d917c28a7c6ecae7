//! What is known of a table.

use memtable::Memtable;

use super::TableStore;
use super::compaction::files_as_asked;
use crate::metrics::{TableStats, of_files};

impl TableStore {
    /// About how many partitions it has here: too many where several files know one.
    pub fn partition_count_estimate(&self) -> u64 {
        let in_files: u64 = self.files.all().iter().map(|file| file.summary().partition_count).sum();
        in_files + self.memtables.sum(|memtable| memtable.partition_count() as u64)
    }

    /// What is known of it here.
    pub fn stats(&self) -> TableStats {
        let (clock, table) = (&self.shared.runtime.clock, self.table());
        let gc_before = self.shared.gc_before(&table);
        let mut stats = of_files(&self.files.all(), gc_before);
        let (metrics, in_memory) = (&self.metrics, |of| self.memtables.sum(of));
        let (live_rows_per_read, tombstones_per_read) = metrics.slices(clock.elapsed());
        let (current_sstable_count, current_compressed_bytes) = files_as_asked(&self.files.all(), &table);
        stats.estimated_partition_count += in_memory(|memtable| memtable.partition_count() as u64);
        TableStats {
            read_count: metrics.read_count.get(),
            read_nanos: metrics.read_nanos.get(),
            write_count: metrics.write_count.get(),
            write_nanos: metrics.write_nanos.get(),
            pending_flushes: self.memtables.frozen().len() as u64,
            memtable_cell_count: in_memory(Memtable::operation_count),
            memtable_data_size: in_memory(|memtable| memtable.memory_bytes() as u64),
            memtable_switch_count: metrics.flush_count.get(),
            memtable_partition_count: in_memory(|memtable| memtable.partition_count() as u64),
            speculative_retries: metrics.speculative_retry_count.get(),
            cache_hit_count: metrics.cache_hit_count.get(),
            cache_miss_count: metrics.cache_miss_count.get(),
            live_rows_per_read,
            tombstones_per_read,
            current_sstable_count,
            current_compressed_bytes,
            chunk_length: self.chunk_length.stats(&table.options().compression),
            prefetch: self.prefetch.stats(&table),
            damaged_files: self.files.damage().into_iter().map(|damaged| damaged.reason).collect(),
            ..stats
        }
    }
}
