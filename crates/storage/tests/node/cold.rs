//! How often does a read go to the disk?

use std::time::Duration;

use futures_util::future::join_all;
use read::ReadTarget;
use rows::Slices;
use runtime::MemoryDisk;
use storage::{CacheStats, StorageOptions};

use crate::given::*;

const PARTITION_COUNT: i32 = 3000;
/// Less than a twentieth of the rows, and room for the index.
const CACHE_BYTES: usize = 160 << 10;

/// A value of 1000 bytes that hardly compress.
fn value(pk: i32) -> String {
    let mut seed = pk as u64 + 1;
    let mut letter = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (seed >> 58) as u8)
    };
    (0..1000).map(|_| letter()).collect()
}

/// A node with one compacted file far larger than its cache, whose chunks are of 4 KiB.
async fn compacted(delay: Duration) -> Node {
    let few = StorageOptions { cache_bytes: CACHE_BYTES, cache_borrows: false, ..options(1) };
    let node = Node::start_with_delay(&MemoryDisk::new(), few, delay).expect("starts");
    let table = table();
    for pk in 0..PARTITION_COUNT {
        node.write(pk, insert(&table, pk, 0, &value(pk), 1)).await.expect("writes");
        if pk % 1000 == 0 {
            node.shard(0).flush(table.id()).await.expect("flushes");
        }
    }
    node.shard(0).flush(table.id()).await.expect("flushes");
    node.shard(0).compact(table.id()).await.expect("compacts");
    assert_eq!(node.shard(0).table(table.id()).expect("the table").stats().sstable_count, 1);
    node
}

async fn read(node: &Node, pk: i32) {
    let page = pages(node.shard(0), command(&table(), ReadTarget::Keys(vec![key(pk)]))).await;
    let found: Vec<_> = page.iter().flat_map(flat).collect();
    let expected: Vec<_> = (pk < PARTITION_COUNT).then(|| (pk, 0, value(pk))).into_iter().collect();
    assert_eq!(found, expected);
}

fn stats(node: &Node) -> CacheStats {
    node.shard(0).memory().cache
}

#[test]
fn a_cold_row_costs_one_read_of_the_disk_also_where_it_crosses_chunks() {
    run(async {
        let node = compacted(Duration::ZERO).await;
        // The index comes into memory.
        for pk in (0..PARTITION_COUNT).step_by(3) {
            read(&node, pk).await;
        }
        let (mut once, mut twice) = (0, 0);
        // In an order that has nothing to do with that of the file.
        for step in 0..1000 {
            let before = stats(&node);
            read(&node, step * 7919 % PARTITION_COUNT).await;
            match stats(&node).disk_read_count - before.disk_read_count {
                0 => {}
                1 => once += 1,
                2 => twice += 1,
                more => panic!("{more} reads of the disk for one row"),
            }
        }
        // A row of 1 KB crosses the border of a chunk of 4 KiB one time in four: both are read at once.
        assert!(once > 850 && twice < 30, "{once} rows took one read, {twice} took two");
        let before = stats(&node);
        for pk in PARTITION_COUNT..PARTITION_COUNT + 300 {
            read(&node, pk).await;
        }
        let after = stats(&node);
        assert!(after.disk_read_count - before.disk_read_count < 10, "the filter tells what is not there");
        assert!(after.used_bytes <= after.capacity_bytes && after.index_bytes <= after.used_bytes);
        assert_eq!(after.capacity_bytes + after.pinned_bytes, CACHE_BYTES as u64);
        let table = node.shard(0).table(table().id()).expect("the table").stats();
        assert_eq!((table.cache_hit_count, table.cache_miss_count), (after.hit_count, after.miss_count));
        assert!(table.filter_bytes > 0 && table.file_memory_bytes == after.pinned_bytes);
    });
}

#[test]
fn a_cold_row_that_is_alone_in_its_partition_costs_one_read_of_the_disk() {
    run(async {
        let few = StorageOptions { cache_bytes: CACHE_BYTES, cache_borrows: false, ..options(1) };
        let node = Node::start(&MemoryDisk::new(), few).expect("starts");
        // A fourth of the chunks of 16 KiB.
        let value = |pk: i32| value(pk).repeat(4);
        for pk in 0..800 {
            node.write(pk, insert_alone(&lone(), pk, &value(pk), 1)).await.expect("writes");
        }
        node.shard(0).flush(lone().id()).await.expect("flushes");
        let read = async |pk: i32| {
            let page = pages(node.shard(0), command(&lone(), ReadTarget::Keys(vec![key(pk)]))).await;
            let row = &page.first().expect("it is there").rows[0];
            assert!(row.as_encoded().len() > 4000, "row {pk} is whole");
        };
        for pk in (0..800).step_by(3) {
            read(pk).await;
        }
        let before = stats(&node);
        for step in 0..400 {
            read(step * 7919 % 800).await;
        }
        let reads = stats(&node).disk_read_count - before.disk_read_count;
        assert!((300..440).contains(&reads), "{reads} reads of the disk for 400 rows");
    });
}

