//! What servers somebody wants to measure, if they are started for it.

use serde::{Deserialize, Serialize};

/// What servers a profile wants, or a study had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Servers {
    /// How many nodes.
    pub node_count: usize,
    /// Memory of all of them together; as much as they take, if none.
    pub memory_bytes: Option<u64>,
    /// When they acknowledge a write; as usual, if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_log_sync: Option<CommitLogSync>,
}

/// When a server acknowledges a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitLogSync {
    /// At once, as Cassandra does by default: a power cut may lose the last seconds.
    #[default]
    Periodic,
    /// When it is on disk.
    Batch,
}

impl Servers {
    /// So many nodes, with all that they take.
    pub fn nodes(node_count: usize) -> Servers {
        Servers { node_count, memory_bytes: None, commit_log_sync: None }
    }

    /// With so much memory together, page cache and all.
    #[must_use]
    pub fn within(self, memory_bytes: u64) -> Servers {
        Servers { memory_bytes: Some(memory_bytes), ..self }
    }
}

impl CommitLogSync {
    /// Both.
    pub const ALL: [CommitLogSync; 2] = [CommitLogSync::Periodic, CommitLogSync::Batch];

    /// As servers call it.
    pub fn name(self) -> &'static str {
        match self {
            CommitLogSync::Periodic => "periodic",
            CommitLogSync::Batch => "batch",
        }
    }
}
