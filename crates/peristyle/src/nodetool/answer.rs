//! What the management port answers; the shapes of `docs/internals/management.md`. A field that a
//! server leaves out reads as zero or nothing.

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Version {
    pub(super) release_version: String,
    pub(super) git_sha: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Info {
    pub(super) host_id: String,
    pub(super) gossip_active: bool,
    pub(super) native_transport_active: bool,
    pub(super) load_bytes: u64,
    pub(super) uncompressed_load_bytes: u64,
    pub(super) generation: u64,
    pub(super) uptime_seconds: u64,
    pub(super) memory_used_bytes: u64,
    pub(super) memory_max_bytes: u64,
    pub(super) memory: Vec<MemoryUse>,
    pub(super) prepared_statements: PreparedStatements,
    pub(super) data_center: String,
    pub(super) rack: String,
    pub(super) exception_count: u64,
    pub(super) chunk_cache: ChunkCache,
    pub(super) requests: Requests,
    pub(super) memtable_bytes: u64,
    pub(super) percent_repaired: Option<f64>,
    pub(super) tokens: Vec<String>,
    pub(super) bootstrap_state: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MemoryUse {
    pub(super) name: String,
    pub(super) held_bytes: u64,
    pub(super) share_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PreparedStatements {
    pub(super) count: u64,
    pub(super) size_bytes: u64,
    pub(super) capacity_bytes: u64,
    pub(super) evicted_count: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChunkCache {
    pub(super) entries: u64,
    pub(super) size_bytes: u64,
    pub(super) capacity_bytes: u64,
    pub(super) misses: u64,
    pub(super) requests: u64,
    pub(super) index_bytes: u64,
    pub(super) pinned_bytes: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Requests {
    pub(super) held_bytes: u64,
    pub(super) capacity_bytes: u64,
    pub(super) waiting_connections: u64,
    pub(super) overloaded_count: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) nodes: Vec<Node>,
    pub(super) note: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    pub(super) data_center: String,
    pub(super) rack: String,
    pub(super) address: String,
    pub(super) host_id: String,
    pub(super) is_up: bool,
    pub(super) state: String,
    pub(super) load_bytes: Option<u64>,
    pub(super) token_count: u64,
    pub(super) token: String,
    pub(super) owns: Option<f64>,
    pub(super) owns_is_effective: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TableStats {
    pub(super) keyspaces: Vec<Keyspace>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Keyspace {
    pub(super) name: String,
    pub(super) read_count: u64,
    pub(super) read_total_us: f64,
    pub(super) write_count: u64,
    pub(super) write_total_us: f64,
    pub(super) pending_flushes: u64,
    pub(super) tables: Vec<Table>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) is_index: bool,
    pub(super) sstable_count: u64,
    pub(super) old_sstable_count: u64,
    /// Files in the form that the table asks for; a node that does not say so has no others.
    pub(super) current_sstable_count: Option<u64>,
    pub(super) current_compressed_bytes: u64,
    pub(super) sstable_size_max_bytes: u64,
    pub(super) space_live_bytes: u64,
    pub(super) space_total_bytes: u64,
    pub(super) space_snapshots_bytes: u64,
    pub(super) off_heap_bytes: u64,
    pub(super) compressed_bytes: u64,
    pub(super) uncompressed_bytes: u64,
    pub(super) partition_count_estimate: u64,
    pub(super) memtable_cell_count: u64,
    pub(super) memtable_bytes: u64,
    pub(super) memtable_off_heap_bytes: u64,
    pub(super) memtable_switch_count: u64,
    pub(super) speculative_retries: u64,
    pub(super) read_count: u64,
    pub(super) read_total_us: f64,
    pub(super) write_count: u64,
    pub(super) write_total_us: f64,
    pub(super) pending_flushes: u64,
    pub(super) repaired_bytes: u64,
    pub(super) unrepaired_bytes: u64,
    pub(super) pending_repair_bytes: u64,
    pub(super) filter_false_positives: u64,
    pub(super) filter_false_ratio: f64,
    pub(super) filter_bytes: u64,
    pub(super) filter_off_heap_bytes: u64,
    pub(super) cache_hits: u64,
    pub(super) cache_misses: u64,
    pub(super) index_summary_off_heap_bytes: u64,
    pub(super) compression_metadata_off_heap_bytes: u64,
    pub(super) partition_min_bytes: u64,
    pub(super) partition_max_bytes: u64,
    pub(super) partition_mean_bytes: u64,
    pub(super) live_cells_per_slice_mean: Option<f64>,
    pub(super) live_cells_per_slice_max: u64,
    pub(super) tombstones_per_slice_mean: Option<f64>,
    pub(super) tombstones_per_slice_max: u64,
    pub(super) droppable_tombstone_ratio: f64,
    pub(super) chunk_length: Option<ChunkLength>,
    pub(super) prefetch: Option<Prefetch>,
}

/// Of a table that comes into memory after a start.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Prefetch {
    pub(super) wanted: String,
    pub(super) state: String,
    pub(super) planned_chunks: u64,
    pub(super) read_chunks: u64,
    pub(super) read_bytes: u64,
}

/// Of a table with `'chunk_length_in_kb': 'auto'`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChunkLength {
    pub(super) chosen: Vec<ChosenLength>,
    pub(super) cold_reads: u64,
    pub(super) cold_range_reads: u64,
    pub(super) cold_reads_min: u64,
    pub(super) wanted_bytes_mean: u64,
    pub(super) costs: Vec<LengthCost>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChosenLength {
    pub(super) bytes: u64,
    pub(super) shards: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LengthCost {
    pub(super) bytes: u64,
    pub(super) read_bytes: u64,
}
