//! What is known of a table file without reading its rows.

use rows::{EncodingStats, PartitionKey, Slice};
use uuid::Uuid;

use crate::statistics::{EstimatedHistogram, Statistics, TombstoneHistogram};

/// What is known of a table file without reading its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSummary {
    /// Its id.
    pub id: Uuid,
    /// The first partition in ring order.
    pub first_key: PartitionKey,
    /// The last partition in ring order.
    pub last_key: PartitionKey,
    /// How many partitions it holds, exactly.
    pub partition_count: u64,
    /// How many rows it holds, static ones included.
    pub row_count: u64,
    /// How many columns of rows are set.
    pub column_count: u64,
    /// The least timestamp, µs; `i64::MIN` when there is none.
    pub min_timestamp: i64,
    /// The greatest timestamp, µs; `i64::MAX` when there is none.
    pub max_timestamp: i64,
    /// The least local deletion time or expiration, seconds.
    pub min_local_deletion_time: u32,
    /// The greatest local deletion time, [`rows::NO_DELETION_TIME`] if anything lasts.
    pub max_local_deletion_time: u32,
    /// The least TTL, seconds; 0 if anything lasts.
    pub min_ttl: u32,
    /// The greatest TTL, seconds.
    pub max_ttl: u32,
    /// Bounds of all clusterings in it.
    pub covered_clusterings: Slice,
    /// May it hold partition deletions?
    pub has_partition_deletions: bool,
    /// When tombstones can be dropped and expiring values end.
    pub tombstone_drop_times: TombstoneHistogram,
    /// Bytes of its partitions.
    pub partition_bytes: EstimatedHistogram,
    /// Cells of its partitions.
    pub cells_per_partition: EstimatedHistogram,
    /// Compressed by uncompressed bytes; -1 when not compressed.
    pub compression_ratio: f64,
    /// Bytes of Data, uncompressed.
    pub uncompressed_bytes: u64,
    /// Bytes of Data as it lies on the disk.
    pub data_file_bytes: u64,
    /// Bytes of all components on the disk.
    pub disk_bytes: u64,
    /// Level of the leveled compaction strategy.
    pub level: u32,
    /// Milliseconds since 1970 when the content was repaired; 0 when it was not.
    pub repaired_at: u64,
    /// The repair session that holds it.
    pub pending_repair: Option<Uuid>,
    /// What its times are stored relative to.
    pub encoding_stats: EncodingStats,
}

impl TableSummary {
    /// From the statistics; `bytes`: of Data uncompressed, of Data on disk, of all components.
    pub(crate) fn new(
        id: Uuid,
        (first_key, last_key): (PartitionKey, PartitionKey),
        partition_count: u64,
        statistics: &Statistics,
        (uncompressed_bytes, data_file_bytes, disk_bytes): (u64, u64, u64),
    ) -> Self {
        let stats = &statistics.stats;
        TableSummary {
            id,
            first_key,
            last_key,
            partition_count,
            row_count: stats.row_count,
            column_count: stats.column_count,
            min_timestamp: stats.min_timestamp,
            max_timestamp: stats.max_timestamp,
            min_local_deletion_time: stats.min_local_deletion_time,
            max_local_deletion_time: stats.max_local_deletion_time,
            min_ttl: stats.min_ttl,
            max_ttl: stats.max_ttl,
            covered_clusterings: stats.covered.clone(),
            has_partition_deletions: stats.has_partition_deletions,
            tombstone_drop_times: stats.tombstones.clone(),
            partition_bytes: stats.partition_bytes.clone(),
            cells_per_partition: stats.cells_per_partition.clone(),
            compression_ratio: stats.compression_ratio,
            uncompressed_bytes,
            data_file_bytes,
            disk_bytes,
            level: stats.level,
            repaired_at: stats.repaired_at,
            pending_repair: stats.pending_repair,
            encoding_stats: statistics.header.stats,
        }
    }

    /// The share of droppable tombstones among cells, given that those before `gc_before`
    /// (seconds) may go: Cassandra's `getEstimatedDroppableTombstoneRatio`.
    pub fn droppable_tombstone_ratio(&self, gc_before: u32) -> f64 {
        let cells = self.cells_per_partition.mean().saturating_mul(self.cells_per_partition.count());
        if cells == 0 { 0.0 } else { self.tombstone_drop_times.sum(gc_before) / cells as f64 }
    }
}
