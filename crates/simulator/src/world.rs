//! The tables of the simulation, and whose keys are whose.
//!
//! Every client owns keys of its own in every table, so that what it reads of them is decided by
//! its own writes alone, whatever others do at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rows::PartitionKey;
use schema::{
    ChunkLength, ClusteringOrder, ColumnKind, CompactionOptions, Keyspace, Prefetch, Replication, Schema,
    Table, TableBuilder, TableId,
};
use types::CqlType;
use uuid::Uuid;

/// Clients that work at the same time.
pub(crate) const CLIENT_COUNT: usize = 3;
/// Keys of one client in one table.
pub(crate) const KEYS_PER_CLIENT: usize = 5;
/// The keyspace of the simulation.
pub(crate) const KEYSPACE: &str = "sim";
/// Rows of many kinds; tombstones stay, so that any timestamp may be used.
pub(crate) const WIDE: &str = "wide";
/// One row a partition; tombstones go at once.
pub(crate) const NARROW: &str = "narrow";
/// Its columns come and go, and so does it.
pub(crate) const CHURN: &str = "churn";

/// The names of the tables clients use.
pub(crate) const TABLES: [&str; 3] = [WIDE, NARROW, CHURN];

/// The schema every node of a simulation is born with.
pub(crate) fn base_schema() -> Schema {
    let batches = TableBuilder::new(TableId(Uuid::from_u128(1)), "system", "batches")
        .column("id", ColumnKind::PartitionKey(0), CqlType::Timeuuid)
        .column(
            "mutations",
            ColumnKind::Regular,
            CqlType::List { element: Arc::new(CqlType::Blob), frozen: false },
        )
        .column("version", ColumnKind::Regular, CqlType::Int);
    let system = keyspace("system", [batches]);
    let sim = keyspace(KEYSPACE, [wide(), narrow(), churn(TableId(Uuid::from_u128(4)))]);
    Schema::new(0, [system, sim])
}

fn keyspace(name: &str, tables: impl IntoIterator<Item = TableBuilder>) -> Keyspace {
    let options = BTreeMap::from([("replication_factor".into(), "1".into())]);
    let class = "org.apache.cassandra.locator.SimpleStrategy".into();
    let build = |builder: TableBuilder| {
        let table = builder.build().expect("the tables of the simulation are sound");
        (table.name().to_owned(), Arc::new(table))
    };
    Keyspace {
        name: name.into(),
        replication: Replication { class, options },
        durable_writes: true,
        tables: tables.into_iter().map(build).collect(),
        types: BTreeMap::new(),
    }
}

fn wide() -> TableBuilder {
    let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: false };
    let map = CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(CqlType::Text), frozen: false };
    let mut table = TableBuilder::new(TableId(Uuid::from_u128(2)), KEYSPACE, WIDE)
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("c1", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int)
        .column("c2", ColumnKind::Clustering(1, ClusteringOrder::Desc), CqlType::Text)
        .column("s", ColumnKind::Static, CqlType::Text)
        .column("v", ColumnKind::Regular, CqlType::Text)
        .column("n", ColumnKind::Regular, CqlType::Int)
        .column("st", ColumnKind::Regular, set)
        .column("m", ColumnKind::Regular, map);
    table.options.compression.chunk_length = ChunkLength::Auto;
    table.options.caching.prefetch = Prefetch::Hot;
    table
}

fn narrow() -> TableBuilder {
    let mut table = TableBuilder::new(TableId(Uuid::from_u128(3)), KEYSPACE, NARROW)
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Text)
        .column("w", ColumnKind::Regular, CqlType::Text);
    table.options.gc_grace_seconds = 0;
    table.options.compression.class = None;
    table.options.compaction = compaction(2);
    table
}

/// The table whose columns come and go, under an id of its own each time.
pub(crate) fn churn(id: TableId) -> TableBuilder {
    let mut table = TableBuilder::new(id, KEYSPACE, CHURN)
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("c1", ColumnKind::Clustering(0, ClusteringOrder::Desc), CqlType::Int)
        .column("a", ColumnKind::Regular, CqlType::Text);
    table.options.gc_grace_seconds = 3;
    table.options.compaction = compaction(1);
    table.options.compression.chunk_length = ChunkLength::Fixed(4096);
    table
}

/// Strategies with options so small that each has something to do.
const STRATEGIES: [(&str, &[(&str, &str)]); 7] = [
    ("SizeTieredCompactionStrategy", &[("min_threshold", "2"), ("tombstone_compaction_interval", "1")]),
    ("LeveledCompactionStrategy", &[("sstable_size_in_mb", "0.01"), ("fanout_size", "2")]),
    (
        "TimeWindowCompactionStrategy",
        &[("compaction_window_unit", "MINUTES"), ("expired_sstable_check_frequency_seconds", "0")],
    ),
    (
        "UnifiedCompactionStrategy",
        &[("min_sstable_size", "0B"), ("target_sstable_size", "10KiB"), ("sstable_growth", "0")],
    ),
    ("UnifiedCompactionStrategy", &[("scaling_parameters", "L4, N"), ("overlap_inclusion_method", "NONE")]),
    (
        "LeveledCompactionStrategy",
        &[("sstable_size_in_mb", "0.02"), ("single_sstable_uplevel", "true"), ("min_threshold", "2")],
    ),
    (
        "TimeWindowCompactionStrategy",
        &[("compaction_window_unit", "MINUTES"), ("unchecked_tombstone_compaction", "true")],
    ),
];

/// How many strategies there are to choose from.
pub(crate) const STRATEGY_COUNT: usize = STRATEGIES.len();

/// One of the strategies.
pub(crate) fn compaction(number: usize) -> CompactionOptions {
    let (class, options) = STRATEGIES[number % STRATEGY_COUNT];
    CompactionOptions {
        class: format!("org.apache.cassandra.db.compaction.{class}"),
        options: options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
    }
}

/// A key of a client.
pub(crate) fn key(client: usize, number: usize) -> PartitionKey {
    let value = i32::try_from(client * KEYS_PER_CLIENT + number).unwrap_or(i32::MAX);
    PartitionKey::new(Bytes::copy_from_slice(&value.to_be_bytes()))
}

/// Whose key it is.
pub(crate) fn owner_of(key: &PartitionKey) -> Option<usize> {
    let value = i32::from_be_bytes(key.bytes.as_ref().try_into().ok()?);
    let client = usize::try_from(value).ok()? / KEYS_PER_CLIENT;
    (client < CLIENT_COUNT).then_some(client)
}

/// The tables clients use, as they are now.
pub(crate) fn tables(schema: &Schema) -> Vec<Arc<Table>> {
    TABLES.iter().filter_map(|name| schema.table(KEYSPACE, name).cloned()).collect()
}
