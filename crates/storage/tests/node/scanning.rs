//! Does a scan of rows that are alone in their partitions give what reads of each key give?

use std::time::Duration;

use read::{PartitionRows, ReadTarget};
use rows::{CellRef, Clustering, DeletionTime, Liveness, Mutation, MutationBuilder, RingRange, RowBuilder};
use runtime::MemoryDisk;
use storage::StorageOptions;
use types::Token;

use crate::given::*;

const KEY_COUNT: i32 = 120;
const NOW: u32 = 1_704_067_300;

/// A linear congruential generator (the constants of Knuth's MMIX): enough to pick what happens.
struct Picks(u64);

impl Picks {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// An INSERT, an UPDATE, one that has or will have expired, a DELETE of the value or of the partition.
fn change(picks: &mut Picks, pk: i32) -> Mutation {
    let table = lone();
    let timestamp = 1 + picks.below(50) as i64;
    let v = table.column("v").expect("column v").id;
    let length_max = if picks.below(8) == 0 { 6000 } else { 300 };
    let value = "v".repeat(picks.below(length_max) as usize);
    let kind = picks.below(8);
    if kind == 0 {
        return delete(&table, pk, timestamp);
    }
    let expires = NOW - 50 + picks.below(100) as u32;
    let (liveness, cell) = match kind {
        1 => (Liveness::NONE, CellRef::tombstone(timestamp, NOW - 10)),
        2 => {
            let cell = CellRef { ttl: 60, local_deletion_time: expires, ..CellRef::live(timestamp, b"w") };
            (Liveness::expiring(timestamp, 60, expires), cell)
        }
        3 | 4 => (Liveness::NONE, CellRef::live(timestamp, value.as_bytes())),
        _ => (Liveness::at(timestamp), CellRef::live(timestamp, value.as_bytes())),
    };
    let mut row = RowBuilder::new(&Clustering::EMPTY, liveness, DeletionTime::LIVE);
    row.cell(v, cell);
    let mut mutation = MutationBuilder::new(table.id(), key(pk));
    mutation.row(row.finish());
    mutation.finish()
}

async fn change_some(node: &Node, picks: &mut Picks) {
    for _ in 0..60 {
        let pk = picks.below(KEY_COUNT as u64) as i32;
        node.write(pk, change(picks, pk)).await.expect("writes");
        if picks.below(40) == 0 {
            node.owner(pk).flush(lone().id()).await.expect("flushes");
        }
    }
}

/// What reads of each key find on the shards, in ring order, within a range.
async fn by_keys(node: &Node, range: &RingRange) -> (Vec<PartitionRows>, u64) {
    let (mut found, mut tombstone_count) = (Vec::new(), 0);
    for pk in (0..KEY_COUNT).filter(|pk| range.contains(&key(*pk))) {
        let page =
            node.owner(pk).read(&command(&lone(), ReadTarget::Keys(vec![key(pk)]))).await.expect("reads");
        tombstone_count += page.tombstone_count();
        found.extend(page.partitions);
    }
    found.sort_by(|one, other| one.key.cmp(&other.key));
    (found, tombstone_count)
}

async fn by_scans(node: &Node, range: &RingRange, page_rows: u32) -> Vec<PartitionRows> {
    let mut found = Vec::new();
    for handle in node.shards.handles() {
        let mut scan = command(&lone(), ReadTarget::Range(range.clone()));
        scan.limits.row_count = page_rows;
        let partitions = pages(handle.local(), scan).await;
        assert!(partitions.is_sorted_by(|one, other| one.key < other.key), "in ring order, each once");
        found.extend(partitions);
    }
    found.sort_by(|one, other| one.key.cmp(&other.key));
    found
}

async fn check(node: &Node, picks: &mut Picks, seed: u64) {
    let (all, tombstone_count) = by_keys(node, &RingRange::ALL).await;
    let mut scanned = 0;
    for handle in node.shards.handles() {
        let scan = command(&lone(), ReadTarget::Range(RingRange::ALL));
        scanned += handle.local().read(&scan).await.expect("reads").tombstone_count();
    }
    assert_eq!(scanned, tombstone_count, "seed {seed}");
    for page_rows in [1, 7, 1000] {
        assert_eq!(by_scans(node, &RingRange::ALL, page_rows).await, all, "seed {seed}, {page_rows} a page");
    }
    for _ in 0..6 {
        let mut ends = [key(picks.below(200) as i32).token, key(picks.below(200) as i32).token];
        ends.sort();
        let range = RingRange::tokens(Token(ends[0].0 + picks.below(2) as i64), ends[1]);
        let (expected, _) = by_keys(node, &range).await;
        assert_eq!(
            by_scans(node, &range, 1 + picks.below(20) as u32).await,
            expected,
            "seed {seed}, {range:?}"
        );
    }
}

#[test]
fn a_scan_gives_what_reads_of_each_key_give_from_memory_and_files_on_any_shards() {
    for seed in 0..12 {
        let mut picks = Picks(seed);
        let disk = MemoryDisk::new();
        // A small cache: most chunks have to be waited for.
        let cache_bytes = if seed % 2 == 0 { 32 << 10 } else { 8 << 20 };
        // Between two changes of the shards one of them compacts what another of them lists as well.
        for shard_count in [1 + (seed % 3) as u16, 2, 3] {
            run(async {
                let own = StorageOptions { cache_bytes, cache_borrows: false, ..options(shard_count) };
                let node = Node::start(&disk, own).expect("starts");
                for _ in 0..4 {
                    change_some(&node, &mut picks).await;
                    check(&node, &mut picks, seed).await;
                }
                if shard_count == 2 {
                    node.clock.advance(Duration::from_secs(1000));
                    node.shard(0).compact(lone().id()).await.expect("compacts");
                    check(&node, &mut picks, seed).await;
                }
                node.shards.stop(true).await.expect("stops");
            });
        }
    }
}

#[test]
fn a_file_that_one_of_two_shards_compacted_shows_nothing_of_that_shard_to_three() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        for pk in 0..40 {
            let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(1), DeletionTime::LIVE);
            row.cell(lone().column("v").expect("column v").id, CellRef::live(1, b"v"));
            let mut mutation = MutationBuilder::new(lone().id(), key(pk));
            mutation.row(row.finish());
            node.write(pk, mutation.finish()).await.expect("writes");
        }
        assert_eq!(by_scans(&node, &RingRange::ALL, 7).await.len(), 40);
        node.shards.stop(true).await.expect("stops");
    });
    run(async {
        let node = Node::start(&disk, options(2)).expect("starts");
        for pk in 0..40 {
            node.write(pk, delete(&lone(), pk, 2)).await.expect("writes");
        }
        node.clock.advance(Duration::from_secs(1000));
        node.shard(0).flush(lone().id()).await.expect("flushes");
        node.shard(0).compact(lone().id()).await.expect("compacts");
        node.shards.stop(true).await.expect("stops");
    });
    run(async {
        let node = Node::start(&disk, options(3)).expect("starts");
        assert_eq!(by_scans(&node, &RingRange::ALL, 7).await, []);
        node.shards.stop(true).await.expect("stops");
    });
}
