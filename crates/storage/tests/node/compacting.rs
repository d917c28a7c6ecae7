//! Compaction under every strategy: what is read stays the same, and files become few.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use rows::{DeletionTime, MutationBuilder};
use runtime::MemoryDisk;
use schema::{CompactionOptions, Schema, Table};
use sstable::Descriptor;
use storage::{CompactionKind, CompactionRequest, Shard, StorageOptions};

use crate::failing::data_files;
use crate::given::{self, Node, insert, key, options, run};
use crate::rewriting::noise;

const PACKAGE: &str = "org.apache.cassandra.db.compaction.";

/// The schema, with `k.t` compacted by a strategy.
pub(crate) fn schema_with(
    class: &str,
    pairs: &[(&str, &str)],
    gc_grace_seconds: u32,
    epoch: u64,
) -> Arc<Schema> {
    given::altered(epoch, |options| {
        options.compaction = CompactionOptions {
            class: format!("{PACKAGE}{class}"),
            options: pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        };
        options.gc_grace_seconds = gc_grace_seconds;
    })
}

pub(crate) const STRATEGIES: [(&str, &[(&str, &str)]); 4] = [
    ("SizeTieredCompactionStrategy", &[]),
    ("LeveledCompactionStrategy", &[("sstable_size_in_mb", "1"), ("single_sstable_uplevel", "true")]),
    ("TimeWindowCompactionStrategy", &[("compaction_window_unit", "MINUTES")]),
    ("UnifiedCompactionStrategy", &[("min_sstable_size", "0B"), ("target_sstable_size", "1MiB")]),
];

fn deleted_long_ago(table: &Table, pk: i32, timestamp: i64) -> rows::Mutation {
    let mut mutation = MutationBuilder::new(table.id(), key(pk));
    mutation.partition_deletion(DeletionTime { timestamp, local_deletion_time: 1_000 });
    mutation.finish()
}

/// Lets tasks of the background run until nothing changes any more.
pub(crate) async fn settle(shard: &Rc<Shard>, table: &Table) -> u64 {
    let mut last = u64::MAX;
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let count = shard.table(table.id()).expect("the table").stats().sstable_count;
        if count == last && shard.compactor().active().is_empty() {
            break;
        }
        last = count;
    }
    last
}

#[test]
fn every_strategy_keeps_what_was_written_and_makes_files_few() {
    for (class, pairs) in STRATEGIES {
        run(async {
            let disk = MemoryDisk::new();
            let node = Node::start(&disk, options(1)).expect("starts");
            let shard = node.shard(0);
            shard.take_schema(schema_with(class, pairs, 864_000, 7)).await.expect("a new strategy");
            let table = shard.schema().table("k", "t").expect("k.t").clone();
            let mut expected = BTreeMap::new();
            for round in 0..40i32 {
                for at in 0..30 {
                    let (pk, c) = ((round * 7 + at) % 50, at);
                    let value = format!("{round}").repeat(200);
                    let timestamp = i64::from(round) * 1_000_000 + 1;
                    node.write(pk, insert(&table, pk, c, &value, timestamp)).await.expect("written");
                    expected.insert((pk, c), value);
                }
                shard.flush(table.id()).await.expect("flushed");
            }
            let count = settle(shard, &table).await;
            let found = node.all(&table, 100).await;
            let expected: Vec<_> = expected.into_iter().map(|((pk, c), value)| (pk, c, value)).collect();
            assert!(found == expected, "{class}: what is read differs");
            assert!(count < 20, "{class}: {count} files are left of 40");
            let totals = shard.compactor().totals();
            assert!(totals.completed > 0 && totals.aborted == 0, "{class}: {totals:?}");
            let history = shard.compactor().history();
            assert_eq!(history.len() as u64, totals.completed, "{class}");
            assert!(
                history.iter().any(|record| record.rows_merged.keys().any(|files| *files > 1)),
                "{class}"
            );
            shard.compact(table.id()).await.expect("compacted");
            assert!(node.all(&table, 100).await == expected, "{class}: after a major compaction");
            drop(node.shards.stop(true).await);
            let node = Node::start(&disk, options(1)).expect("starts again");
            assert!(node.all(&table, 100).await == expected, "{class}: after a restart");
        });
    }
}

