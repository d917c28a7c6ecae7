//! What rows of 1 KB cost on their way to table files and back, on a disk in memory: flushed, merged from four
//! files, and read by their keys. A figure is the CPU time of a thousand rows.

#![allow(
    clippy::expect_used,
    clippy::disallowed_methods,
    dead_code,
    missing_docs,
    unused_crate_dependencies,
    reason = "a benchmark, in the tests' words"
)]

#[path = "../tests/node/given.rs"]
mod given;
#[path = "../examples/ycsb/mod.rs"]
mod ycsb;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use given::{Node, command, options, run};
use read::ReadTarget;
use runtime::MemoryDisk;
use schema::Table;
use storage::Shard;
use ycsb::{letters, mutation, schema, table};

const ROWS: u64 = 1000;
const FILES: u64 = 4;

/// Time this thread has been on a CPU: the machine may have more to do.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that tells");
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number"))
}

/// Writes every so many rows, from one on.
async fn write(shard: &Rc<Shard>, table: &Table, letters: &[u8], rows: impl Iterator<Item = u64>) {
    for row in rows {
        shard.write(&[mutation(table, row, letters)]).await.expect("written");
    }
}

/// The time of so many rounds of an act on a node whose files are prepared anew for each.
fn rounds(
    count: u64,
    file_count: u64,
    act: impl AsyncFn(&Rc<Shard>, &Arc<Table>, &mut Duration),
) -> Duration {
    run(async {
        let mut spent = Duration::ZERO;
        let letters = letters();
        for _ in 0..count {
            let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
            let (shard, table) = (node.shard(0), Arc::new(table(false)));
            shard.take_schema(schema(&table)).await.expect("a schema");
            for file in 0..file_count {
                write(shard, &table, &letters, (0..ROWS).filter(|row| row % file_count == file)).await;
                shard.flush(table.id()).await.expect("flushed");
            }
            if file_count == 0 {
                write(shard, &table, &letters, 0..ROWS).await;
            }
            act(shard, &table, &mut spent).await;
        }
        spent
    })
}

fn files(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a thousand rows");
    group.sample_size(10);
    group.bench_function("flushed", |bencher| {
        bencher.iter_custom(|count| {
            rounds(count, 0, async |shard, table, spent| {
                let start = cpu_time();
                shard.flush(table.id()).await.expect("flushed");
                *spent += cpu_time() - start;
            })
        });
    });
    group.bench_function("merged from four files", |bencher| {
        bencher.iter_custom(|count| {
            rounds(count, FILES, async |shard, table, spent| {
                let start = cpu_time();
                shard.compact(table.id()).await.expect("merged");
                *spent += cpu_time() - start;
            })
        });
    });
    group.bench_function("read by their keys", |bencher| {
        bencher.iter_custom(|count| {
            rounds(count, 1, async |shard, table, spent| {
                let keys: Vec<_> = (0..ROWS).map(|row| mutation(table, row, &[b'x'; 200]).key).collect();
                let start = cpu_time();
                for key in keys {
                    let page = shard.read(&command(table, ReadTarget::Keys(vec![key]))).await.expect("read");
                    assert_eq!(page.partitions.len(), 1);
                }
                *spent += cpu_time() - start;
            })
        });
    });
    group.finish();
}

criterion_group!(benches, files);
criterion_main!(benches);
