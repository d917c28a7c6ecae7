//! What when memory, log or disk are full?

use std::rc::Rc;
use std::time::Duration;

use commitlog::CommitLogError;
use read::ReadTarget;
use rows::RingRange;
use runtime::memory_disk::{Fault, Operation};
use runtime::{Background, Disk, MemoryDisk};
use storage::{StorageError, StorageOptions, TableError, Unit};
use tokio::time::timeout;

use crate::given::*;

const BUDGET: usize = 256 << 10;

fn tight(shard_count: u16) -> StorageOptions {
    StorageOptions { memtable_bytes: BUDGET, ..options(shard_count) }
}

/// How long a flush takes on a slow node.
const FLUSH: Duration = Duration::from_secs(60);

fn flushing_slowly(shard_count: u16) -> Node {
    let slow = |runtime: &mut runtime::Runtime| runtime.background = Background::tasks(FLUSH);
    Node::start_with(&MemoryDisk::new(), tight(shard_count), slow).expect("starts")
}

#[test]
fn memtables_keep_to_their_budget_while_writers_come_from_all_sides() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), tight(1)).expect("starts");
        let table = table();
        let long = "x".repeat(1_000);
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..8 {
            let (shard, table, long) = (Rc::clone(node.shard(0)), table.clone(), long.clone());
            writers.spawn_local(async move {
                for number in 0..200 {
                    let mutation = insert(&table, writer * 200 + number, 0, &long, 1);
                    shard.write(&[mutation]).await.expect("writes");
                    assert!(
                        shard.memory().memtable_bytes < BUDGET + 8 * 4_000,
                        "{}",
                        shard.memory().memtable_bytes
                    );
                }
            });
        }
        while let Some(done) = writers.join_next().await {
            done.expect("a writer ends well");
        }
        assert!(node.shard(0).table(table.id()).expect("the table").stats().memtable_switch_count > 3);
        assert_eq!(node.all(&table, 100).await.len(), 1_600);
    });
}

#[test]
fn writers_go_on_beside_a_flush_until_the_budget_is_spent() {
    run(async {
        let node = flushing_slowly(1);
        let (table, shard, long) = (table(), node.shard(0), "x".repeat(1_000));
        let (mut waited_beside, mut written_beside) = (0, 0);
        for pk in 0..600 {
            let before = shard.memory().memtable_bytes;
            let started = tokio::time::Instant::now();
            node.write(pk, insert(&table, pk, 0, &long, 1)).await.expect("written");
            let has_waited = started.elapsed() >= Duration::from_secs(1);
            assert!(!has_waited || before > BUDGET, "{before} of {BUDGET} bytes, and a write waited");
            waited_beside += usize::from(has_waited);
            written_beside += usize::from(before > BUDGET / 2 && !has_waited);
        }
        assert!(written_beside > 100, "{written_beside} writes came while a flush went on");
        assert!(waited_beside > 0, "a disk as slow as that can not keep up");
    });
}

/// Else those of a shard that is slow would pile up, and be written when nobody waits for them any more.
#[test]
fn a_write_that_waits_for_room_ends_with_its_asker() {
    run(async {
        let node = flushing_slowly(2);
        let (sender, owner, long) = (&node.shards.handles()[0], 1, "x".repeat(1_000));
        let mut pks = (0..).filter(|pk: &i32| sender.shards().owner(key(*pk).token) == owner);
        let mut left = Vec::new();
        while left.len() < 3 {
            let pk = pks.next().expect("there are more");
            let write = sender.write_units(owner, None, Unit::Each, vec![insert(&table(), pk, 0, &long, 1)]);
            if timeout(Duration::from_secs(1), write).await.is_err() {
                left.push(pk);
            }
        }
        tokio::time::sleep(10 * FLUSH).await;
        let there: Vec<i32> = node.all(&table(), 1_000).await.into_iter().map(|(pk, ..)| pk).collect();
        assert!(there.len() > 50 && left.iter().all(|pk| !there.contains(pk)), "{left:?} of {there:?}");
    });
}

/// Writers that wait for room were woken by the failed flush, started the next, and so forever.
#[test]
fn writers_are_told_when_memory_is_full_and_flushes_fail() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, tight(1)).expect("starts");
        let table = table();
        let long = "x".repeat(1_000);
        // The log goes on: its segments are there. New files are not to be had.
        let mut pk = 0;
        node.write(pk, insert(&table, pk, 0, &long, 1)).await.expect("writes");
        disk.faults().fail_all(Some(Operation::Create), Fault::NoSpace);
        let refused = loop {
            pk += 1;
            match node.write(pk, insert(&table, pk, 0, &long, 1)).await {
                Ok(()) => {}
                Err(error) => break error,
            }
            assert!(pk < 2_000, "the budget is not held");
        };
        let is_told =
            matches!(refused, StorageError::Table(TableError::DiskFull { .. } | TableError::CommitLog(_)));
        assert!(is_told, "{refused:?}");
        disk.faults().clear();
        node.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_secs(10)).await;
        for pk in 3_000..3_400 {
            node.write(pk, insert(&table, pk, 0, &long, 1)).await.expect("writes again");
        }
        let all = node.all(&table, 1_000).await;
        assert!((0..pk).all(|pk| all.iter().any(|row| row.0 == pk)), "what was acknowledged is there");
    });
}

