//! Partitions that begin and end at every place beside the border of two chunks, at the end of a file.

use std::sync::Arc;

use bytes::Bytes;
use rows::{
    CellRef, ClusteringBuilder, ClusteringComparator, DeletionTime, EncodingStats, Liveness, PartitionHeader,
    PartitionKey, RingRange, RowBuilder, Slice, Slices, Unfiltered,
};
use runtime::{Disk, MemoryDisk};
use schema::{ChunkLength, ClusteringOrder, ColumnKind, CompressionOptions, Table, TableBuilder, TableId};
use types::{CqlType, encoding};
use uuid::Uuid;

use crate::fixture_tests::{Partitions, collect, write};
use crate::{Component, Descriptor, DirectChunks, KeyHash, TableFile, WriterOptions};

/// Bytes of a page, and here of a chunk.
const CHUNK_BYTES: usize = 4096;

/// Live takes one byte, a deletion twelve.
const DELETIONS: [DeletionTime; 2] =
    [DeletionTime::LIVE, DeletionTime { timestamp: 5, local_deletion_time: 1_700_000_000 }];

fn table(has_clustering: bool) -> Arc<Table> {
    let mut builder = TableBuilder::new(TableId(Uuid::nil()), "ks", "t").column(
        "k",
        ColumnKind::PartitionKey(0),
        CqlType::Text,
    );
    if has_clustering {
        builder = builder.column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int).column(
            "v",
            ColumnKind::Regular,
            CqlType::Text,
        );
    }
    Arc::new(builder.build().expect("a table"))
}

/// A row that says no more than that it is there.
fn row_of_key() -> Unfiltered {
    let clustering = ClusteringBuilder::new().finish();
    Unfiltered::Row(RowBuilder::new(&clustering, Liveness::at(10), DeletionTime::LIVE).finish())
}

fn row_of_clustering(table: &Table, clustering: i32) -> Unfiltered {
    let mut builder = ClusteringBuilder::new();
    builder.push(Some(&clustering.to_be_bytes()));
    let mut row = RowBuilder::new(&builder.finish(), Liveness::at(10), DeletionTime::LIVE);
    row.cell(table.regular_columns()[0].id, CellRef::live(10, &[b'v'; 40]));
    Unfiltered::Row(row.finish())
}

/// Writes a file with one partition whose key has so many bytes, and reads it in all ways.
fn check(
    table: &Arc<Table>,
    key_bytes: usize,
    deletion: DeletionTime,
    items: &[Unfiltered],
) -> Arc<TableFile> {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let descriptor = Descriptor::new("/t", Uuid::nil());
    let key = PartitionKey::new(Bytes::from(vec![b'k'; key_bytes]));
    let header = PartitionHeader { key: key.clone(), deletion, static_row: None };
    let content: Partitions = vec![(header, items.to_vec())];
    let options = WriterOptions {
        compression: CompressionOptions {
            class: Some("NoopCompressor".to_owned()),
            chunk_length: ChunkLength::Fixed(CHUNK_BYTES as u32),
            ..Default::default()
        },
        row_index_block_bytes: 64,
        // The time of writing takes a byte.
        encoding_stats: EncodingStats { min_timestamp: 10, ..EncodingStats::NONE },
        ..WriterOptions::for_table(table)
    };
    write(&disk, &descriptor, table, options, &content);
    let file = TableFile::open(disk, descriptor, table).expect("opens");
    let case = format!("a key of {key_bytes} bytes, {deletion:?}");
    file.verify().unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(collect(file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all())), content, "{case}");
    let hash = KeyHash::of(&key.bytes);
    let found = file.partition_cursor(DirectChunks::new(), &key, hash, &Slices::all(), false);
    assert_eq!(collect(found), content, "{case}");
    file
}

