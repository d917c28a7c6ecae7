//! What a memtable says it takes: nothing is written out in time if that is too little. And what it says of partitions
//! that hold no more than a row.

use std::sync::Arc;

use bytes::Bytes;
use rows::{
    Bound, BoundKind, CellRef, Clustering, ClusteringBuilder, DeletionTime, LARGE_ROW_BYTES, Liveness,
    MutationBuilder, PartitionKey, RangeTombstone, Row, RowBuilder, Slice,
};
use schema::{ClusteringOrder, ColumnKind, Table, TableBuilder, TableId};
use types::CqlType;
use uuid::Uuid;

use super::*;

const DELETED: DeletionTime = DeletionTime { timestamp: 1, local_deletion_time: 1 };

fn table(clustering_count: usize) -> Arc<Table> {
    let mut table = TableBuilder::new(TableId(Uuid::from_u128(1)), "k", "t").column(
        "pk",
        ColumnKind::PartitionKey(0),
        CqlType::Int,
    );
    if clustering_count > 0 {
        table = table.column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int);
    }
    let map = CqlType::Map { key: Arc::new(CqlType::Blob), value: Arc::new(CqlType::Blob), frozen: false };
    table = table.column("v", ColumnKind::Regular, CqlType::Blob).column("w", ColumnKind::Regular, map);
    Arc::new(table.build().expect("a sound table"))
}

fn clustering(place: i32) -> Clustering {
    let mut clustering = ClusteringBuilder::new();
    clustering.push(Some(&place.to_be_bytes()));
    clustering.finish()
}

/// A row of a value; a large one has a collection, too.
fn row(table: &Table, clustering: &Clustering, timestamp: i64, value_bytes: usize) -> Row {
    let id = |name| table.column(name).expect("a column").id;
    let mut row = RowBuilder::new(clustering, Liveness::at(timestamp), DeletionTime::LIVE);
    row.cell(id("v"), CellRef::live(timestamp, &vec![7; value_bytes]));
    if value_bytes >= LARGE_ROW_BYTES {
        let cells = [CellRef::live(timestamp, b"value").with_path(b"key")];
        row.complex(id("w"), DeletionTime::LIVE, cells);
    }
    row.finish()
}

/// By how many bytes beside the arena a write to the only partition makes a memtable grow.
fn growth(memtable: &mut Memtable, build: impl FnOnce(&mut MutationBuilder)) -> usize {
    let key = PartitionKey::new(Bytes::from_static(&[0, 0, 0, 1]));
    let mut mutation = MutationBuilder::new(memtable.table.id(), key);
    build(&mut mutation);
    let (before, all_before) = (memtable.other_bytes, memtable.memory_bytes());
    memtable.apply(&mutation.finish(), None, None);
    let grown = memtable.other_bytes - before;
    assert!(memtable.memory_bytes() >= all_before + grown, "what lies beside the arena is a part of all");
    grown
}

#[test]
fn a_partition_and_each_of_its_rows_and_ranges_is_counted() {
    let table = table(1);
    let mut memtable = Memtable::new(Arc::clone(&table));
    let deleted = |mutation: &mut MutationBuilder| _ = mutation.partition_deletion(DELETED);
    assert_eq!(growth(&mut memtable, deleted), PARTITION_OVERHEAD_BYTES);
    assert_eq!(growth(&mut memtable, deleted), 0, "it is there");
    let order_key_bytes = partition::row_key(&row(&table, &clustering(1), 2, 1), memtable.comparator()).len();
    for place in 1..4 {
        let written = row(&table, &clustering(place), 2, 1);
        let grown = growth(&mut memtable, |mutation| _ = mutation.row(written));
        assert_eq!(grown, ROW_OVERHEAD_BYTES + order_key_bytes, "small rows lie in the arena");
    }
    let bound = |kind, place| Bound { kind, prefix: clustering(place) };
    let slice = Slice { start: bound(BoundKind::InclusiveStart, 5), end: bound(BoundKind::InclusiveEnd, 6) };
    let end_bytes = clustering(5).as_encoded().len();
    let range = RangeTombstone { slice, deletion: DELETED };
    let grown = growth(&mut memtable, |mutation| _ = mutation.range(range));
    assert_eq!(grown, 2 * (ROW_OVERHEAD_BYTES + end_bytes), "two markers");
    assert_eq!(memtable.operation_count(), 6);
}

#[test]
fn a_row_that_lies_beside_the_arena_is_counted_and_so_is_each_version_of_a_large_one() {
    let table = table(0);
    let mut memtable = Memtable::new(Arc::clone(&table));
    let mut write = |timestamp: i64, value_bytes: usize| {
        let written = row(&table, &Clustering::EMPTY, timestamp, value_bytes);
        let bytes = written.as_encoded().len();
        (growth(&mut memtable, |mutation| _ = mutation.row(written)), bytes)
    };
    let (grown, bytes) = write(1, 1_000);
    assert_eq!(grown, PARTITION_OVERHEAD_BYTES + bytes);
    let (grown, larger_bytes) = write(2, 1_500);
    assert_eq!(grown, larger_bytes - bytes, "in its place");
    // It is written before what is there, and does not replace it.
    let (grown, large_bytes) = write(1, LARGE_ROW_BYTES);
    assert_eq!(grown, ROW_OVERHEAD_BYTES + large_bytes);
}

#[test]
fn a_partition_of_one_row_is_told_at_once_unless_there_is_more_to_it() {
    let key = |number: u8| PartitionKey::new(vec![0, 0, 0, number].into());
    let told = |memtable: &Memtable, number: u8| {
        let told = memtable.single_rows(&[&key(number)]).next().expect("one key");
        match told {
            SingleRowLookup::Absent => "absent",
            SingleRowLookup::Row(SingleRow { row: None, .. }) => "no row",
            SingleRowLookup::Row(SingleRow { row: Some(_), .. }) => "a row",
            SingleRowLookup::Many => "more",
        }
    };
    let alone = table(0);
    let mut memtable = Memtable::new(Arc::clone(&alone));
    let mut write = |number: u8, build: &dyn Fn(&mut MutationBuilder)| {
        let mut mutation = MutationBuilder::new(alone.id(), key(number));
        build(&mut mutation);
        memtable.apply(&mutation.finish(), None, None);
    };
    write(1, &|mutation| _ = mutation.row(row(&alone, &Clustering::EMPTY, 1, 1)));
    write(2, &|mutation| _ = mutation.partition_deletion(DELETED));
    for timestamp in [2, 1] {
        write(3, &|mutation| _ = mutation.row(row(&alone, &Clustering::EMPTY, timestamp, LARGE_ROW_BYTES)));
    }
    assert_eq!([0, 1, 2, 3].map(|number| told(&memtable, number)), ["absent", "a row", "no row", "more"]);

    let mut memtable = Memtable::new(table(1));
    let slice = Slice::ALL;
    growth(&mut memtable, |mutation| _ = mutation.range(RangeTombstone { slice, deletion: DELETED }));
    assert_eq!(told(&memtable, 1), "more", "a range");
    let items: usize = memtable.partitions().map(|(_, items)| items.count()).sum();
    assert_eq!(items, 2, "the edges of the range");
}
