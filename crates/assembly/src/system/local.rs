//! `system.local`: this node, as drivers look at it before anything else.

use read::PartitionRows;
use schema::Table;
use uuid::Uuid;

use super::made_up::{MadeUpRows, Value};
use super::view::{CQL_VERSION, NodeView, PARTITIONER, RELEASE_VERSION, STORAGE_PORT};

/// The one row there is.
pub(super) fn rows(table: &Table, view: &NodeView, schema_version: Uuid) -> Vec<PartitionRows> {
    let address = view.listen().ip();
    let tokens = view.tokens.iter().map(|token| token.to_string().into_bytes()).collect();
    let mut rows = MadeUpRows::new(table);
    rows.add([
        ("key", "local".into()),
        ("bootstrapped", "COMPLETED".into()),
        ("broadcast_address", address.into()),
        ("broadcast_port", i32::from(STORAGE_PORT).into()),
        ("cluster_name", (&view.options.cluster_name).into()),
        ("cql_version", CQL_VERSION.into()),
        ("data_center", (&view.options.data_center).into()),
        ("gossip_generation", i32::try_from(view.started_seconds).unwrap_or(i32::MAX).into()),
        ("host_id", view.host_id.into()),
        ("listen_address", address.into()),
        ("listen_port", i32::from(STORAGE_PORT).into()),
        ("native_protocol_version", "5".into()),
        ("partitioner", PARTITIONER.into()),
        ("rack", (&view.options.rack).into()),
        ("release_version", RELEASE_VERSION.into()),
        ("rpc_address", address.into()),
        ("rpc_port", i32::from(view.listen().port()).into()),
        ("schema_version", schema_version.into()),
        ("tokens", Value::Set(tokens)),
    ]);
    rows.finish()
}
