//! How long requests have taken, and which are traced.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `GET /v1/latencies`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latencies {
    pub requests: BTreeMap<String, Latency>,
}

/// Of requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    pub count: u64,
    pub p50_micros: u64,
    pub p75_micros: u64,
    pub p95_micros: u64,
    pub p98_micros: u64,
    pub p99_micros: u64,
    pub p999_micros: u64,
    pub min_micros: u64,
    pub max_micros: u64,
}

/// `GET /v1/tracing`, and what it is set to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tracing {
    pub chance: f64,
}
