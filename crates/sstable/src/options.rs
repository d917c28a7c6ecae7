//! How a table file is written.

use rows::EncodingStats;
use schema::{CompressionOptions, Table};
use uuid::Uuid;

use crate::{KeptRoom, TableSummary};

/// How to write a table file.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Compressor and chunk size of Data.
    pub compression: CompressionOptions,
    /// How many absent keys the filter may take for present, as a fraction; 1 writes no filter.
    pub bloom_filter_fp_chance: f64,
    /// How many partitions will be written, for the size of the filter.
    pub estimated_partitions: u64,
    /// A row index entry is made for this many bytes of rows (Cassandra's `column_index_size`).
    pub row_index_block_bytes: u32,
    /// Milliseconds since 1970 when the content was repaired; 0 when it was not.
    pub repaired_at: u64,
    /// The repair session that holds the file, if one does.
    pub pending_repair: Option<Uuid>,
    /// Level of the leveled compaction strategy.
    pub level: u32,
    /// What timestamps and the like are stored relative to.
    pub encoding_stats: EncodingStats,
    /// As much of what is written is kept for [`TableWriter::finish_keeping`].
    ///
    /// [`TableWriter::finish_keeping`]: crate::TableWriter::finish_keeping
    pub kept_room: KeptRoom,
}

impl WriterOptions {
    /// As the table's options say; the rest as for a flush without further knowledge.
    pub fn for_table(table: &Table) -> Self {
        WriterOptions {
            compression: table.options().compression.clone(),
            bloom_filter_fp_chance: table.options().bloom_filter_fp_chance.0,
            estimated_partitions: 1024,
            row_index_block_bytes: 4 * 1024,
            repaired_at: 0,
            pending_repair: None,
            level: 0,
            encoding_stats: EncodingStats::NONE,
            kept_room: KeptRoom::default(),
        }
    }

    /// As the table's options say, for what a file has that is written anew: it stays what it was to repair and
    /// compaction.
    pub fn for_file_of(table: &Table, summary: &TableSummary) -> Self {
        WriterOptions {
            estimated_partitions: summary.partition_count,
            encoding_stats: summary.encoding_stats,
            repaired_at: summary.repaired_at,
            pending_repair: summary.pending_repair,
            level: summary.level,
            ..WriterOptions::for_table(table)
        }
    }
}
