//! Rows that are shown where they lie in a chunk, and what is never shown that way.

use std::sync::Arc;

use bytes::Bytes;
use rows::{
    CellMerge, CellRef, Clustering, DeletionTime, Liveness, PartitionHeader, PartitionKey, Row, RowBuilder,
    Unfiltered,
};
use runtime::{Disk, MemoryDisk};
use schema::{ColumnId, ColumnKind, Table, TableBuilder, TableId};
use types::CqlType;
use uuid::Uuid;

use crate::{
    Chunk, Descriptor, ForCursor, PartitionSearch, SearchKey, SingleRowFound, TableFile, TableWriter,
    WriterOptions,
};

const DELETION: DeletionTime = DeletionTime { timestamp: 5, local_deletion_time: 1_700_000_000 };

fn written() -> Liveness {
    Liveness::at(10)
}

/// A table of those columns beside its key, all `text`.
fn table(columns: &[&str]) -> Arc<Table> {
    let builder = TableBuilder::new(TableId(Uuid::nil()), "ks", "t");
    let builder = builder.column("k", ColumnKind::PartitionKey(0), CqlType::Text);
    let builder = columns
        .iter()
        .fold(builder, |builder, name| builder.column(*name, ColumnKind::Regular, CqlType::Text));
    Arc::new(builder.build().expect("a table"))
}

fn ids(table: &Table) -> Vec<ColumnId> {
    table.regular_columns().iter().map(|column| column.id).collect()
}

fn key(text: &'static str) -> PartitionKey {
    PartitionKey::new(Bytes::from_static(text.as_bytes()))
}

/// A file with that one partition of the key `k`.
fn file(table: &Arc<Table>, deletion: DeletionTime, row: Option<Row>) -> Arc<TableFile> {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let descriptor = Descriptor::new("/t", Uuid::nil());
    disk.create_dir_all(&descriptor.directory).expect("made");
    let options = WriterOptions::for_table(table);
    let mut writer = TableWriter::create(Arc::clone(&disk), descriptor.clone(), Arc::clone(table), options)
        .expect("begins");
    writer.start_partition(&PartitionHeader { key: key("k"), deletion, static_row: None }).expect("begins");
    row.into_iter().for_each(|row| writer.append(&Unfiltered::Row(row)).expect("appends"));
    writer.end_partition().expect("ends");
    writer.finish().expect("finishes");
    TableFile::open(disk, descriptor, table).expect("opens")
}

/// The chunk in which the search for the key `k` ends, and where.
fn place(file: &TableFile) -> (Chunk, usize) {
    let key = key("k");
    let key = SearchKey::new(&key);
    let mut search = file.begin_search(&key);
    loop {
        let (id, offset) = file.wanted_chunk(search).expect("it is there");
        let chunk = file.chunks().read_one(id).expect("sound");
        if matches!(search, PartitionSearch::Data { .. }) {
            return (chunk, offset);
        }
        search = file.go_on(search, &key, &chunk);
    }
}

/// The values of the partition `k` where they lie.
fn values(file: &TableFile) -> Option<Vec<(ColumnId, Vec<u8>)>> {
    let (chunk, offset) = place(file);
    let key = key("k");
    let SingleRowFound::Partition(partition) = file.single_row_at(&SearchKey::new(&key), &chunk, offset)
    else {
        panic!("a partition of one row");
    };
    Some(partition.values()?.into_iter().map(|(id, value)| (id, value.to_vec())).collect())
}

#[test]
fn values_written_with_their_row_are_shown_where_they_lie() {
    let table = table(&["a", "b", "c"]);
    let [a, b, c] = ids(&table)[..] else { panic!("three columns") };
    let long = vec![7; 300];
    let mut builder = RowBuilder::new(&Clustering::EMPTY, written(), DeletionTime::LIVE);
    builder.value_of_row(a, b"one");
    builder.value_of_row(b, &long);
    builder.value_of_row(c, b"three");
    let file = file(&table, DeletionTime::LIVE, Some(builder.finish()));
    let expected = [(a, b"one".to_vec()), (b, long), (c, b"three".to_vec())];
    assert_eq!(values(&file).as_deref(), Some(&expected[..]));

    let (chunk, offset) = place(&file);
    let other = key("other");
    let found = file.single_row_at(&SearchKey::new(&other), &chunk, offset);
    assert!(matches!(found, SingleRowFound::Absent), "another key: {found:?}");
    let right = key("k");
    let is_elsewhere = |chunk: &Chunk, offset| {
        let found = file.single_row_at(&SearchKey::new(&right), chunk, offset);
        matches!(found, SingleRowFound::ForCursor(ForCursor::NotAtHand))
    };
    assert!(is_elsewhere(&chunk, chunk.len()), "nothing is there");
    let cut = Chunk::from(chunk.as_slice()[..offset + 40].to_vec());
    assert!(is_elsewhere(&cut, offset), "the row goes on in the next chunk");
}