#[test]
fn those_who_want_one_chunk_at_one_time_share_one_read() {
    run(async {
        let node = compacted(Duration::from_millis(5)).await;
        read(&node, 77).await;
        for step in 0..600 {
            read(&node, step * 13 % PARTITION_COUNT).await;
        }
        // Some of them cross the border of a chunk.
        for pk in 2500..2520 {
            let before = stats(&node);
            join_all((0..50).map(|_| read(&node, pk))).await;
            let reads = stats(&node).disk_read_count - before.disk_read_count;
            assert!(reads <= 3, "{reads} reads of the disk for row {pk}");
        }
    });
}

#[test]
fn a_scan_reads_ahead_and_leaves_what_is_hot() {
    run(async {
        let node = compacted(Duration::ZERO).await;
        for _ in 0..4 {
            for pk in 0..8 {
                read(&node, pk).await;
            }
        }
        let before = stats(&node);
        assert_eq!(node.all(&table(), 500).await.len(), PARTITION_COUNT as usize);
        let scanned = stats(&node);
        let chunk_count = PARTITION_COUNT as u64 * 1000 / 4096;
        let reads = scanned.disk_read_count - before.disk_read_count;
        assert!(reads < chunk_count / 4, "{reads} reads for {chunk_count} chunks");
        for pk in 0..8 {
            read(&node, pk).await;
        }
        let again = stats(&node).disk_read_count - scanned.disk_read_count;
        assert!(again <= 10, "{again} reads of what was hot before the scan");
    });
}

#[test]
fn backwards_and_in_slices_it_reads_the_same_with_any_cache() {
    run(async {
        for cache_bytes in [0, 5000, 40_000, 4 << 20] {
            let options = StorageOptions { cache_bytes, cache_borrows: false, ..options(1) };
            let node = Node::start(&MemoryDisk::new(), options).expect("starts");
            let table = table();
            for c in 0..400 {
                node.write(1, insert(&table, 1, c, &value(c), 1)).await.expect("writes");
            }
            node.shard(0).flush(table.id()).await.expect("flushes");
            for reversed in [false, true] {
                let mut command = command(&table, ReadTarget::Keys(vec![key(1)]));
                command.reversed = reversed;
                command.limits.row_count = 90;
                command.slices = Slices::all();
                let found: Vec<_> = pages(node.shard(0), command).await.iter().flat_map(flat).collect();
                let mut expected: Vec<_> = (0..400).map(|c| (1, c, value(c))).collect();
                if reversed {
                    expected.reverse();
                }
                assert_eq!(found, expected);
            }
        }
    });
}

#[test]
fn the_cache_has_what_memtables_leave_and_gives_it_back() {
    run(async {
        let options = StorageOptions {
            cache_bytes: 1 << 20,
            memtable_bytes: 16 << 20,
            log_bytes: 64 << 20,
            ..options(1)
        };
        let node = Node::start(&MemoryDisk::new(), options).expect("starts");
        let (table, shard) = (table(), node.shard(0));
        let room = |node: &Node| stats(node).capacity_bytes + stats(node).pinned_bytes;
        assert_eq!(room(&node), 16 << 20, "nothing is written: all of theirs but a step");
        for c in 0..4000 {
            node.write(1, insert(&table, 1, c, &value(c), 1)).await.expect("writes");
            let memtable_bytes = shard.memory().memtable_bytes as u64;
            assert!(room(&node) + memtable_bytes <= 17 << 20, "{} and {memtable_bytes}", room(&node));
            assert!(room(&node) + memtable_bytes + (2 << 20) >= 17 << 20);
        }
        assert!(room(&node) < 13 << 20);
        shard.flush(table.id()).await.expect("flushes");
        assert_eq!(room(&node), 16 << 20);
    });
}

#[test]
fn what_was_just_written_is_in_the_cache_while_that_has_room() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let (table, shard) = (table(), node.shard(0));
        for (from, to) in [(0, 1000), (1000, 2000)] {
            for pk in from..to {
                node.write(pk, insert(&table, pk, 0, &value(pk), 1)).await.expect("writes");
            }
            shard.flush(table.id()).await.expect("flushes");
        }
        let read_all = async || {
            for pk in 0..2000 {
                let page = pages(shard, command(&table, ReadTarget::Keys(vec![key(pk)]))).await;
                assert_eq!(page.iter().flat_map(flat).collect::<Vec<_>>(), [(pk, 0, value(pk))]);
            }
        };
        read_all().await;
        assert_eq!((stats(&node).disk_read_count, stats(&node).miss_count), (0, 0), "flushed");
        shard.compact(table.id()).await.expect("compacts");
        read_all().await;
        assert_eq!((stats(&node).disk_read_count, stats(&node).miss_count), (0, 0), "compacted");
        assert!(stats(&node).used_bytes < 4 << 20, "chunks of files that are gone are gone");
    });
}
