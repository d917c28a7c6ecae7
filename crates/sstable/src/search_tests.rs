//! Searches for partitions, step by step: what each asks for, and that a cursor goes on from wherever it was left.

use std::sync::Arc;

use bytes::Bytes;
use components::PAGE_BYTES;
use rows::{
    CellRef, Clustering, DeletionTime, Liveness, PartitionHeader, PartitionKey, RowBuilder, Step, Unfiltered,
    UnfilteredCursor,
};
use runtime::{Disk, MemoryDisk};
use schema::{ColumnKind, Table, TableBuilder, TableId};
use types::CqlType;
use uuid::Uuid;

use crate::{
    ChunkId, Component, Descriptor, DirectChunks, PartitionSearch, SearchKey, TableFile, TableWriter,
    WriterOptions,
};

fn table() -> Arc<Table> {
    let table = TableBuilder::new(TableId(Uuid::nil()), "ks", "t")
        .column("k", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Blob);
    Arc::new(table.build().expect("a table"))
}

fn keys(count: u32) -> Vec<PartitionKey> {
    let key = |number: u32| PartitionKey::new(Bytes::copy_from_slice(&number.to_be_bytes()));
    let mut keys: Vec<PartitionKey> = (0..count).map(key).collect();
    keys.sort();
    keys
}

/// A file with a row of that many bytes in the partition of each key.
fn file(keys: &[PartitionKey], value_bytes: usize) -> Arc<TableFile> {
    let (disk, table): (Arc<dyn Disk>, _) = (Arc::new(MemoryDisk::new()), table());
    let descriptor = Descriptor::new("/t", Uuid::nil());
    disk.create_dir_all(&descriptor.directory).expect("made");
    let options =
        WriterOptions { estimated_partitions: keys.len() as u64, ..WriterOptions::for_table(&table) };
    let mut writer = TableWriter::create(Arc::clone(&disk), descriptor.clone(), Arc::clone(&table), options)
        .expect("begins");
    let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(1), DeletionTime::LIVE);
    row.cell(table.regular_columns()[0].id, CellRef::live(1, &vec![7; value_bytes]));
    let row = Unfiltered::Row(row.finish());
    for key in keys {
        let header = PartitionHeader { key: key.clone(), deletion: DeletionTime::LIVE, static_row: None };
        writer.start_partition(&header).expect("begins");
        writer.append(&row).expect("appends");
        writer.end_partition().expect("ends");
    }
    writer.finish().expect("finishes");
    TableFile::open(disk, descriptor, &table).expect("opens")
}

/// All that a search for a key comes to, to its end.
fn searches(file: &TableFile, key: &SearchKey<'_>) -> Vec<PartitionSearch> {
    let mut searches = vec![file.begin_search(key)];
    while let Some(search @ PartitionSearch::Page { .. }) = searches.last().copied() {
        let (id, offset) = file.wanted_chunk(search).expect("a page is wanted");
        let page = file.chunks().read_one(id).expect("sound");
        file.fetch_wanted(search, &page, offset);
        searches.push(file.go_on(search, key, &page));
    }
    searches
}

/// Where the partition of a key begins in Data, from a search that found it.
fn position(searches: &[PartitionSearch]) -> u64 {
    match searches.last() {
        Some(PartitionSearch::Data { position }) => *position,
        other => panic!("it is there: {other:?}"),
    }
}

#[test]
fn a_search_asks_for_what_is_not_in_memory_and_a_cursor_goes_on_from_wherever_it_was_left() {
    let keys = keys(20_000);
    let file = file(&keys, 1);
    let (page_count, unpinned_count) =
        (file.chunks().count(Component::Partitions), file.chunk_count(Component::Partitions));
    assert!((2..page_count).contains(&unpinned_count), "{unpinned_count} of {page_count} pages");
    assert_eq!(file.chunk_count(Component::Data), file.chunks().count(Component::Data));
    let mut asked_count = 0;
    for key in keys.iter().step_by(97) {
        let key = SearchKey::new(key);
        for search in searches(&file, &key) {
            if let (PartitionSearch::Page { .. }, Some((id, _))) = (search, file.wanted_chunk(search)) {
                assert!(id.index < unpinned_count, "page {} is in memory", id.index);
                asked_count += 1;
            }
            let mut cursor = file.searched_partition_cursor(DirectChunks::new(), &key, search);
            let Ok(Step::Header(header)) = cursor.step() else { panic!("{search:?}: it is there") };
            assert_eq!(header.key, *key.key);
        }
    }
    assert!(asked_count > 0, "not all of the index is in memory");
}

#[test]
fn what_is_in_memory_of_index_and_filter_is_counted() {
    let file = file(&keys(20_000), 1);
    let (component, file_number) = (Component::Partitions, file.number());
    let pinned = file.chunk_count(component)..file.chunks().count(component);
    let page = |index| file.chunks().read_one(ChunkId { file: file_number, component, index });
    let pages: u64 = pinned.clone().map(|index| page(index).expect("sound").len() as u64).sum();
    let filter_bytes = file.finder().filter().memory_bytes();
    assert!(filter_bytes > 20_000, "ten bits a key");
    let index_bytes = file.finder().memory_bytes() - filter_bytes;
    let most = pages + 64 * pinned.len() as u64;
    assert!((pages..most).contains(&index_bytes), "{index_bytes} bytes, pages of {pages}");
}

#[test]
fn the_next_chunk_is_read_too_where_a_partition_goes_on_in_it() {
    let keys = keys(200);
    // The second time partitions end where chunks do; in the third none is as short as a chunk.
    let (mut value_bytes, mut crossing_counts) = (900, Vec::new());
    for round in 0..3 {
        let file = file(&keys, value_bytes);
        let positions: Vec<u64> =
            keys.iter().map(|key| position(&searches(&file, &SearchKey::new(key)))).collect();
        let partition_bytes = positions[1] - positions[0];
        let chunk_bytes = file.chunk_bytes(Component::Data) as u64;
        let mut crossing_count = 0;
        for position in positions {
            let need = file.chunk_need(PartitionSearch::Data { position }).expect("a chunk of Data");
            assert_eq!(u64::from(need.id.index), position / chunk_bytes);
            let goes_on = position % chunk_bytes + partition_bytes > chunk_bytes;
            let is_read = goes_on && partition_bytes <= chunk_bytes;
            assert_eq!(need.likely_count, 1 + usize::from(is_read), "round {round}, from {position}");
            crossing_count += usize::from(is_read);
        }
        crossing_counts.push(crossing_count > 0);
        value_bytes = [value_bytes + 1024 - partition_bytes as usize, 20_000, 0][round];
    }
    assert_eq!(crossing_counts, [true, false, false]);
    let page = PartitionSearch::Page { position: PAGE_BYTES as u64 - 1, depth: 0 };
    assert_eq!(file(&keys, 900).chunk_need(page).expect("a page").likely_count, 1);
}