#[test]
fn a_row_of_a_key_alone_has_no_values() {
    let table = table(&[]);
    let row = RowBuilder::new(&Clustering::EMPTY, written(), DeletionTime::LIVE).finish();
    assert_eq!(values(&file(&table, DeletionTime::LIVE, Some(row))), Some(Vec::new()));
}

#[test]
fn what_there_is_more_to_say_of_is_not_shown() {
    let table = table(&["a", "b"]);
    let [a, b] = ids(&table)[..] else { panic!("two columns") };
    let row = |liveness, deletion, of_b: Option<CellRef<'_>>| {
        let mut builder = RowBuilder::new(&Clustering::EMPTY, liveness, deletion);
        builder.cell(a, CellRef::live(10, b"one"));
        of_b.into_iter().for_each(|cell| _ = builder.cell(b, cell));
        Some(builder.finish())
    };
    let two = CellRef::live(10, b"two");
    let cases = [
        ("a deleted partition", DELETION, row(written(), DeletionTime::LIVE, Some(two))),
        ("no row", DELETION, None),
        ("a deleted row", DeletionTime::LIVE, row(written(), DELETION, Some(two))),
        (
            "a row that expires",
            DeletionTime::LIVE,
            row(Liveness::expiring(10, 9, 99), DeletionTime::LIVE, Some(two)),
        ),
        ("a row of an UPDATE", DeletionTime::LIVE, row(Liveness::NONE, DeletionTime::LIVE, Some(two))),
        ("a column is missing", DeletionTime::LIVE, row(written(), DeletionTime::LIVE, None)),
        (
            "a later cell",
            DeletionTime::LIVE,
            row(written(), DeletionTime::LIVE, Some(CellRef::live(11, b"two"))),
        ),
        (
            "a cell that expires",
            DeletionTime::LIVE,
            row(written(), DeletionTime::LIVE, Some(CellRef::expiring(10, 9, 99, b"two"))),
        ),
        (
            "a deleted cell",
            DeletionTime::LIVE,
            row(written(), DeletionTime::LIVE, Some(CellRef::tombstone(10, 99))),
        ),
    ];
    for (case, deletion, row) in cases {
        let file = file(&table, deletion, row.clone());
        assert_eq!(values(&file), None, "{case}");
        let ((chunk, offset), key) = (place(&file), key("k"));
        match file.single_row_at(&SearchKey::new(&key), &chunk, offset) {
            SingleRowFound::Partition(partition) => {
                assert_eq!((partition.deletion(), partition.row()), (deletion, Ok(row)), "{case}");
            }
            other => panic!("{case}: {other:?}"),
        }
    }
}

#[test]
fn a_row_that_has_more_to_say_is_merged_with_others_where_it_lies() {
    let table = table(&["a", "b"]);
    let [a, b] = ids(&table)[..] else { panic!("two columns") };
    let mut builder = RowBuilder::new(&Clustering::EMPTY, Liveness::at(7), DELETION);
    builder.cell(a, CellRef::live(10, b"one")).cell(b, CellRef::live(4, b"hidden"));
    let row = builder.finish();
    let (key, partition_deletion) = (key("k"), DeletionTime { timestamp: 6, ..DELETION });
    let file = file(&table, partition_deletion, Some(row.clone()));
    let (chunk, offset) = place(&file);
    let SingleRowFound::Partition(partition) = file.single_row_at(&SearchKey::new(&key), &chunk, offset)
    else {
        panic!("a partition of one row");
    };
    let newer = CellRef::live(11, b"newer");
    let mut merge = CellMerge::default();
    assert_eq!(merge.add_cell(b, newer), Some(()));
    assert_eq!(partition.merge_into(&mut merge), Some(()));
    let mut expected = RowBuilder::new(&Clustering::EMPTY, Liveness::at(7), DeletionTime::LIVE);
    expected.cell(a, CellRef::live(10, b"one")).cell(b, newer);
    assert_eq!(merge.build(row.encoded_clustering(), Vec::new()).finish(), expected.finish());
    assert_eq!(partition.merge_into(&mut CellMerge::of_values()), None, "something is deleted");
}
