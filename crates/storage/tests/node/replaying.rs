//! What when the log is larger than the memory it is replayed into?

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use commitlog::{CommitLog, CommitLogOptions, SyncMode};
use runtime::{Disk, MemoryDisk, Runtime};
use storage::StorageOptions;

use crate::given::*;

const BUDGET: usize = 64 << 10;
const PARTITIONS: i32 = 300;

/// A node that never had to flush.
fn roomy(shard_count: u16) -> StorageOptions {
    StorageOptions { log_bytes: 1 << 30, ..options(shard_count) }
}

fn tight(shard_count: u16) -> StorageOptions {
    StorageOptions { memtable_bytes: BUDGET, ..options(shard_count) }
}

/// A log of two tables, eight times as large as the budget and in no file, as a killed process left it.
fn long_log(options: StorageOptions) -> MemoryDisk {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options).expect("starts");
        for pk in 0..PARTITIONS {
            let v = "x".repeat(900);
            // Both tables in one record.
            let both = [insert(&table(), pk, 0, &v, 1), insert(&other(), pk, 0, &v, 1)];
            node.owner(pk).write(&both).await.expect("writes");
        }
        // Written, though perhaps not synced.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(node.shard(0).table(table().id()).expect("the table").stats().sstable_count, 0);
    });
    disk.kill()
}

/// Every partition is in both tables or in none; gives how many.
async fn whole_partitions(node: &Node) -> usize {
    let (one, two) = (node.all(&table(), 100).await, node.all(&other(), 100).await);
    assert_eq!(one, two, "halves of records");
    one.len()
}

/// Memtables took whatever the log held: as much as `log_bytes`, whatever `--memory` said.
#[test]
fn a_log_larger_than_the_memory_budget_is_replayed_within_it() {
    for (before, after) in [(1, 1), (2, 2), (1, 3), (3, 2)] {
        let disk = long_log(roomy(before));
        run(async {
            let node = Node::start(&disk, tight(after)).expect("starts");
            // Nothing had the time to be flushed since.
            let memory: usize =
                node.shards.handles().iter().map(|handle| handle.local().memory().memtable_bytes).sum();
            assert!(memory <= BUDGET, "{memory} bytes in memtables, {before} to {after} shards");
            let stats = |index: usize| node.shard(index).table(table().id()).expect("the table").stats();
            let file_count: u64 = (0..usize::from(after)).map(|index| stats(index).sstable_count).sum();
            assert!(file_count > 2, "{file_count} files");
            assert_eq!(whole_partitions(&node).await, PARTITIONS as usize);
            node.shards.stop(true).await.expect("stops");
            let log = disk.list(std::path::Path::new("/node/commitlog")).expect("lists");
            let segments = log.iter().filter(|entry| !entry.name.ends_with(".roster")).count();
            assert!(segments <= 2 * usize::from(after), "the old log is gone: {segments} segments");
        });
        let again = disk.crash(7);
        run(async {
            let node = Node::start(&again, tight(after)).expect("starts again");
            assert_eq!(whole_partitions(&node).await, PARTITIONS as usize);
        });
    }
}

#[test]
fn a_replay_cut_off_anywhere_goes_on_or_begins_anew() {
    for (before, after) in [(1, 1), (1, 2), (2, 1)] {
        let left = long_log(roomy(before));
        let start = |disk: &MemoryDisk, options| run(async { Node::start(disk, options).map(drop) }).is_ok();
        let whole = left.kill();
        assert!(start(&whole, tight(after)));
        let change_count = whole.faults().change_count();
        assert!(change_count > 200, "{change_count}");
        for cut in (0..change_count).step_by(29) {
            let mut disk = left.kill();
            // Cut off twice, at other places, by a power cut and by a kill.
            for again in 0..2 {
                disk.faults().power_off_after(cut / (again + 1));
                start(&disk, tight(after));
                disk = if (cut + again) % 2 == 0 { disk.crash(cut) } else { disk.kill() };
            }
            run(async {
                let node = Node::start(&disk, tight(after)).expect("starts after a power cut");
                let count = whole_partitions(&node).await;
                assert_eq!(count, PARTITIONS as usize, "cut after {cut} of {change_count}");
            });
        }
    }
}

/// The end of a killed process's log is in the system's cache alone. A file made of the half of a
/// record must not outlive it.
#[test]
fn what_a_replay_writes_out_relies_on_a_log_that_is_durable() {
    let unsynced = StorageOptions {
        sync: SyncMode::Periodic { period: Duration::from_secs(3_600) },
        segment_bytes: 8 << 20,
        ..roomy(1)
    };
    let left = long_log(unsynced);
    // A power cut leaves all of it with some luck, but not each time.
    let survivors = (1..5).map(|seed| {
        let image = left.crash(seed);
        run(async { whole_partitions(&Node::start(&image, roomy(1)).expect("starts")).await })
    });
    assert!(survivors.min() < Some(PARTITIONS as usize), "the log is durable already");
    let whole = left.kill();
    let start = |disk: &MemoryDisk| run(async { Node::start(disk, tight(1)).map(drop) }).is_ok();
    assert!(start(&whole));
    assert!(whole.faults().change_count() > 200, "files were written");
    for cut in (0..200).step_by(9) {
        let disk = left.kill();
        disk.faults().power_off_after(cut);
        start(&disk);
        let image = disk.crash(cut);
        run(async {
            whole_partitions(&Node::start(&image, tight(1)).expect("starts after a power cut")).await
        });
    }
}

/// Appends a record to the log of a node that was stopped: of that kind, with a timestamp and a word behind it.
fn append_strange(disk: &MemoryDisk, kind: u8) {
    run(async {
        let runtime = Runtime::in_memory(Arc::new(disk.clone()), 1);
        let options = CommitLogOptions { segment_bytes: 64 << 10, ..CommitLogOptions::default() };
        let log = CommitLog::open(&runtime, Path::new("/node/commitlog"), 0, options).expect("opens");
        let record = [&[kind, 1, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0][..], b"word"].concat();
        log.synced(log.append(&record).expect("appends")).await.expect("durable");
        log.close().await.expect("closes");
    });
}

/// Whoever wrote them meant something that was perhaps acknowledged.
#[test]
fn records_of_a_newer_version_end_a_start_unless_they_may_be_passed_over() {
    for (kind, is_refused) in [(2, true), (0x7f, true), (0x80, false), (0xff, false)] {
        let disk = long_log(roomy(1));
        append_strange(&disk, kind);
        run(async {
            match Node::start(&disk, roomy(1)) {
                Ok(node) => {
                    assert!(!is_refused, "kind {kind}");
                    assert_eq!(whole_partitions(&node).await, PARTITIONS as usize);
                }
                Err(error) => {
                    let words = error.to_string();
                    assert!(
                        is_refused && words.contains("the record at byte 32 of /node/commitlog/commitlog-0-"),
                        "{words}"
                    );
                    assert!(
                        words.contains(&format!("it is of kind {kind}, which this program does not know")),
                        "{words}"
                    );
                }
            }
        });
    }
}
