//! `DESCRIBE CLUSTER`.

use std::collections::BTreeMap;

use schema::Schema;
use types::{CqlType, encoding};

use super::{column, result};
use crate::ddl::is_system_keyspace;
use crate::response::{RowSink, RowsResult};
use crate::select::ComputedRows;
use crate::virtual_tables::VirtualTables;

/// Names of the cluster; inside a keyspace of a user also who has which of its ranges.
pub(super) fn describe(
    virtual_tables: &dyn VirtualTables,
    schema: &Schema,
    session: Option<&str>,
) -> RowsResult {
    let facts = virtual_tables.cluster_facts();
    let mut rows = ComputedRows::default();
    let mut columns = Vec::new();
    for (name, value) in
        [("cluster", &facts.cluster), ("partitioner", &facts.partitioner), ("snitch", &facts.snitch)]
    {
        columns.push(column(name, CqlType::Text));
        rows.cell(Some(value.as_bytes()));
    }
    let keyspace = session.filter(|name| !is_system_keyspace(name)).and_then(|name| schema.keyspace(name));
    if let Some(keyspace) = keyspace {
        let owners = CqlType::List { element: CqlType::Text.into(), frozen: true };
        let cql_type = CqlType::Map { key: CqlType::Text.into(), value: owners.into(), frozen: true };
        columns.push(column("range_ownership", cql_type));
        rows.cell(Some(&range_ownership(&virtual_tables.range_ownership(&keyspace.replication))));
    }
    rows.end_row();
    result(columns.into(), rows, None)
}

/// A map from the end of each range to its owners.
fn range_ownership(ranges: &BTreeMap<String, Vec<String>>) -> Vec<u8> {
    let list = |owners: &Vec<String>| {
        encoding::collection(owners.len(), owners.iter().map(|owner| Some(owner.as_bytes())))
    };
    let owners: Vec<Vec<u8>> = ranges.values().map(list).collect();
    let cells = ranges.keys().zip(&owners).flat_map(|(token, owners)| [token.as_bytes(), owners.as_slice()]);
    encoding::collection(ranges.len(), cells.map(Some))
}
