//! `system.local`: this node, as drivers look at it before anything else.

use read::PartitionRows;
use schema::Table;
use uuid::Uuid;

use super::made_up::{MadeUpRows, Value};
use super::view::{CQL_VERSION, NodeView, PARTITIONER, RELEASE_VERSION};

/// The one row there is.
pub(super) fn rows(table: &Table, view: &NodeView, schema_version: Uuid) -> Vec<PartitionRows> {
    let (broadcast, listen, rpc) = (view.address(), view.internode_listen(), view.options.cql_broadcast);
    let mut rows = MadeUpRows::new(table);
    rows.add([
        ("key", "local".into()),
        ("bootstrapped", "COMPLETED".into()),
        ("broadcast_address", broadcast.ip().into()),
        ("broadcast_port", i32::from(broadcast.port()).into()),
        ("cluster_name", (&view.options.cluster_name).into()),
        ("cql_version", CQL_VERSION.into()),
        ("data_center", (&view.options.data_center).into()),
        ("gossip_generation", i32::try_from(view.started_seconds).unwrap_or(i32::MAX).into()),
        ("host_id", view.host_id.into()),
        ("listen_address", listen.ip().into()),
        ("listen_port", i32::from(listen.port()).into()),
        ("native_protocol_version", "5".into()),
        ("partitioner", PARTITIONER.into()),
        ("rack", (&view.options.rack).into()),
        ("release_version", RELEASE_VERSION.into()),
        ("rpc_address", rpc.ip().into()),
        ("rpc_port", i32::from(rpc.port()).into()),
        ("schema_version", schema_version.into()),
        ("tokens", Value::tokens(&view.tokens())),
    ]);
    rows.finish()
}
