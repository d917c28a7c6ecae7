//! Does a read go on where a lookup that could not wait has stopped, and only where that is right?

use std::ops::ControlFlow;

use bytes::Bytes;
use read::ReadTarget;
use rows::{ColumnData, PartitionKey};
use runtime::MemoryDisk;
use schema::{ColumnKind, TableBuilder, TableId};
use storage::{Lookups, StorageError, TableError, Unit};
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
