//! What is in memory before anybody asks?

use std::sync::Arc;
use std::time::Duration;

use read::ReadTarget;
use runtime::MemoryDisk;
use schema::Table;
use storage::{PrefetchState, PrefetchStats, StorageOptions};

use crate::given::*;

const PARTITION_COUNT: i32 = 800;

/// A value of 1000 bytes that hardly compress.
fn value(pk: i32) -> String {
    let letter = |at: u64| ((at << 20) ^ pk as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (0..1000).map(|at| char::from(b'0' + (letter(at) % 64) as u8)).collect()
}

/// A disk on which a node has left that table.
async fn filled(table: &Arc<Table>) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let node = Node::start(&disk, options(1)).expect("starts");
    for pk in 0..PARTITION_COUNT {
        node.write(pk, insert(table, pk, 0, &value(pk), 1)).await.expect("writes");
    }
    node.shards.stop(true).await.expect("stops");
    disk
}

/// A node that has had the time to bring into memory what it wants to.
async fn started(disk: &MemoryDisk, options: StorageOptions) -> Node {
    let node = Node::start(disk, options).expect("starts");
    node.shard(0).start_prefetch();
    tokio::time::sleep(Duration::from_secs(5)).await;
    node
}

async fn read(node: &Node, table: &Arc<Table>, keys: impl Iterator<Item = i32>) {
    for pk in keys {
        let page = pages(node.shard(0), command(table, ReadTarget::Keys(vec![key(pk)]))).await;
        assert_eq!(page.iter().flat_map(flat).collect::<Vec<_>>(), [(pk, 0, value(pk))]);
    }
}

fn disk_reads(node: &Node) -> u64 {
    node.shard(0).memory().cache.disk_read_count
}

fn progress(node: &Node, table: &Arc<Table>) -> PrefetchStats {
    node.shard(0).table(table.id()).expect("the table").stats().prefetch.expect("it is wanted")
}

#[test]
fn a_table_that_asks_for_it_is_in_memory_before_it_is_read() {
    run(async {
        for (table, is_wanted) in [(named("warm"), true), (table(), false)] {
            let disk = filled(&table).await;
            let node = started(&disk, options(1)).await;
            let before = disk_reads(&node);
            assert_eq!(before > 0, is_wanted);
            read(&node, &table, 0..PARTITION_COUNT).await;
            assert_eq!(disk_reads(&node) == before, is_wanted, "{} reads", disk_reads(&node) - before);
            if is_wanted {
                let progress = progress(&node, &table);
                assert_eq!(progress.state, PrefetchState::Done);
                assert_eq!(progress.read_chunks, progress.planned_chunks);
                assert!(progress.read_bytes > 1000 * PARTITION_COUNT as u64);
            }
        }
    });
}

#[test]
fn the_cache_is_filled_and_no_more() {
    run(async {
        let table = named("warm");
        let disk = filled(&table).await;
        let few = StorageOptions { cache_bytes: 200 << 10, cache_borrows: false, ..options(1) };
        let node = started(&disk, few).await;
        let (progress, stats) = (progress(&node, &table), node.shard(0).memory().cache);
        assert_eq!(progress.state, PrefetchState::Full);
        assert!(progress.read_chunks < progress.planned_chunks);
        assert_eq!(progress.read_chunks, stats.entry_count, "none went for another");
        assert!(stats.used_bytes <= stats.capacity_bytes && stats.used_bytes > stats.capacity_bytes * 3 / 4);
        read(&node, &table, 0..PARTITION_COUNT).await;
    });
}

#[test]
fn what_was_hot_is_in_memory_again_and_stays_known_if_nobody_asks() {
    run(async {
        let table = named("hot");
        let disk = filled(&table).await;
        let hot = || (0..PARTITION_COUNT).step_by(40);
        let node = started(&disk, options(1)).await;
        let known = progress(&node, &table);
        assert_eq!(known.state, PrefetchState::Done, "the index, since nothing is known");
        for _ in 0..3 {
            read(&node, &table, hot()).await;
        }
        node.shards.stop(true).await.expect("stops");
        for _ in 0..2 {
            let node = started(&disk, options(1)).await;
            let progress = progress(&node, &table);
            assert!(progress.read_chunks > known.read_chunks, "{progress:?}");
            assert!(progress.read_bytes < 400 << 10, "not all of it: {progress:?}");
            node.shards.stop(true).await.expect("stops");
        }
        let node = started(&disk, options(1)).await;
        let before = disk_reads(&node);
        read(&node, &table, hot()).await;
        assert_eq!(disk_reads(&node), before);
        read(&node, &table, 0..PARTITION_COUNT).await;
        assert!(disk_reads(&node) > before, "what was not hot is on the disk");
    });
}

#[test]
fn a_damaged_record_of_what_was_hot_is_nothing_to_stop_at() {
    run(async {
        let table = named("hot");
        let disk = filled(&table).await;
        let node = started(&disk, options(1)).await;
        read(&node, &table, 0..9).await;
        node.shards.stop(true).await.expect("stops");
        let path = std::path::Path::new("/node/hot/shard-0.json");
        runtime::Disk::write_atomically(&disk, path, b"nonsense").expect("writes");
        let node = started(&disk, options(1)).await;
        assert_eq!(progress(&node, &table).state, PrefetchState::Done);
        read(&node, &table, 0..PARTITION_COUNT).await;
    });
}
