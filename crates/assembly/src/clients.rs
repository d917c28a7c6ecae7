//! Who is connected, as far as the made-up tables tell of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What `system_views.clients` tells of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFacts {
    /// Where it comes from.
    pub address: SocketAddr,
    /// Once its handshake is done.
    pub protocol_version: Option<u8>,
    /// What it said of itself.
    pub options: BTreeMap<String, String>,
    /// The driver's name.
    pub driver_name: Option<String>,
    /// The driver's version.
    pub driver_version: Option<String>,
    /// The keyspace of `USE`.
    pub keyspace: Option<String>,
    /// Requests so far.
    pub request_count: u64,
}

/// Whoever knows who is connected.
pub trait Clients: Send + Sync {
    /// Everybody who is connected, by address.
    fn list(&self) -> Vec<ClientFacts>;
}

/// Nobody can connect.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoClients;

impl Clients for NoClients {
    fn list(&self) -> Vec<ClientFacts> {
        Vec::new()
    }
}
