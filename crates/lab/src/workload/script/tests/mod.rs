//! Scripts without a server: what is made, what is refused, what an answer is checked for.

mod bundled;
mod generators;
mod refusals;
mod running;

use std::sync::Arc;

use protocol::{ColumnSpec, Prepared, PreparedMetadata, ResultMetadata};
use types::CqlType;

use super::fitting::Fitting;
use super::*;
use crate::manifest::Pace;

/// A plan of a script.
fn plan(text: &str, row_count: u64) -> Plan {
    Plan {
        workload: "own".to_owned(),
        settings: BTreeMap::new(),
        nodes: Vec::new(),
        keyspace: "ks".to_owned(),
        replication: String::new(),
        consistency: "ONE".to_owned(),
        row_count,
        pace: Pace::Closed { in_flight: 1 },
        connection_count: 1,
        thread_count: 1,
        warmup_s: 0.0,
        measured_s: 1.0,
        repetition_count: 1,
        dropped_count: 0,
        seed: 1,
        error_part_max: 0.0,
        disturbances: Vec::new(),
        timeout_s: crate::manifest::DEFAULT_TIMEOUT_S,
        script: Some(text.to_owned()),
    }
}

fn columns(columns: &[(&str, CqlType)]) -> Vec<ColumnSpec> {
    let column = |(name, cql_type): &(&str, CqlType)| ColumnSpec {
        keyspace: "ks".into(),
        table: "t".into(),
        name: (*name).into(),
        cql_type: cql_type.clone(),
    };
    columns.iter().map(column).collect()
}

/// A statement as a server prepares it: its markers, of which the first so many are the key, and its result.
fn prepared(markers: &[(&str, CqlType)], key_count: u16, result: &[(&str, CqlType)]) -> Prepared {
    let bind =
        PreparedMetadata { columns: columns(markers), partition_key_indexes: (0..key_count).collect() };
    let result = Arc::new(ResultMetadata::new(columns(result)));
    Prepared { id: Default::default(), result_metadata_id: Default::default(), bind, result }
}
