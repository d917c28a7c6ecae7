//! Does a read go on where a lookup that could not wait has stopped, and only where that is right?

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use read::ReadTarget;
use rows::{
    CellRef, Clustering, ColumnData, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey,
    RowBuilder,
};
use runtime::MemoryDisk;
use schema::{ColumnKind, TableBuilder, TableId};
use storage::{Lookups, LookupsSent, StorageError, TableError, Unit};
use types::CqlType;
use uuid::Uuid;

use crate::given::*;

const PK: i32 = 1;
const OLD: i64 = 10;
const NEW: i64 = 20;

/// A disk with a file that has the row of the key, and a start later: the file is there, none of it in memory.
async fn disk_with_a_file() -> MemoryDisk {
    let disk = MemoryDisk::new();
    let node = Node::start(&disk, options(1)).expect("starts");
    node.write(PK, insert_alone(&lone(), PK, "old", OLD)).await.expect("writes");
    node.shards.stop(true).await.expect("stops");
    disk
}

/// How many rows a lookup that does not wait tells of the key.
fn told_count(node: &Node) -> usize {
    told_count_of(node, key(PK))
}

fn told_count_of(node: &Node, key: PartitionKey) -> usize {
    let (table, mut count) = (lone(), 0);
    let lookups = Lookups { table: &table, keys: &[&key], now: 1_704_067_300 };
    node.shards.handles()[0].look_up(0, lookups, |_, _| {
        count += 1;
        ControlFlow::Continue(())
    });
    count
}

async fn value(node: &Node) -> Vec<String> {
    let page = node.shard(0).read(&command(&lone(), ReadTarget::Keys(vec![key(PK)]))).await.expect("reads");
    let v = lone().column("v").expect("column v").id;
    let rows = page.partitions.iter().flat_map(|partition| &partition.rows);
    let value = |row: &rows::Row| match row.column(v) {
        Some(ColumnData::Simple(cell)) => String::from_utf8_lossy(cell.value).into_owned(),
        other => panic!("{other:?}"),
    };
    rows.map(value).collect()
}

fn filter_checks(node: &Node) -> u64 {
    node.shard(0).table(lone().id()).expect("there is k.lone").stats().filter_checks
}

#[test]
fn a_file_is_searched_once_by_a_lookup_that_lacks_a_chunk_and_the_read_after_it() {
    run(async {
        let node = Node::start(&disk_with_a_file().await, options(1)).expect("starts");
        assert_eq!(told_count(&node), 0, "a chunk is lacking");
        assert_eq!(value(&node).await, ["old"]);
        assert_eq!(filter_checks(&node), 1, "one search");
        // It was taken: the next read searches anew.
        assert_eq!(value(&node).await, ["old"]);
        assert_eq!(filter_checks(&node), 2);
    });
}

#[test]
fn a_lookup_that_was_left_keeps_nothing_of_the_input() {
    run(async {
        let node = Node::start(&disk_with_a_file().await, options(1)).expect("starts");
        let input = Bytes::from([&PK.to_be_bytes()[..], &[0; 1000]].concat());
        assert_eq!(told_count_of(&node, PartitionKey::new(input.slice(..4))), 0, "a chunk is lacking");
        assert!(input.is_unique(), "somebody keeps a part of it");
        assert_eq!(value(&node).await, ["old"]);
        assert_eq!(filter_checks(&node), 1, "the search was left, and was taken up");
    });
}

#[test]
fn a_write_after_the_lookup_is_seen_by_the_read() {
    run(async {
        let node = Node::start(&disk_with_a_file().await, options(1)).expect("starts");
        assert_eq!(told_count(&node), 0, "a chunk is lacking");
        node.write(PK, insert_alone(&lone(), PK, "new", NEW)).await.expect("writes");
        assert_eq!(value(&node).await, ["new"]);
        assert_eq!(filter_checks(&node), 1, "of the file nothing is new");
    });
}

#[test]
fn a_flush_after_the_lookup_makes_the_read_begin_anew() {
    run(async {
        let node = Node::start(&disk_with_a_file().await, options(1)).expect("starts");
        assert_eq!(told_count(&node), 0, "a chunk is lacking");
        node.write(PK, insert_alone(&lone(), PK, "new", NEW)).await.expect("writes");
        node.shard(0).flush(lone().id()).await.expect("flushes");
        assert_eq!(value(&node).await, ["new"], "the row in the file that came");
    });
}

/// A change of the row of `k.lone` that says that, if it says anything.
fn change(pk: i32, say: impl FnOnce(&mut RowBuilder)) -> Mutation {
    let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
    say(&mut row);
    let mut mutation = MutationBuilder::new(lone().id(), key(pk));
    mutation.row(row.finish());
    mutation.finish()
}

