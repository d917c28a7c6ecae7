//! What a node knows of the others, and what goes between them.

use serde::{Deserialize, Serialize};

/// `/v1/gossip`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gossip {
    pub ring_epoch: Option<u64>,
    pub silence_max_ms: u64,
    pub nodes: Vec<KnownNode>,
}

/// What is known of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KnownNode {
    pub address: String,
    pub is_self: bool,
    pub generation: Option<u64>,
    pub serves_clients: bool,
    pub silence_ms: Option<u64>,
    pub schema_epoch: u64,
    pub schema_version: Option<String>,
    pub data_center: String,
    pub rack: String,
    pub release_version: String,
    pub host_id: String,
    pub internal_address: String,
    pub native_address: String,
    pub token: Option<String>,
}

/// `/v1/network`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    pub mode: String,
    pub read_repairs: ReadRepairs,
    pub replica_messages: Messages,
    pub agreement_messages: Messages,
}

/// Reads whose answers from several replicas were compared, and those that differed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadRepairs {
    pub compared: u64,
    pub mismatched: u64,
}

/// Requests to other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Messages {
    pub pending: u64,
    pub completed: u64,
    pub dropped: u64,
}
