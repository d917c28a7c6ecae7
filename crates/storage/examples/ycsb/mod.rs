//! Tables and rows of load generators: YCSB's (a text key, ten fields of 100 bytes) and rows of 40 bytes in
//! partitions of a thousand.

use std::collections::BTreeMap;
use std::sync::Arc;

use rows::{
    CellRef, Clustering, ClusteringBuilder, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey,
    RowBuilder,
};
use schema::{
    ChunkLength, ClusteringOrder, ColumnKind, Keyspace, Replication, Schema, Table, TableBuilder, TableId,
};
use types::CqlType;

use crate::given;

const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
const WIDE_ROWS: u64 = 1000;
const TIMESTAMP: i64 = 1_704_067_200_000_000;

/// The table of wide or of lone rows.
pub(crate) fn table(is_wide: bool) -> Table {
    let id = TableId(uuid::Uuid::from_u128(77));
    let mut table = match is_wide {
        true => TableBuilder::new(id, "y", "wide")
            .column("p", ColumnKind::PartitionKey(0), CqlType::Bigint)
            .column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Bigint)
            .column("v", ColumnKind::Regular, CqlType::Blob),
        false => (0..FIELDS).fold(
            TableBuilder::new(id, "y", "usertable").column(
                "y_id",
                ColumnKind::PartitionKey(0),
                CqlType::Text,
            ),
            |table, field| table.column(format!("field{field}"), ColumnKind::Regular, CqlType::Text),
        ),
    };
    table.options.compression.chunk_length = ChunkLength::Fixed(16 << 10);
    table.options.compaction.options.insert("enabled".into(), "false".into());
    table.build().expect("a sound table")
}

/// The schema with it.
pub(crate) fn schema(table: &Arc<Table>) -> Arc<Schema> {
    let class = "org.apache.cassandra.locator.SimpleStrategy".into();
    let options = BTreeMap::from([("replication_factor".into(), "1".into())]);
    let keyspace = Keyspace {
        name: "y".into(),
        replication: Replication { class, options },
        durable_writes: true,
        tables: [(table.name().to_owned(), Arc::clone(table))].into_iter().collect(),
        types: BTreeMap::new(),
    };
    let base = given::schema();
    let others = base.keyspaces().values().map(|keyspace| (**keyspace).clone());
    Arc::new(Schema::new(2, others.chain([keyspace])))
}

/// Values are cut from random letters, as a load generator's are.
pub(crate) fn letters() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b' ' + ((state >> 33) % 95) as u8
    };
    (0..1 << 20).map(|_| letter()).collect()
}

/// The write of a row.
pub(crate) fn mutation(table: &Table, row: u64, letters: &[u8]) -> Mutation {
    let is_wide = !table.clustering_types().is_empty();
    let liveness = Liveness::at(TIMESTAMP + row as i64);
    let live = DeletionTime::LIVE;
    let key = match is_wide {
        true => (row / WIDE_ROWS).to_be_bytes().to_vec(),
        false => format!("user{}", row.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes(),
    };
    let clustering = match is_wide {
        true => {
            let mut clustering = ClusteringBuilder::new();
            clustering.push(Some(&(row % WIDE_ROWS).to_be_bytes()));
            clustering.finish()
        }
        false => Clustering::EMPTY,
    };
    let mut builder = RowBuilder::new(&clustering, liveness, live);
    let mut columns: Vec<_> = table.regular_columns().iter().collect();
    columns.sort_by_key(|column| column.id);
    let value_bytes = if is_wide { 24 } else { FIELD_BYTES };
    for (index, column) in columns.iter().enumerate() {
        let start = (row as usize * 7919 + index * 104_729) % (letters.len() - value_bytes);
        builder.cell(column.id, CellRef::live(liveness.timestamp, &letters[start..start + value_bytes]));
    }
    let mut mutation = MutationBuilder::new(table.id(), PartitionKey::new(key.into()));
    mutation.row(builder.finish());
    mutation.finish()
}
