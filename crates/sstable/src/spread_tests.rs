//! Deletions of partitions at negative timestamps: what is read has the same meaning as what was written.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rows::{
    Bound, BoundKind, CellRef, Clustering, ClusteringBuilder, ClusteringComparator, ColumnData, DeletionTime,
    Liveness, Marker, PartitionHeader, PartitionKey, RangeTombstone, RangeTombstones, RingRange, Row,
    RowBuilder, Slice, Slices, Unfiltered, merge_rows,
};
use runtime::{Disk, MemoryDisk, Random, SeededRandom};
use schema::{ClusteringOrder, ColumnKind, Table, TableBuilder, TableId};
use types::CqlType;
use uuid::Uuid;

use crate::fixture_tests::collect;
use crate::{Descriptor, DirectChunks, TableFile, TableWriter, WriterOptions};

type Partition = (PartitionHeader, Vec<Unfiltered>);
/// Live cells with their timestamps, by row and column; rows that exist have an entry without a column.
type Meaning = BTreeMap<(Vec<u8>, String), (i64, Vec<u8>)>;

fn table(has_clustering: bool) -> Arc<Table> {
    let mut table = TableBuilder::new(TableId(Uuid::from_u128(7)), "k", "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Text);
    if has_clustering {
        let set = CqlType::Set { element: CqlType::Int.into(), frozen: false };
        table = table
            .column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int)
            .column("s", ColumnKind::Static, CqlType::Text)
            .column("ss", ColumnKind::Static, set);
    }
    Arc::new(table.build().expect("a sound table"))
}

fn write_and_read(table: &Arc<Table>, partition: &Partition) -> Partition {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let descriptor = Descriptor::new("/t", Uuid::from_u128(0x1000));
    disk.create_dir_all(&descriptor.directory).expect("made");
    let options = WriterOptions { row_index_block_bytes: 64, ..WriterOptions::for_table(table) };
    let mut writer = TableWriter::create(Arc::clone(&disk), descriptor.clone(), Arc::clone(table), options)
        .expect("begins");
    writer.start_partition(&partition.0).expect("begins");
    partition.1.iter().for_each(|item| writer.append(item).expect("appends"));
    writer.end_partition().expect("ends");
    writer.finish().expect("finishes");
    let file = TableFile::open(disk, descriptor, table).expect("opens");
    file.verify().expect("sound");
    let mut read = collect(file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all()));
    assert_eq!(read.len(), 1);
    read.remove(0)
}

/// What a reader makes of a partition, and of the same written at any timestamps in other files.
fn meaning(table: &Table, (header, items): &Partition) -> Meaning {
    let mut meaning = Meaning::new();
    let mut open = DeletionTime::LIVE;
    if let Some(row) = &header.static_row {
        add(&mut meaning, table, row, header.deletion, b"static");
    }
    for item in items {
        match item {
            Unfiltered::Marker(marker) => open = marker.right,
            Unfiltered::Row(row) => {
                add(&mut meaning, table, row, header.deletion.max(open), row.encoded_clustering());
            }
        }
    }
    meaning
}

fn add(meaning: &mut Meaning, table: &Table, row: &Row, active: DeletionTime, place: &[u8]) {
    let Some(row) = merge_rows(std::slice::from_ref(row), active, table) else { return };
    if row.liveness().timestamp != Liveness::NONE.timestamp {
        meaning.insert((place.to_vec(), String::new()), (row.liveness().timestamp, Vec::new()));
    }
    for column in row.columns() {
        let name = |path: &[u8]| format!("{:?} {path:?}", column.id);
        match column.data {
            ColumnData::Simple(cell) if cell.is_tombstone() => {}
            ColumnData::Simple(cell) => {
                meaning.insert((place.to_vec(), name(&[])), (cell.timestamp, cell.value.to_vec()));
            }
            ColumnData::Complex(complex) => {
                for cell in complex.cells().filter(|cell| !cell.is_tombstone()) {
                    let value = (cell.timestamp, cell.value.to_vec());
                    meaning.insert((place.to_vec(), name(cell.path)), value);
                }
            }
        }
    }
}

