//! Data moved in and out.

use serde::{Deserialize, Serialize};

/// `/v1/import`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Imported {
    pub file_count: u64,
    pub partition_count: u64,
    pub failed: Vec<FailedImport>,
}

/// A directory that was left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedImport {
    pub directory: String,
    pub reason: String,
}

/// `/v1/refresh`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refreshed {
    pub file_count: u64,
    pub partition_count: u64,
}

/// `/v1/snapshots`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshots {
    pub snapshots: Vec<Snapshot>,
}

/// One table in one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    pub tag: String,
    pub keyspace: String,
    pub table: String,
    pub true_bytes: u64,
    pub disk_bytes: u64,
    pub created_at: Option<String>,
    pub expires_at: Option<String>,
}

/// `/v1/snapshots/clear`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotsCleared {
    pub snapshot_count: u64,
}

/// `/v1/backups`: are files kept as they are made?
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Backups {
    pub enabled: bool,
}
