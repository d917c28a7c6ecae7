//! What a node does as time goes by, asked by nobody.

use std::time::Duration;

use rows::{CellRef, DeletionTime, Liveness, Mutation, MutationBuilder, RowBuilder};
use runtime::MemoryDisk;
use schema::Table;

use crate::compacting::{STRATEGIES, schema_with, settle};
use crate::given::{self, Node, clustering, insert, key, options, run};

const STEP: Duration = Duration::from_millis(50);

/// Time goes by on all clocks, in steps.
async fn pass(node: &Node, steps: u32, step: Duration) {
    for _ in 0..steps {
        node.clock.advance(step);
        tokio::time::sleep(step).await;
    }
}

/// Files of `k.t` on the first shard, and memtables that became any.
fn flushed(node: &Node) -> (u64, u64) {
    let stats = node.shard(0).table(given::table().id()).expect("the table").stats();
    (stats.sstable_count, stats.memtable_switch_count)
}

/// A row that is gone in a minute.
fn expiring(table: &Table, pk: i32, now_seconds: u32) -> Mutation {
    let (expires, mut mutation) = (now_seconds + 60, MutationBuilder::new(table.id(), key(pk)));
    let liveness = Liveness::expiring(1, 60, expires);
    let mut row = RowBuilder::new(&clustering(1), liveness, DeletionTime::LIVE);
    let cell = CellRef { ttl: 60, local_deletion_time: expires, ..CellRef::live(1, b"v") };
    row.cell(table.column("v").expect("v").id, cell);
    mutation.row(row.finish());
    mutation.finish()
}

#[test]
fn a_memtable_is_written_out_when_its_period_is_over() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let table = given::table();
        let periodic = given::altered(7, |options| options.memtable_flush_period_in_ms = 1_000);
        node.shard(0).take_schema(periodic).await.expect("another period");
        // Of an empty one the time begins anew.
        pass(&node, 50, STEP).await;
        assert_eq!(flushed(&node), (0, 0));
        node.write(1, insert(&table, 1, 1, "v", 1)).await.expect("written");
        pass(&node, 21, STEP).await;
        assert_eq!(flushed(&node), (1, 1));
        node.write(1, insert(&table, 1, 2, "w", 1)).await.expect("written");
        assert_eq!(flushed(&node), (1, 1));
        pass(&node, 21, STEP).await;
        assert_eq!(flushed(&node), (2, 2));
        let never = given::altered(8, |options| options.memtable_flush_period_in_ms = 0);
        node.shard(0).take_schema(never).await.expect("no period");
        node.write(1, insert(&table, 1, 3, "x", 1)).await.expect("written");
        pass(&node, 50, STEP).await;
        assert_eq!(flushed(&node), (2, 2));
        assert_eq!(node.all(&table, 10).await.len(), 3);
    });
}

#[test]
fn a_file_whose_rows_have_expired_goes_although_nobody_writes() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let (shard, table) = (node.shard(0), given::table());
        let (class, pairs) = STRATEGIES[2];
        shard.take_schema(schema_with(class, pairs, 0, 7)).await.expect("windows, no grace");
        node.write(1, expiring(&table, 1, shard.now_seconds())).await.expect("written");
        shard.flush(table.id()).await.expect("flushed");
        pass(&node, 3, Duration::from_secs(10)).await;
        assert_eq!(flushed(&node).0, 1);
        pass(&node, 80, Duration::from_secs(10)).await;
        assert_eq!((flushed(&node).0, shard.compactor().totals().dropped_files), (0, 1));
    });
}

#[test]
fn files_that_no_flush_speaks_for_are_compacted_after_a_start_and_a_change_of_strategy() {
    run(async {
        let disk = MemoryDisk::new();
        let (class, pairs) = (STRATEGIES[0].0, &[("enabled", "false")]);
        let node = Node::start(&disk, options(1)).expect("starts");
        let (shard, table) = (node.shard(0), given::table());
        shard.take_schema(schema_with(class, pairs, 0, 7)).await.expect("no compaction");
        let write_files = async |node: &Node, count: i32| {
            for pk in 0..count {
                node.write(pk, insert(&table, pk, 1, "v", 1)).await.expect("written");
                node.shard(0).flush(table.id()).await.expect("flushed");
            }
        };
        write_files(&node, 4).await;
        assert_eq!(settle(shard, &table).await, 4);
        drop(node.shards.stop(true).await);
        let node = Node::start(&disk, options(1)).expect("starts again, with compaction");
        let shard = node.shard(0);
        assert_eq!(settle(shard, &table).await, 1);
        shard.take_schema(schema_with(class, pairs, 0, 7)).await.expect("no compaction");
        write_files(&node, 5).await;
        assert_eq!(settle(shard, &table).await, 6);
        shard.take_schema(schema_with(class, &[], 0, 8)).await.expect("compaction");
        assert!(settle(shard, &table).await < 6);
        assert_eq!(node.all(&table, 100).await.len(), 5);
    });
}
