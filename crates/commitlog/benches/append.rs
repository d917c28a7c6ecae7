//! What an append costs the shard, and what a group of them costs with its sync.
//!
//! `cargo bench -p peristyle-commitlog`. Real disk, in the system's folder for temporary files.
#![allow(missing_docs, reason = "criterion's macros")]

use std::time::Duration;

use commitlog::{CommitLog, CommitLogOptions, SyncMode};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use runtime::{Runtime, RuntimeOptions};

/// Records appended before waiting, as by so many clients.
const GROUP_RECORD_COUNT: u64 = 64;

fn bench(criterion: &mut Criterion, name: &str, sync: SyncMode, record_bytes: usize) {
    let directory = tempfile::tempdir().expect("directory");
    let runtime = Runtime::real(RuntimeOptions::default()).expect("runtime");
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let local = tokio::task::LocalSet::new();
    let options = CommitLogOptions { sync, ..CommitLogOptions::default() };
    let log = local.block_on(&threads, async { CommitLog::open(&runtime, directory.path(), 0, options) });
    let log = log.expect("open");
    let record = vec![7; record_bytes];
    let mut group = criterion.benchmark_group("append");
    group.throughput(Throughput::Elements(GROUP_RECORD_COUNT));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            local.block_on(&threads, async {
                let mut waiting = Vec::with_capacity(GROUP_RECORD_COUNT as usize);
                for _ in 0..GROUP_RECORD_COUNT {
                    waiting.push(log.synced(log.append(&record).expect("append")));
                }
                for record in waiting {
                    record.await.expect("durable");
                }
                if log.statistics().segment_count > 4 {
                    log.discard_below(log.end()).await.expect("discard");
                }
            });
        });
    });
    group.finish();
}

fn benches(criterion: &mut Criterion) {
    let periodic = SyncMode::Periodic { period: Duration::from_secs(10) };
    bench(criterion, "periodic, 200 bytes", periodic, 200);
    bench(criterion, "periodic, 1100 bytes", periodic, 1100);
    bench(criterion, "group, 200 bytes", SyncMode::Group { window: Duration::ZERO }, 200);
}

criterion_group!(append, benches);
criterion_main!(append);
