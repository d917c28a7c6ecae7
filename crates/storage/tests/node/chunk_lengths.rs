//! Are chunks as long as reads ask for?

use read::ReadTarget;
use rows::RingRange;
use runtime::MemoryDisk;
use storage::StorageOptions;

use crate::given::*;

const PARTITION_COUNT: i32 = 1500;

/// Less than a tenth of the rows.
fn few() -> StorageOptions {
    StorageOptions { cache_bytes: 100 << 10, cache_borrows: false, ..options(1) }
}

async fn fill(node: &Node) {
    for pk in 0..PARTITION_COUNT {
        let value: String = (0..1000).map(|at| char::from(b'a' + (at * (pk + 7) % 23) as u8)).collect();
        node.write(pk, insert(&auto(), pk, 0, &value, 1)).await.expect("writes");
    }
    node.shard(0).flush(auto().id()).await.expect("flushes");
    // The log is short: there were flushes before.
    node.shard(0).compact(auto().id()).await.expect("compacts");
}

/// KiB of a chunk in the next file, and, by the offsets that the file there is has, in that one.
fn lengths(node: &Node) -> (u32, u64) {
    let stats = node.shard(0).table(auto().id()).expect("the table").stats();
    let chosen = stats.chunk_length.expect("it is chosen").shards_by_bytes;
    assert_eq!((stats.sstable_count, chosen.len()), (1, 1));
    let in_file = stats.uncompressed_bytes / (stats.compression_metadata_bytes / 8);
    (chosen.keys().sum::<u32>() / 1024, (in_file / 1024).next_power_of_two())
}

async fn read_rows(node: &Node, count: i32) {
    for step in 0..count {
        let target = ReadTarget::Keys(vec![key(step * 7919 % PARTITION_COUNT)]);
        assert_eq!(pages(node.shard(0), command(&auto(), target)).await.len(), 1);
    }
}

#[test]
fn a_table_is_written_with_chunks_as_its_reads_ask_for_and_goes_on_so_after_a_start() {
    run(async {
        let disk = MemoryDisk::new();
        let node = Node::start(&disk, few()).expect("starts");
        fill(&node).await;
        assert_eq!(lengths(&node), (16, 16), "nothing is known");
        read_rows(&node, 900).await;
        assert_eq!(lengths(&node), (16, 16), "not enough is known");
        read_rows(&node, 600).await;
        assert_eq!(lengths(&node), (4, 16), "the file is as it is");
        node.shard(0).compact(auto().id()).await.expect("compacts");
        assert_eq!(lengths(&node), (4, 4));
        let stats = node.shard(0).table(auto().id()).expect("the table").stats();
        let reads = stats.chunk_length.expect("it is chosen").cold_reads;
        assert_eq!(reads.range_count, 0);
        assert!((950..1100).contains(&reads.wanted_bytes_mean()), "{}", reads.wanted_bytes_mean());

        drop(node);
        let node = Node::start(&disk, few()).expect("starts");
        assert_eq!(lengths(&node), (4, 4), "as most of the data is");
        for _ in 0..30 {
            let mut command = command(&auto(), ReadTarget::Range(RingRange::ALL));
            command.limits.row_count = 40;
            pages(node.shard(0), command).await;
        }
        node.shard(0).compact(auto().id()).await.expect("compacts");
        assert_eq!(lengths(&node), (16, 16));
        assert!(node.shard(0).table(table().id()).expect("the table").stats().chunk_length.is_none());
    });
}

#[test]
fn reads_that_memory_answers_choose_nothing() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        fill(&node).await;
        read_rows(&node, PARTITION_COUNT).await;
        let stats = node.shard(0).table(auto().id()).expect("the table").stats();
        let reads = stats.chunk_length.expect("it is chosen").cold_reads;
        assert_eq!(reads.read_count, 0, "what was written is in the cache");
        assert_eq!(lengths(&node), (16, 16));
    });
}