#[test]
fn the_strategy_changes_while_the_node_runs() {
    run(async {
        let disk = MemoryDisk::new();
        let node = Node::start(&disk, options(1)).expect("starts");
        let shard = node.shard(0);
        let table = given::table();
        for epoch in 0..12u64 {
            let (class, pairs) = STRATEGIES[epoch as usize % STRATEGIES.len()];
            shard.take_schema(schema_with(class, pairs, 864_000, 2 + epoch)).await.expect("a new strategy");
            let pk = epoch as i32;
            node.write(pk, insert(&table, pk, 1, "v", 1)).await.expect("written");
            shard.flush(table.id()).await.expect("flushed");
        }
        settle(shard, &table).await;
        assert_eq!(node.all(&table, 100).await.len(), 12);
    });
}

#[test]
fn a_table_that_is_turned_off_is_left_alone_until_it_is_on_again() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let (shard, table) = (node.shard(0), given::table());
        shard.table(table.id()).expect("the table").set_auto_compaction(false);
        for pk in 0..8 {
            node.write(pk, insert(&table, pk, 1, "v", 1)).await.expect("written");
            shard.flush(table.id()).await.expect("flushed");
        }
        assert_eq!(settle(shard, &table).await, 8);
        assert!(!shard.table(table.id()).expect("the table").is_auto_compaction_on());
        shard.table(table.id()).expect("the table").set_auto_compaction(true);
        assert_eq!(settle(shard, &table).await, 1);
        assert_eq!(node.all(&table, 100).await.len(), 8);
    });
}

#[test]
fn files_of_expired_rows_go_without_being_read() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let (shard, table) = (node.shard(0), given::table());
        shard
            .take_schema(schema_with(STRATEGIES[2].0, STRATEGIES[2].1, 0, 9))
            .await
            .expect("windows of a day, no grace");
        node.write(1, deleted_long_ago(&table, 1, 5)).await.expect("written");
        shard.table(table.id()).expect("the table").set_auto_compaction(false);
        shard.flush(table.id()).await.expect("flushed");
        node.write(2, insert(&table, 2, 1, "stays", 200_000_000)).await.expect("written");
        shard.flush(table.id()).await.expect("flushed");
        shard.table(table.id()).expect("the table").set_auto_compaction(true);
        settle(shard, &table).await;
        assert_eq!(shard.compactor().totals().dropped_files, 1);
        assert_eq!(node.all(&table, 100).await, [(2, 1, "stays".to_owned())]);
    });
}

#[test]
fn a_tombstone_stays_while_a_memtable_or_another_file_has_what_it_hides() {
    run(async {
        let disk = MemoryDisk::new();
        let node = Node::start(&disk, options(1)).expect("starts");
        let (shard, table) = (node.shard(0), given::table());
        shard
            .take_schema(schema_with(STRATEGIES[0].0, &[("enabled", "false")], 0, 9))
            .await
            .expect("no grace");
        node.write(1, insert(&table, 1, 1, "old", 5)).await.expect("written");
        shard.flush(table.id()).await.expect("flushed");
        let first = data_files(&disk);
        node.write(1, deleted_long_ago(&table, 1, 10)).await.expect("deleted");
        node.write(2, insert(&table, 2, 1, "other", 10)).await.expect("written");
        shard.flush(table.id()).await.expect("flushed");
        let others = [(2, 1, "other".to_owned())];
        let newest = shard.compactor().history().len();
        // The second file alone: the first has what the deletion hides.
        let of_second = |path: &String| !first.contains(path);
        let second = data_files(&disk).into_iter().find(of_second).expect("the second");
        let (second, _) = Descriptor::from_path(Path::new(&second)).expect("a table file");
        let request = CompactionRequest { files: Some(vec![second.id]), ..Default::default() };
        shard.table(table.id()).expect("the table").compact(&request).await.expect("compacted");
        assert_eq!(shard.compactor().history().len(), newest + 1);
        assert_eq!(node.all(&table, 100).await, others);
        // A late write that is older than the deletion, in memory while both files are merged.
        node.write(1, insert(&table, 1, 2, "late", 6)).await.expect("written");
        let request = CompactionRequest { split_output: true, ..CompactionRequest::default() };
        shard.table(table.id()).expect("the table").compact(&request).await.expect("compacted");
        assert_eq!(shard.compactor().history().len(), newest + 2);
        assert_eq!(node.all(&table, 100).await, others);
        shard.flush(table.id()).await.expect("flushed");
        shard.compact(table.id()).await.expect("compacted");
        assert_eq!(node.all(&table, 100).await, [(2, 1, "other".to_owned())]);
        assert_eq!(shard.table(table.id()).expect("the table").stats().estimated_partition_count, 1);
    });
}

