//! What has failed, and what files look like.

use serde::{Deserialize, Serialize};

/// `/v1/faults`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Faults {
    pub disk_failure_policy: String,
    pub commit_failure_policy: String,
    pub native_transport_active: bool,
    pub stopped_by_failure: bool,
    pub directories: Vec<Directory>,
    pub quarantined: Vec<String>,
    pub fault_count: u64,
    pub faults: Vec<Fault>,
}

/// A data directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Directory {
    pub path: String,
    pub writable: bool,
}

/// Something that failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fault {
    pub at_ms: i64,
    pub kind: String,
    pub act: String,
    pub what: String,
}

/// `/v1/verify` and `/v1/scrub`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileReports {
    pub files: Vec<FileReport>,
}

/// What was found of a table file, and for a scrub what was done about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileReport {
    pub path: String,
    pub problem: Option<String>,
    /// Partitions; of a scrub alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}
