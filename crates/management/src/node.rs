//! One node, and the ring.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `/v1/version`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Version {
    pub release_version: String,
    pub product: String,
    pub product_version: String,
    pub git_sha: String,
}

/// `/v1/info`: one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    pub host_id: String,
    pub gossip_active: bool,
    pub native_transport_active: bool,
    pub load_bytes: u64,
    pub uncompressed_load_bytes: u64,
    pub generation: i64,
    pub uptime_seconds: u64,
    pub memory_used_bytes: Option<u64>,
    pub memory_max_bytes: u64,
    pub memory: Vec<MemoryUse>,
    pub prepared_statements: PreparedStatements,
    pub data_center: String,
    pub rack: String,
    pub exception_count: u64,
    pub chunk_cache: ChunkCache,
    pub requests: Requests,
    pub memtable_bytes: u64,
    pub percent_repaired: Option<f64>,
    pub tokens: Vec<String>,
    pub bootstrap_state: String,
    pub turns: Vec<Turns>,
    pub shard_count: u64,
    pub connection_count: u64,
    pub draining: bool,
}

/// What the node has in memory, of one use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryUse {
    pub name: String,
    pub held_bytes: u64,
    pub share_bytes: Option<u64>,
}

/// What there is of prepared statements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PreparedStatements {
    pub count: u64,
    pub size_bytes: u64,
    pub capacity_bytes: u64,
    pub evicted_count: u64,
}

/// The cache of chunks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChunkCache {
    pub entries: u64,
    pub size_bytes: u64,
    pub capacity_bytes: u64,
    pub misses: u64,
    pub requests: u64,
    pub index_bytes: u64,
    pub pinned_bytes: u64,
    pub disk_reads: u64,
    pub disk_read_bytes: u64,
}

/// Requests that are under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    pub held_bytes: u64,
    pub capacity_bytes: u64,
    pub waiting_connections: u64,
    pub overloaded_count: u64,
}

/// A shard's longest turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turns {
    pub shard: u64,
    pub longest_own_micros: u64,
    pub longest_queued_micros: u64,
    pub over_limit_count: u64,
}

/// `/v1/status`: the ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    pub nodes: Vec<Node>,
    pub note: Option<String>,
}

/// One node of the ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    pub data_center: String,
    pub rack: String,
    pub address: String,
    pub host_id: String,
    pub is_up: bool,
    pub state: String,
    pub load_bytes: Option<u64>,
    pub token_count: u64,
    pub token: Option<String>,
    pub tokens: Vec<String>,
    pub owns: Option<f64>,
    pub owns_is_effective: bool,
}

/// `/v1/timeouts`: how long requests may take, by their kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timeouts {
    pub milliseconds: BTreeMap<String, u64>,
}
