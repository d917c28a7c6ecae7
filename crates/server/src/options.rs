//! What a server is started with.

use std::net::SocketAddr;

use storage::StorageOptions;

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// How the node keeps its data.
    pub storage: StorageOptions,
    /// Where CQL is spoken.
    pub listen: SocketAddr,
    /// Where the management port is; none when it is off.
    pub management: Option<SocketAddr>,
    /// The whole memory budget in bytes, for the management port to tell.
    pub memory_bytes: u64,
    /// Name that drivers check to be the same on all nodes.
    pub cluster_name: String,
    /// This node's data centre.
    pub data_center: String,
    /// This node's rack.
    pub rack: String,
    /// What a client can ask for at most.
    pub limits: Limits,
}

/// What a client can ask for at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections of the whole node.
    pub connection_count: usize,
    /// Bytes of one frame's body.
    pub frame_bytes: usize,
    /// Bytes of requests being carried out, of the whole node.
    pub in_flight_bytes: usize,
    /// Requests being carried out for one connection; beyond it, the server reads no further.
    pub requests_per_connection: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connection_count: 20_000,
            frame_bytes: protocol::FRAME_BYTES_MAX_DEFAULT,
            in_flight_bytes: 256 << 20,
            requests_per_connection: 4096,
        }
    }
}