#[test]
fn a_compaction_without_room_goes_without_its_largest_inputs_or_is_not_begun() {
    run(async {
        let disk = MemoryDisk::new();
        let node = Node::start(&disk, options(1)).expect("starts");
        let (shard, table) = (node.shard(0), given::table());
        let options = [("enabled", "false")];
        shard.take_schema(schema_with(STRATEGIES[0].0, &options, 864_000, 8)).await.expect("by hand");
        // Noise, that compression leaves as it is: 32, 160 and 32 KB.
        for (pk, row_count) in [(1, 4), (2, 20), (3, 4)] {
            for row in 0..row_count {
                node.write(pk, insert(&table, pk, row, &noise((pk * 100 + row) as u64), 1))
                    .await
                    .expect("written");
            }
            shard.flush(table.id()).await.expect("flushed");
        }
        let before = node.all(&table, 100).await;
        let counts = || {
            let totals = shard.compactor().totals();
            (totals.completed, totals.reduced, totals.left_out_files, totals.aborted)
        };
        disk.faults().set_capacity_bytes(disk.used_bytes() + 40_000);
        let refused = shard.compact(table.id()).await.expect_err("no room for two").to_string();
        assert!(refused.contains("not enough space for compaction of k.t: 3 files of"), "{refused}");
        assert_eq!(counts(), (0, 0, 0, 1));
        disk.faults().set_capacity_bytes(disk.used_bytes() + 100_000);
        shard.compact(table.id()).await.expect("the two small ones");
        assert_eq!(counts(), (1, 1, 1, 1));
        assert_eq!(shard.table(table.id()).expect("the table").stats().sstable_count, 2);
        disk.faults().clear();
        shard.compact(table.id()).await.expect("all");
        assert_eq!(counts(), (2, 1, 1, 1));
        assert_eq!(node.all(&table, 100).await, before);
    });
}

#[test]
fn files_can_be_compacted_by_their_tokens() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let (shard, table) = (node.shard(0), given::table());
        for pk in 0..3 {
            node.write(pk, insert(&table, pk, 1, "v", 1)).await.expect("written");
            shard.flush(table.id()).await.expect("flushed");
        }
        let mut tokens: Vec<_> = (0..3).map(|pk: i32| key(pk).token).collect();
        tokens.sort();
        let request = CompactionRequest { tokens: Some((tokens[0], tokens[1])), ..Default::default() };
        shard.table(table.id()).expect("the table").compact(&request).await.expect("compacted");
        assert_eq!(shard.table(table.id()).expect("the table").stats().sstable_count, 2);
        assert_eq!(shard.compactor().history()[0].rows_merged, BTreeMap::from([(1, 2)]));
    });
}

#[test]
fn one_file_is_compacted_for_its_tombstones_once_it_is_old_enough() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let (shard, table) = (node.shard(0), given::table());
        let pairs = [("tombstone_compaction_interval", "3600"), ("tombstone_threshold", "0.3")];
        shard.take_schema(schema_with(STRATEGIES[0].0, &pairs, 0, 9)).await.expect("no grace");
        for pk in 0..20 {
            node.write(pk, deleted_long_ago(&table, pk, 10)).await.expect("deleted");
            node.write(pk + 100, insert(&table, pk + 100, 1, "stays", 10)).await.expect("written");
        }
        shard.flush(table.id()).await.expect("flushed");
        assert_eq!(settle(shard, &table).await, 1);
        let stats = || shard.table(table.id()).expect("the table").stats();
        assert!(stats().droppable_tombstone_ratio() > 0.3, "{}", stats().droppable_tombstone_ratio());
        assert_eq!(shard.compactor().history(), [], "it is too young");
        node.clock.advance(std::time::Duration::from_secs(3_601));
        // Something that lets it be looked at.
        shard.flush(table.id()).await.expect("nothing to flush");
        settle(shard, &table).await;
        let history = shard.compactor().history();
        assert_eq!(history.len(), 1, "{history:?}");
        assert_eq!(history[0].properties["compaction_type"], "Tombstone Compaction");
        assert_eq!((stats().sstable_count, stats().estimated_partition_count), (1, 20));
        assert_eq!(stats().droppable_tombstone_ratio(), 0.0);
        assert_eq!(node.all(&table, 100).await.len(), 20);
        node.clock.advance(std::time::Duration::from_secs(7_200));
        shard.flush(table.id()).await.expect("nothing to flush");
        settle(shard, &table).await;
        assert_eq!(shard.compactor().history().len(), 1, "once is enough");
    });
}