/// The probes are rows of another file, at all timestamps around: what the deletion hides of them it
/// hides in both forms.
fn hides(table: &Arc<Table>, partition: &Partition, timestamp: i64) -> Vec<bool> {
    let (header, items) = partition;
    let v = table.column("v").expect("v").id;
    let comparator = ClusteringComparator::new(Arc::clone(table.clustering_types()));
    let mut hidden = Vec::new();
    for c in if table.clustering_types().is_empty() { 0..1 } else { -1..9 } {
        let clustering = if table.clustering_types().is_empty() { Clustering::EMPTY } else { clustering(c) };
        let mut probe = RowBuilder::new(&clustering, Liveness::at(timestamp), DeletionTime::LIVE);
        probe.cell(v, CellRef::live(timestamp, b"~"));
        let mut open = DeletionTime::LIVE;
        let mut rows = vec![probe.finish()];
        for item in items {
            match item {
                Unfiltered::Marker(marker)
                    if comparator.compare_to_bound(&clustering, &marker.start_bound()).is_gt() =>
                {
                    open = marker.right;
                }
                Unfiltered::Row(row) if row.encoded_clustering() == clustering.as_encoded() => {
                    rows.push(row.clone())
                }
                _ => {}
            }
        }
        let merged = merge_rows(&rows, header.deletion.max(open), table);
        hidden.push(merged.is_none_or(|row| row.liveness().timestamp != timestamp));
    }
    if let Some(s) = table.column("s") {
        let mut probe = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
        probe.cell(s.id, CellRef::live(timestamp, b"~"));
        let rows: Vec<Row> = header.static_row.iter().cloned().chain([probe.finish()]).collect();
        let merged = merge_rows(&rows, header.deletion, table);
        let shows = |row: Row| match row.column(s.id) {
            Some(ColumnData::Simple(cell)) => cell.value == b"~",
            _ => false,
        };
        hidden.push(!merged.is_some_and(shows));
    }
    hidden
}

fn clustering(c: i32) -> Clustering {
    let mut builder = ClusteringBuilder::new();
    builder.push(Some(&c.to_be_bytes()));
    builder.finish()
}

fn random_partition(table: &Arc<Table>, seed: u64) -> Partition {
    let random = SeededRandom::new(seed);
    let below = |end: u64| random.next_u64() % end;
    let timestamp = || below(20) as i64 - 12;
    let id = |name: &str| table.column(name).expect("a column").id;
    let header = PartitionHeader {
        key: PartitionKey::new(Bytes::from_static(&[0, 0, 0, 1])),
        deletion: DeletionTime { timestamp: -1 - below(8) as i64, local_deletion_time: 1_700_000_000 },
        static_row: (!table.static_columns().is_empty() && below(3) > 0).then(|| {
            let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
            row.cell(id("s"), CellRef::live(timestamp(), b"static"));
            if below(2) == 0 {
                row.complex(
                    id("ss"),
                    DeletionTime::LIVE,
                    [CellRef::live(timestamp(), b"").with_path(&[0, 0, 0, 9])],
                );
            }
            row.finish()
        }),
    };
    let row = |clustering: &Clustering| {
        let deletion = DeletionTime { timestamp: timestamp(), local_deletion_time: 1_700_000_001 };
        let deletion = if below(5) == 0 { deletion } else { DeletionTime::LIVE };
        let mut row = RowBuilder::new(clustering, Liveness::at(timestamp()), deletion);
        row.cell(id("v"), CellRef::live(timestamp(), &vec![b'v'; below(40) as usize]));
        row.finish()
    };
    if table.clustering_types().is_empty() {
        let items = if below(3) == 0 { Vec::new() } else { vec![Unfiltered::Row(row(&Clustering::EMPTY))] };
        return (header, items);
    }
    let comparator = ClusteringComparator::new(Arc::clone(table.clustering_types()));
    let mut ranges = RangeTombstones::new();
    for _ in 0..below(4) {
        let bound = |is_start: bool| match (below(3), is_start) {
            (0, true) => Bound::BOTTOM,
            (0, false) => Bound::TOP,
            (_, true) => Bound { kind: BoundKind::InclusiveStart, prefix: clustering(below(8) as i32) },
            (_, false) => Bound { kind: BoundKind::ExclusiveEnd, prefix: clustering(below(8) as i32) },
        };
        let slice = Slice { start: bound(true), end: bound(false) };
        let deletion = DeletionTime { timestamp: timestamp(), local_deletion_time: 1_700_000_002 };
        ranges.insert(RangeTombstone { slice, deletion }, &comparator);
    }
    let mut markers = ranges.markers(&Slice::ALL, &comparator).into_iter().peekable();
    let mut items = Vec::new();
    for c in (0..8).filter(|_| below(2) == 0) {
        let row = row(&clustering(c));
        let before =
            |marker: &Marker| comparator.compare_to_bound(&clustering(c), &marker.start_bound()).is_gt();
        while let Some(marker) = markers.next_if(before) {
            items.push(Unfiltered::Marker(marker));
        }
        items.push(Unfiltered::Row(row));
    }
    items.extend(markers.map(Unfiltered::Marker));
    (header, items)
}

/// Such a deletion became one at timestamp 0, and hid rows that it had not hidden in memory.
#[test]
fn a_deletion_at_a_negative_timestamp_hides_what_it_hid_before_it_was_written() {
    for has_clustering in [true, false] {
        let table = table(has_clustering);
        for seed in 0..400 {
            let partition = random_partition(&table, seed);
            let read = write_and_read(&table, &partition);
            assert!(read.0.deletion.is_live());
            assert_eq!(meaning(&table, &partition), meaning(&table, &read), "seed {seed}");
            for timestamp in -14..10 {
                let (before, after) = (hides(&table, &partition, timestamp), hides(&table, &read, timestamp));
                assert_eq!(before, after, "seed {seed}, probes at {timestamp}");
            }
            let again = write_and_read(&table, &read);
            assert_eq!(read, again, "written once more, as a compaction does");
        }
    }
}
