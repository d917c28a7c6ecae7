//! Compactions: what goes on, what ended, what was asked of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `/v1/compactions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compactions {
    pub concurrent_compactors: u64,
    pub throughput_bytes_per_second: u64,
    pub pending: Vec<PendingCompactions>,
    pub completed: u64,
    pub compacted_bytes: u64,
    pub compacted_compressed_bytes: u64,
    pub aborted: u64,
    pub dropped_files: u64,
    pub reduced: u64,
    pub left_out_files: u64,
    pub completed_in_15_minutes: u64,
    pub uptime_seconds: u64,
    pub active: Vec<ActiveCompaction>,
}

/// How many are left to do for a table, by estimate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingCompactions {
    pub keyspace: String,
    pub table: String,
    pub count: u64,
}

/// One that goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActiveCompaction {
    pub id: String,
    pub kind: String,
    pub keyspace: String,
    pub table: String,
    pub completed_bytes: u64,
    pub total_bytes: u64,
    pub total_compressed_bytes: u64,
    pub files: u64,
    pub directory: String,
}

/// `/v1/compactionhistory`, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionHistory {
    pub compactions: Vec<Compaction>,
}

/// One that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compaction {
    pub id: String,
    pub keyspace: String,
    pub table: String,
    pub compacted_at_ms: i64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub rows_merged: Vec<(i32, i64)>,
    pub properties: BTreeMap<String, String>,
}

/// `/v1/compact`: so many tables; or so many files, when these were named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compacted {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_count: Option<u64>,
}

/// Compactions that were told to stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionsStopped {
    pub stopped: u64,
}

/// `/v1/upgradesstables`: tables whose files were written anew, and keyspaces where somebody stopped it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rewritten {
    pub table_count: u64,
    pub aborted_keyspaces: Vec<String>,
}
