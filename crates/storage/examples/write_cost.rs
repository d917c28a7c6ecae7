//! What the way of a row from memory to merged files costs: `cargo run --release -p storage --example
//! write_cost [lone|wide] [ROWS]`.
//!
//! Rows of YCSB (a text key, ten fields of 100 bytes) or rows of 40 bytes in partitions of a thousand are
//! written, flushed to four files that share no row, and merged, on a disk in memory. The time of each phase
//! is told; to count instructions instead, run it under `valgrind --tool=callgrind`, with
//! `--toggle-collect='*write_memtable*'` for the flushes or `--toggle-collect='*Merge*advance*'` for the merge.

#![expect(clippy::print_stdout, reason = "a program that prints figures")]
#![expect(clippy::disallowed_methods, reason = "real time is what is measured")]
#![allow(dead_code, reason = "the tests' words are more than are said here")]

#[path = "../tests/node/given.rs"]
mod given;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use given::{Node, options, run};
use rows::{
    CellRef, Clustering, ClusteringBuilder, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey,
    RowBuilder,
};
use runtime::MemoryDisk;
use schema::{
    ChunkLength, ClusteringOrder, ColumnKind, Keyspace, Replication, Schema, Table, TableBuilder, TableId,
};
use types::CqlType;

/// Files merged.
const FILES: u64 = 4;
const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
const WIDE_ROWS: u64 = 1000;
const TIMESTAMP: i64 = 1_704_067_200_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_wide = arguments.get(1).is_some_and(|kind| kind == "wide");
    let rows = arguments.get(2).and_then(|rows| rows.parse().ok()).unwrap_or(100_000);
    measure(is_wide, rows);
}

fn table(is_wide: bool) -> Table {
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

fn schema(table: &Arc<Table>) -> Arc<Schema> {
    let class = "org.apache.cassandra.locator.SimpleStrategy".into();
    let options = BTreeMap::from([("replication_factor".into(), "1".into())]);
    let keyspace = Keyspace {
        name: "y".into(),
        replication: Replication { class, options },
        durable_writes: true,
        tables: BTreeMap::from([(table.name().to_owned(), Arc::clone(table))]),
        types: BTreeMap::new(),
    };
    let base = given::schema();
    let others = base.keyspaces().values().map(|keyspace| (**keyspace).clone());
    Arc::new(Schema::new(2, others.chain([keyspace])))
}

/// Values are cut from random letters, as a load generator's are.
fn letters() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b' ' + ((state >> 33) % 95) as u8
    };
    (0..1 << 20).map(|_| letter()).collect()
}

fn mutation(table: &Table, row: u64, letters: &[u8]) -> Mutation {
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

fn measure(is_wide: bool, rows: u64) {
    run(async {
        let mut options = options(1);
        options.memtable_bytes = 8 << 30;
        options.segment_bytes = 32 << 20;
        let node = Node::start(&MemoryDisk::new(), options).expect("starts");
        let shard = node.shard(0);
        let table = Arc::new(table(is_wide));
        shard.take_schema(schema(&table)).await.expect("a schema");
        let letters = letters();
        let mut spent = [Duration::ZERO; 3];
        for file in 0..FILES {
            // Files hold rows of all partitions.
            let own = (0..rows).filter(|row| row % FILES == file);
            let mutations: Vec<Mutation> = own.map(|row| mutation(&table, row, &letters)).collect();
            let started = Instant::now();
            for mutation in &mutations {
                shard.write(std::slice::from_ref(mutation)).await.expect("written");
            }
            spent[0] += started.elapsed();
            drop(mutations);
            let started = Instant::now();
            shard.flush(table.id()).await.expect("flushed");
            spent[1] += started.elapsed();
        }
        let bytes = shard.table_stats(table.id()).expect("the table").uncompressed_bytes;
        let started = Instant::now();
        shard.compact(table.id()).await.expect("compacted");
        spent[2] += started.elapsed();
        let each = |spent: Duration| spent.as_secs_f64() * 1e6 / rows as f64;
        println!(
            "{} rows, {} bytes each in files: write {:.2}, flush {:.2}, merge {:.2} us a row",
            rows,
            bytes / rows,
            each(spent[0]),
            each(spent[1]),
            each(spent[2])
        );
    });
}
