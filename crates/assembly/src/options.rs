//! What a node is put together with.

use std::net::SocketAddr;

use storage::StorageOptions;

/// What a node is put together with.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// How the node keeps its data.
    pub storage: StorageOptions,
    /// Where CQL is spoken, as `system.local` tells it; port 0 when nobody listens.
    pub listen: SocketAddr,
    /// The whole memory budget in bytes.
    pub memory_bytes: u64,
    /// Name that drivers check to be the same on all nodes.
    pub cluster_name: String,
    /// This node's data centre.
    pub data_center: String,
    /// This node's rack.
    pub rack: String,
    /// What `system_views.settings` tells beside what this floor knows.
    pub settings: Vec<(&'static str, String)>,
}
