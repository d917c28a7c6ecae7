//! What is known of tables.

use serde::{Deserialize, Serialize};

/// `/v1/tablestats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableStats {
    pub keyspaces: Vec<Keyspace>,
}

/// The tables of a keyspace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keyspace {
    pub name: String,
    pub read_count: u64,
    pub read_total_us: u64,
    pub write_count: u64,
    pub write_total_us: u64,
    pub pending_flushes: u64,
    pub tables: Vec<Table>,
}

/// What is known of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Table {
    pub name: String,
    pub is_index: bool,
    pub sstable_count: u64,
    pub old_sstable_count: u64,
    /// Files in the form that the table asks for; a node that does not say so has no others.
    pub current_sstable_count: Option<u64>,
    pub current_compressed_bytes: u64,
    pub sstable_size_max_bytes: u64,
    pub space_live_bytes: u64,
    pub space_total_bytes: u64,
    pub space_snapshots_bytes: u64,
    pub off_heap_bytes: u64,
    pub compressed_bytes: u64,
    pub uncompressed_bytes: u64,
    pub partition_count_estimate: u64,
    pub memtable_cell_count: u64,
    pub memtable_bytes: u64,
    pub memtable_off_heap_bytes: u64,
    pub memtable_switch_count: u64,
    pub speculative_retries: u64,
    pub read_count: u64,
    pub read_total_us: u64,
    pub write_count: u64,
    pub write_total_us: u64,
    pub pending_flushes: u64,
    pub repaired_bytes: u64,
    pub unrepaired_bytes: u64,
    pub pending_repair_bytes: u64,
    pub filter_false_positives: u64,
    pub filter_false_ratio: f64,
    pub filter_bytes: u64,
    pub filter_off_heap_bytes: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub index_summary_off_heap_bytes: u64,
    pub compression_metadata_off_heap_bytes: u64,
    pub partition_min_bytes: u64,
    pub partition_max_bytes: u64,
    pub partition_mean_bytes: u64,
    pub live_cells_per_slice_mean: Option<f64>,
    pub live_cells_per_slice_max: u64,
    pub tombstones_per_slice_mean: Option<f64>,
    pub tombstones_per_slice_max: u64,
    pub droppable_tombstone_ratio: f64,
    pub chunk_length: Option<ChunkLength>,
    pub prefetch: Option<Prefetch>,
    pub damaged_files: Vec<String>,
    pub file_memory_bytes: u64,
}

/// Of a table that comes into memory after a start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prefetch {
    pub wanted: String,
    pub state: String,
    pub planned_chunks: u64,
    pub read_chunks: u64,
    pub read_bytes: u64,
}

/// Of a table with `'chunk_length_in_kb': 'auto'`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChunkLength {
    pub chosen: Vec<ChosenLength>,
    pub cold_reads: u64,
    pub cold_range_reads: u64,
    pub cold_reads_min: u64,
    pub wanted_bytes_mean: u64,
    pub costs: Vec<LengthCost>,
}

/// On how many shards a length was chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChosenLength {
    pub bytes: u64,
    pub shards: u64,
}

/// What a read would cost on the average with a length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LengthCost {
    pub bytes: u64,
    pub read_bytes: u64,
}
