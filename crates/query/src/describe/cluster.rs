//! `DESCRIBE CLUSTER`.

use std::collections::BTreeMap;

use types::{CqlType, encoding};

use super::{column, result};
use crate::ddl::is_system_keyspace;
use crate::response::{RowSink, RowsResult};
use crate::select::ComputedRows;
use crate::virtual_tables::ClusterFacts;

/// Names of the cluster; inside a keyspace of a user also who owns which ranges.
pub(super) fn describe(facts: &ClusterFacts, session: Option<&str>) -> RowsResult {
    let mut rows = ComputedRows::default();
    let mut columns = Vec::new();
    for (name, value) in
        [("cluster", &facts.cluster), ("partitioner", &facts.partitioner), ("snitch", &facts.snitch)]
    {
        columns.push(column(name, CqlType::Text));
        rows.cell(Some(value.as_bytes()));
    }
    if session.is_some_and(|keyspace| !is_system_keyspace(keyspace)) {
        let owners = CqlType::List { element: CqlType::Text.into(), frozen: true };
        let cql_type = CqlType::Map { key: CqlType::Text.into(), value: owners.into(), frozen: true };
        columns.push(column("range_ownership", cql_type));
        rows.cell(Some(&range_ownership(facts)));
    }
    rows.end_row();
    result(columns.into(), rows, None)
}

/// A map from the end of each range to its owners.
fn range_ownership(facts: &ClusterFacts) -> Vec<u8> {
    let list = |owners: &Vec<String>| {
        encoding::collection(owners.len(), owners.iter().map(|owner| Some(owner.as_bytes())))
    };
    let ranges: BTreeMap<&str, Vec<u8>> =
        facts.range_ownership.iter().map(|(token, owners)| (token.as_str(), list(owners))).collect();
    let cells = ranges.iter().flat_map(|(token, owners)| [Some(token.as_bytes()), Some(owners.as_slice())]);
    encoding::collection(ranges.len(), cells)
}
