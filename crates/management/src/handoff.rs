//! What other nodes have missed, and how it is handed to them.

use serde::{Deserialize, Serialize};

/// `/v1/handoff`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handoffs {
    pub is_enabled: bool,
    pub is_paused: bool,
    /// Of each shard to each node; absent for no limit.
    pub bytes_per_second: Option<u64>,
    pub window_ms: u64,
    pub disabled_data_centers: Vec<String>,
    /// Those that have missed something.
    pub nodes: Vec<PendingNode>,
}

/// A node that has missed something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingNode {
    pub host_id: String,
    pub address: String,
    pub rack: String,
    pub data_center: String,
    pub is_up: bool,
    /// Slots of tables that are sent from the log.
    pub logged_count: u64,
    /// Slots of tables that are compared.
    pub compared_count: u64,
    /// How long ago the first of what is sent was missed.
    pub oldest_age_ms: Option<u64>,
}
