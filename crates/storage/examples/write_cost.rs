//! What the way of a row from memory to merged files costs: `cargo run --release -p peristyle-storage --example
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
mod ycsb;

use std::sync::Arc;
use std::time::{Duration, Instant};

use given::{Node, options, run};
use rows::Mutation;
use runtime::MemoryDisk;
use ycsb::{letters, mutation, schema, table};

/// Files merged.
const FILES: u64 = 4;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_wide = arguments.get(1).is_some_and(|kind| kind == "wide");
    let rows = arguments.get(2).and_then(|rows| rows.parse().ok()).unwrap_or(100_000);
    measure(is_wide, rows);
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
        let bytes = shard.table(table.id()).expect("the table").stats().uncompressed_bytes;
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