/// A table with more to do than is done: a merge goes on, slowly.
async fn busy_node() -> Node {
    // The only slot is taken: nobody asks again how much is left.
    let options = StorageOptions { concurrent_compactors: 1, ..options(1) };
    let node = Node::start(&MemoryDisk::new(), options).expect("starts");
    let (shard, table) = (node.shard(0), given::table());
    let few = [("max_threshold", "4")];
    shard.take_schema(schema_with(STRATEGIES[0].0, &few, 864_000, 8)).await.expect("four at a time");
    shard.table(table.id()).expect("the table").set_auto_compaction(false);
    for file in 0..8 {
        for pk in 0..200 {
            node.write(pk, insert(&table, pk, file, &"v".repeat(2_000), 1)).await.expect("written");
        }
        shard.flush(table.id()).await.expect("flushed");
    }
    shard.compactor().set_rate(1);
    shard.table(table.id()).expect("the table").set_auto_compaction(true);
    while shard.compactor().active().is_empty() {
        tokio::task::yield_now().await;
    }
    let pending = shard.compactor().totals().pending;
    assert!(
        pending.get(&("k".to_owned(), "t".to_owned())).is_some_and(|count| *count > 1),
        "{pending:?}: more than what goes on"
    );
    node
}

/// The estimate of a table that nobody asked about again stood for good.
#[test]
fn nothing_is_pending_for_a_table_that_is_turned_off_or_gone() {
    run(async {
        let node = busy_node().await;
        let (shard, table) = (node.shard(0), given::table());
        shard.table(table.id()).expect("the table").set_auto_compaction(false);
        settle(shard, &table).await;
        assert!(shard.compactor().totals().pending.is_empty(), "turned off by hand");
    });
    run(async {
        let node = busy_node().await;
        let (shard, table) = (node.shard(0), given::table());
        let options = [("enabled", "false")];
        shard.take_schema(schema_with(STRATEGIES[0].0, &options, 864_000, 9)).await.expect("altered");
        shard.compactor().stop(None, &CompactionKind::ALL);
        settle(shard, &table).await;
        assert!(shard.compactor().totals().pending.is_empty(), "turned off by its options");
    });
    run(async {
        let node = busy_node().await;
        let mut keyspaces: Vec<_> =
            given::schema().keyspaces().values().map(|keyspace| (**keyspace).clone()).collect();
        keyspaces.iter_mut().for_each(|keyspace| _ = keyspace.tables.remove("t"));
        let shard = node.shard(0);
        shard.take_schema(Arc::new(Schema::new(9, keyspaces))).await.expect("dropped");
        while !shard.compactor().active().is_empty() {
            tokio::time::sleep(std::time::Duration::from_secs(3_600)).await;
        }
        assert!(shard.compactor().totals().pending.is_empty(), "dropped");
    });
}

#[test]
fn compactions_that_ended_are_remembered_over_starts_for_a_week() {
    let mut disk = MemoryDisk::new();
    let compact = async |node: &Node, round: i32| {
        let (shard, table) = (node.shard(0), given::table());
        for c in 0..2 {
            node.write(1, insert(&table, 1, c, "v", i64::from(round))).await.expect("written");
            shard.flush(table.id()).await.expect("flushed");
        }
        shard.compact(table.id()).await.expect("compacted");
    };
    let mut remembered = Vec::new();
    for round in 1..4 {
        run(async {
            let node = Node::start(&disk, options(1)).expect("starts");
            node.clock.advance(std::time::Duration::from_secs(round as u64));
            assert_eq!(node.shard(0).compactor().history(), remembered);
            compact(&node, round).await;
            remembered = node.shard(0).compactor().history();
            assert_eq!(remembered.len(), round as usize);
        });
        disk = disk.crash(round as u64);
    }
    let path = std::path::Path::new("/node/history/shard-0.json");
    disk.flip_bits(path, 100, 4).expect("flips");
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts without it");
        assert_eq!(node.shard(0).compactor().history(), []);
        compact(&node, 9).await;
        node.clock.advance(std::time::Duration::from_secs(8 * 86_400));
        assert_eq!(node.shard(0).compactor().history().len(), 1);
        compact(&node, 10).await;
        assert_eq!(node.shard(0).compactor().history().len(), 1, "the one of last week is forgotten");
    });
}
