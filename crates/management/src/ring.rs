//! All nodes together, and what they have of a keyspace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `/v1/cluster`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cluster {
    pub name: String,
    pub snitch: String,
    pub partitioner: String,
    pub schema_versions: BTreeMap<String, Vec<String>>,
    pub unreachable: Vec<String>,
    pub data_centers: BTreeMap<String, DataCenter>,
    pub release_versions: BTreeMap<String, Vec<String>>,
    pub keyspaces: BTreeMap<String, Replication>,
    pub seeds: Vec<String>,
}

/// How many nodes a data centre has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataCenter {
    pub node_count: u64,
    pub down_count: u64,
}

/// How a keyspace is replicated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Replication {
    pub class: String,
    pub options: BTreeMap<String, String>,
}

/// `/v1/ranges`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ranges {
    pub schema_version: String,
    pub ranges: Vec<Range>,
}

/// A range of the ring, with its replicas.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Range {
    pub start_token: String,
    pub end_token: String,
    pub replicas: Vec<Replica>,
}

/// A node that has a range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Replica {
    pub address: String,
    pub cql_address: String,
    pub data_center: String,
    pub rack: String,
}

/// `/v1/repair`: what was compared, and what of it was not equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repaired {
    pub partial_count: u64,
    pub page_count: u64,
    pub differing_count: u64,
    pub mended_count: u64,
    pub table_count: u64,
}

/// `/v1/endpoints`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoints {
    pub addresses: Vec<String>,
}
