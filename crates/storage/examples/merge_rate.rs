//! How fast a core merges table files: `cargo run --release -p peristyle-storage --example merge_rate`.
//!
//! Four files that hold the same partitions, with 1 KB rows and with 40-byte rows, on a disk in memory, so
//! that nothing but the merge is measured: read, verify, merge, write, once without compression and
//! once with LZ4.

#![expect(clippy::print_stdout, reason = "a program that prints figures")]
#![expect(clippy::disallowed_methods, reason = "real time is what is measured")]
#![allow(dead_code, reason = "the tests' words are more than are said here")]

#[path = "../tests/node/given.rs"]
mod given;

use std::sync::Arc;
use std::time::Instant;

use given::{Node, insert, options, run};
use runtime::MemoryDisk;
use schema::Schema;

/// Files merged.
const FILES: usize = 4;

fn main() {
    for is_compressed in [false, true] {
        measure("1 KB rows", 1_000, 40_000, is_compressed);
        measure("40-byte rows", 40, 250_000, is_compressed);
    }
}

/// The schema of the tests, `k.t` with or without compression, never compacted by itself.
fn schema(is_compressed: bool) -> Arc<Schema> {
    let base = given::schema();
    let mut keyspaces: Vec<_> = base.keyspaces().values().map(|keyspace| (**keyspace).clone()).collect();
    for keyspace in &mut keyspaces {
        let Some(table) = keyspace.tables.get_mut("t") else { continue };
        let mut builder = table.to_builder();
        builder.options.compression.chunk_length = schema::ChunkLength::Fixed(16 << 10);
        if !is_compressed {
            builder.options.compression.class = None;
        }
        builder.options.compaction.options.insert("enabled".into(), "false".into());
        *table = Arc::new(builder.build().expect("a sound table"));
    }
    Arc::new(Schema::new(2, keyspaces))
}

fn measure(name: &str, value_bytes: usize, rows_per_file: i32, is_compressed: bool) {
    run(async {
        let mut options = options(1);
        options.memtable_bytes = 4 << 30;
        options.segment_bytes = 32 << 20;
        let node = Node::start(&MemoryDisk::new(), options).expect("starts");
        let shard = node.shard(0);
        shard.take_schema(schema(is_compressed)).await.expect("a schema");
        let table = Arc::clone(shard.schema().table("k", "t").expect("k.t"));
        for file in 0..FILES as i32 {
            for row in 0..rows_per_file {
                let value: String = (0..value_bytes)
                    .map(|at| char::from(b'a' + ((row as usize * 7 + at * at) % 26) as u8))
                    .collect();
                let place = (row / 100, row % 100 * FILES as i32 + file);
                shard.write(&[insert(&table, place.0, place.1, &value, 1)]).await.expect("written");
            }
            shard.flush(table.id()).await.expect("flushed");
        }
        let bytes = shard.table(table.id()).expect("the table").stats().uncompressed_bytes;
        let started = Instant::now();
        shard.compact(table.id()).await.expect("compacted");
        let seconds = started.elapsed().as_secs_f64();
        let rows = FILES as f64 * f64::from(rows_per_file);
        let compression = if is_compressed { "LZ4" } else { "none" };
        println!(
            "{name}, compression {compression}: {:.0} MB/s of input, {:.2} M rows/s ({seconds:.2} s, {FILES} files)",
            bytes as f64 / 1e6 / seconds,
            rows / 1e6 / seconds
        );
    });
}