/// A node whose `k.lone` has rows of the keys 1 and 2, nothing in the partition of 3, and none of 6; in 4 a cell was
/// deleted, in 5 the partition with its row.
async fn node_of_few_rows() -> Node {
    let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
    let v = lone().column("v").expect("column v").id;
    let mut deleted = MutationBuilder::new(lone().id(), key(5));
    deleted.partition_deletion(DeletionTime { timestamp: OLD, local_deletion_time: 1 });
    let writes = [
        (1, insert_alone(&lone(), 1, "one", OLD)),
        (2, insert_alone(&lone(), 2, "two", OLD)),
        (3, change(3, |_| {})),
        (4, change(4, |row| _ = row.cell(v, CellRef::tombstone(OLD, 1)))),
        (5, insert_alone(&lone(), 5, "gone", OLD)),
        (5, deleted.finish()),
    ];
    for (pk, write) in writes {
        node.write(pk, write).await.expect("writes");
    }
    node
}

#[test]
fn each_key_is_told_of_and_counted_and_what_says_nothing_is_no_row() {
    run(async {
        let node = node_of_few_rows().await;
        let read_count = || node.shard(0).table(lone().id()).expect("there is k.lone").stats().read_count;
        let before = read_count();
        let keys = [1, 2, 3, 4, 5, 6].map(key);
        let keys: Vec<&PartitionKey> = keys.iter().collect();
        let (table, mut told) = (lone(), Vec::new());
        let lookups = Lookups { table: &table, keys: &keys, now: 1_704_067_300 };
        node.shards.handles()[0].look_up(0, lookups, |index, row| {
            told.push((index, row.is_some()));
            ControlFlow::Continue(())
        });
        assert_eq!(told, [(0, true), (1, true), (2, false), (3, false), (4, false), (5, false)]);
        assert_eq!(read_count() - before, 6);
    });
}

#[test]
fn a_row_is_found_through_pages_of_the_index_that_are_not_always_in_memory() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        for pk in 0..2_000 {
            node.write(pk, insert_alone(&lone(), pk, "value", OLD)).await.expect("writes");
        }
        node.shard(0).flush(lone().id()).await.expect("flushes");
        for pk in (0..2_000).step_by(50) {
            // It brings into memory what a lookup may lack.
            let command = command(&lone(), ReadTarget::Keys(vec![key(pk)]));
            node.shard(0).read(&command).await.expect("reads");
            let (table, key, mut told) = (lone(), key(pk), Vec::new());
            let lookups = Lookups { table: &table, keys: &[&key], now: 1_704_067_300 };
            node.shards.handles()[0].look_up(0, lookups, |_, row| {
                told.push(row.is_some());
                ControlFlow::Continue(())
            });
            assert_eq!(told, [true], "{pk}");
        }
    });
}

#[test]
fn rows_are_compared_by_their_hashes_unless_something_of_them_was_deleted() {
    run(async {
        let node = node_of_few_rows().await;
        let lookups =
            LookupsSent { table: lone(), keys: [1, 2, 4, 5, 6].map(key).into(), now: 1_704_067_300 };
        let hashed = node.shards.handles()[0].send_hashed_lookups(0, Arc::new(lookups)).await.expect("reads");
        let rows: Vec<Option<bool>> =
            hashed.iter().map(|told| told.as_ref().map(|told| told.row.is_some())).collect();
        assert_eq!(rows, [Some(true), Some(true), None, None, Some(false)]);
        let hashes: Vec<u128> = hashed.iter().flatten().map(|told| told.hash).collect();
        assert!(hashes[0] != 0 && hashes[1] != 0 && hashes[0] != hashes[1]);
        assert_eq!(hashes[2], 0, "that of no row");
    });
}

#[test]
fn a_table_that_is_gone_keeps_none_of_its_group_from_being_written() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let handle = &node.shards.handles()[0];
        let gone = TableBuilder::new(TableId(Uuid::from_u128(77)), "k", "gone")
            .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
            .column("v", ColumnKind::Regular, CqlType::Text)
            .build()
            .expect("a table");
        let group = vec![
            insert(&table(), 1, 1, "first", OLD),
            insert_alone(&gone, PK, "of no table", OLD),
            insert(&table(), 2, 1, "last", OLD),
        ];
        let outcomes = handle.write_units(0, None, Unit::Each, group).await;
        assert_eq!(outcomes.done.iter().collect::<Vec<_>>(), [0, 2]);
        assert!(outcomes.doubtful.is_empty());
        assert!(
            matches!(outcomes.error, Some(StorageError::Table(TableError::NoTable { .. }))),
            "{:?}",
            outcomes.error
        );
        let found: Vec<_> = node.all(&table(), 10).await.into_iter().map(|(pk, _, v)| (pk, v)).collect();
        assert_eq!(found, [(1, "first".to_owned()), (2, "last".to_owned())]);
    });
}