/// What follows the key takes fewer bytes than the timestamp of a deletion that is one.
#[test]
fn the_last_partition_of_data_is_read_wherever_a_chunk_ends_in_it() {
    let table = table(false);
    for key_bytes in CHUNK_BYTES - 30..CHUNK_BYTES + 2 {
        for deletion in DELETIONS {
            let file = check(&table, key_bytes, deletion, &[row_of_key()]);
            assert_eq!(file.chunk_bytes(Component::Data), CHUNK_BYTES);
            let behind_key =
                file.chunks().component_bytes(Component::Data) as usize - size_of::<u16>() - key_bytes;
            assert!(!deletion.is_live() || behind_key < size_of::<i64>(), "{behind_key} bytes");
        }
    }
}

/// The last entry of Rows ends with the deletion of its partition, and so does the file.
#[test]
fn the_last_entry_of_rows_is_read_wherever_a_page_ends_in_it() {
    let table = table(true);
    let items: Vec<Unfiltered> = (0..4).map(|clustering| row_of_clustering(&table, clustering)).collect();
    for deletion in DELETIONS {
        let file_bytes = (CHUNK_BYTES - 80..CHUNK_BYTES + 2)
            .map(|key_bytes| check(&table, key_bytes, deletion, &items))
            .map(|file| file.chunks().component_bytes(Component::Rows) as usize);
        let file_bytes: Vec<usize> = file_bytes.collect();
        let is_whole = (CHUNK_BYTES..CHUNK_BYTES + 20).all(|bytes| file_bytes.contains(&bytes));
        assert!(is_whole, "the page ends at every place of the entry's end: {file_bytes:?}");
    }
}

/// Rows with these clusterings, in their order; two or fewer are a block.
#[track_caller]
fn check_clusterings(of: CqlType, order: ClusteringOrder, clusterings: &[Vec<u8>]) {
    let builder = TableBuilder::new(TableId(Uuid::nil()), "ks", "t")
        .column("k", ColumnKind::PartitionKey(0), CqlType::Text)
        .column("c", ColumnKind::Clustering(0, order), of)
        .column("v", ColumnKind::Regular, CqlType::Text);
    let table = Arc::new(builder.build().expect("a table"));
    let row = |clustering: &Vec<u8>| {
        let mut builder = ClusteringBuilder::new();
        builder.push(Some(clustering));
        let mut row = RowBuilder::new(&builder.finish(), Liveness::at(10), DeletionTime::LIVE);
        row.cell(table.regular_columns()[0].id, CellRef::live(10, &[b'v'; 40]));
        Unfiltered::Row(row.finish())
    };
    let items: Vec<Unfiltered> = clusterings.iter().map(row).collect();
    let file = check(&table, 8, DeletionTime::LIVE, &items);
    let comparator = ClusteringComparator::new(Arc::clone(table.clustering_types()));
    let key = PartitionKey::new(Bytes::from(vec![b'k'; 8]));
    for item in &items {
        let Unfiltered::Row(row) = item else { continue };
        let slices = Slices::new(vec![Slice::prefix(row.clustering())], &comparator);
        let hash = KeyHash::of(&key.bytes);
        let found = collect(file.partition_cursor(DirectChunks::new(), &key, hash, &slices, false));
        assert_eq!(found[0].1, std::slice::from_ref(item), "{:?}", row.clustering());
    }
}

/// A row is found by the form of its clustering: equal forms, and forms in another order than that of the rows, would
/// hide it, or no file could be written at all.
#[test]
fn rows_are_found_whatever_the_forms_of_their_clusterings() {
    let numbers = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, -f64::NAN];
    let mut doubles: Vec<Vec<u8>> = numbers.iter().map(|number| number.to_be_bytes().to_vec()).collect();
    check_clusterings(CqlType::Double, ClusteringOrder::Asc, &doubles);
    doubles.reverse();
    check_clusterings(CqlType::Double, ClusteringOrder::Desc, &doubles);
    let pair = |first: Option<&[u8]>| encoding::tuple([first, Some(&1i32.to_be_bytes())]);
    let pairs =
        [pair(None), pair(Some(&[])), pair(Some(&(-1i32).to_be_bytes())), pair(Some(&7i32.to_be_bytes()))];
    check_clusterings(CqlType::Tuple(vec![CqlType::Int, CqlType::Int].into()), ClusteringOrder::Asc, &pairs);
}