/// One row of a table that nobody else writes to holds back the whole log, which may be longer than the disk is large.
#[test]
fn a_log_does_not_fill_the_disk_for_a_table_that_is_hardly_written_to() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, StorageOptions { log_bytes: 1 << 30, ..tight(1) }).expect("starts");
        let (table, long) = (table(), "x".repeat(1_000));
        node.write(0, insert(&other(), 0, 0, &long, 1)).await.expect("writes");
        disk.faults().set_capacity_bytes(disk.used_bytes() + (8 << 20));
        for version in 0..20_000 {
            let pk = version % 100;
            let written = node.write(pk, insert(&table, pk, 0, &long, version.into())).await;
            assert!(written.is_ok(), "version {version}: {written:?}");
        }
    });
}

/// What is refused for want of memory says that the disk is full, also when it is the log that a flush finds full.
#[test]
fn a_refusal_says_that_the_disk_is_full_whoever_finds_it_so() {
    let mut found_by_the_log_of_a_flush = 0;
    for spare_bytes in (0..2 * BUDGET as u64).step_by(8 << 10) {
        let disk = MemoryDisk::new();
        run(async {
            let node = Node::start(&disk, tight(1)).expect("starts");
            let (table, long) = (table(), "x".repeat(1_000));
            // The log's first segment is there.
            node.write(0, insert(&table, 0, 0, &long, 1)).await.expect("writes");
            disk.faults().set_capacity_bytes(disk.used_bytes() + spare_bytes);
            // Together they are more than memory has room for, and all in the log's memory before it looks at the disk.
            let mut writers = tokio::task::JoinSet::new();
            for pk in 1..1_000 {
                let (shard, mutation) = (Rc::clone(node.shard(0)), insert(&table, pk, 0, &long, 1));
                writers.spawn_local(async move { shard.write(&[mutation]).await });
            }
            while let Some(written) = writers.join_next().await {
                match written.expect("a writer ends well") {
                    // What stands in the log already may be written yet.
                    Ok(())
                    | Err(StorageError::Table(TableError::CommitLog(CommitLogError::DiskFull { .. }))) => {}
                    Err(StorageError::Table(TableError::DiskFull { reason })) => {
                        found_by_the_log_of_a_flush += u64::from(reason.starts_with("commit log: "));
                    }
                    Err(other) => panic!("{spare_bytes} bytes are free: {other}"),
                }
            }
        });
    }
    assert!(found_by_the_log_of_a_flush > 0, "it never came to that");
}

#[test]
fn a_flush_whose_manifest_fails_is_committed_by_the_next_try() {
    let of_the_manifest = sync_of_the_manifest_in_a_flush();
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        let table = table();
        node.write(1, insert(&table, 1, 0, "v", 1)).await.expect("writes");
        tokio::time::sleep(Duration::from_secs(1)).await;
        disk.faults().fail_nth(Some(Operation::Sync), of_the_manifest, Fault::InputOutput);
        assert!(node.shard(0).flush(table.id()).await.is_err());
        assert_eq!(node.all(&table, 10).await.len(), 1, "still read from memory");
        disk.faults().clear();
        node.shard(0).flush(table.id()).await.expect("flushes");
        let stats = node.shard(0).table(table.id()).expect("the table").stats();
        assert_eq!((stats.sstable_count, stats.memtable_data_size), (1, 0));
        assert_eq!(node.shard(0).memory().memtable_bytes, 0);
    });
    let again = disk.crash(5);
    run(async {
        let node = Node::start(&again, options(1)).expect("starts again");
        assert_eq!(node.all(&table(), 10).await.len(), 1);
    });
}

/// A table that was written to once must not keep the whole log, nor must overwriting one row, which
/// never fills a memtable.
#[test]
fn the_log_stays_short_whatever_is_written() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        node.write(1, insert(&other(), 1, 0, "once", 1)).await.expect("writes");
        let long = "x".repeat(4_000);
        for number in 0..600 {
            node.write(1, insert(&table(), 1, 0, &long, number)).await.expect("writes");
        }
        let log = disk.list(std::path::Path::new("/node/commitlog")).expect("lists");
        assert!(log.len() <= 12, "{} segments", log.len());
        assert_eq!(node.all(&other(), 10).await.len(), 1);
        assert_eq!(node.all(&table(), 10).await.len(), 1);
    });
}

#[test]
fn a_mutation_larger_than_the_log_takes_is_refused_and_leaves_nothing() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let refused = node.write(1, insert(&table(), 1, 0, &"x".repeat(60_000), 1)).await;
        assert!(matches!(refused, Err(StorageError::MutationTooLarge { .. })), "{refused:?}");
        assert_eq!(node.all(&table(), 10).await, []);
    });
}

/// What reads of `k.lone` are taken to work in, after one on a node whose only row has a version in so many files.
async fn read_bytes(target: ReadTarget, file_count: usize) -> usize {
    let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
    for timestamp in (1..).take(file_count) {
        node.write(1, insert_alone(&lone(), 1, &"v".repeat(20_000), timestamp)).await.expect("writes");
        node.shard(0).flush(lone().id()).await.expect("flushes");
    }
    let page = node.shard(0).read(&command(&lone(), target)).await.expect("reads");
    assert_eq!(page.partitions.len(), 1);
    node.shard(0).table(lone().id()).expect("there is k.lone").read_bytes().get()
}

#[test]
fn a_read_of_single_rows_works_in_memory_for_each_file_that_has_them() {
    run(async {
        for target in [ReadTarget::Keys(vec![key(1)]), ReadTarget::Range(RingRange::ALL)] {
            let of_one = read_bytes(target.clone(), 1).await;
            assert_eq!(read_bytes(target.clone(), 3).await, 3 * of_one, "{target:?}");
        }
    });
}
