//! Do reads see memory and files as one?

use std::ops::ControlFlow;
use std::sync::Arc;

use read::{ReadCommand, ReadTarget};
use rows::{
    Bound, BoundKind, CellRef, Clustering, ClusteringComparator, ColumnData, DeletionTime, Liveness,
    MutationBuilder, RingRange, Row, RowBuilder, Slice, Slices,
};
use runtime::MemoryDisk;
use schema::{ColumnKind, Table, TableBuilder};
use storage::{Emptying, Lookups, ShardHandle, StorageError, TableError};
use types::CqlType;

use crate::given::*;

fn rows_of(pk: i32, places: impl IntoIterator<Item = i32>, v: &str) -> Vec<(i32, i32, String)> {
    places.into_iter().map(|c| (pk, c, v.to_owned())).collect()
}

#[test]
fn a_partition_in_memory_and_in_files_reads_as_one() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let table = table();
        for (generation, v) in ["first", "second", "third"].into_iter().enumerate() {
            for c in (generation as i32..300).step_by(generation + 1) {
                node.write(1, insert(&table, 1, c, v, generation as i64 + 1)).await.expect("writes");
            }
            if generation < 2 {
                node.shard(0).flush(table.id()).await.expect("flushes");
            }
        }
        let expected: Vec<_> = (0..300)
            .map(|c| match c {
                c if c >= 2 && (c - 2) % 3 == 0 => (1, c, "third".to_owned()),
                c if c >= 1 && (c - 1) % 2 == 0 => (1, c, "second".to_owned()),
                c => (1, c, "first".to_owned()),
            })
            .collect();
        assert_eq!(node.all(&table, 10_000).await, expected);
        assert_eq!(node.all(&table, 7).await, expected, "page by page");
        node.shard(0).flush(table.id()).await.expect("flushes");
        assert_eq!(node.all(&table, 7).await, expected, "from three files");
        node.shard(0).compact(table.id()).await.expect("compacts");
        assert_eq!(node.shard(0).table(table.id()).expect("the table").stats().sstable_count, 1);
        assert_eq!(node.all(&table, 7).await, expected, "from one file");
    });
}

/// Two shards, the first of which reads a key of the other.
async fn read_astray(table: &Arc<Table>, read: impl AsyncFnOnce(&ShardHandle, ReadCommand)) {
    let node = Node::start(&MemoryDisk::new(), options(2)).expect("starts");
    let astray = &node.shards.handles()[0];
    let pk = (0..).find(|pk| astray.shards().owner(key(*pk).token) != 0).expect("there are keys of both");
    read(astray, command(table, ReadTarget::Keys(vec![key(pk)]))).await;
}

#[test]
#[should_panic(expected = "a read goes to the shard that owns its partition")]
fn a_read_of_another_shards_key_is_no_answer() {
    run(read_astray(&table(), async |astray, command| {
        _ = astray.local().read(&command).await;
    }));
}

#[test]
#[should_panic(expected = "a read goes to the shard that owns its partition")]
fn a_plain_read_of_another_shards_key_is_no_answer() {
    run(read_astray(&lone(), async |astray, command| {
        let ReadTarget::Keys(keys) = &command.target else { unreachable!("it reads a key") };
        let lookups = Lookups { table: &command.table, keys: &[&keys[0]], now: 0 };
        astray.look_up(0, lookups, |_, _| ControlFlow::Continue(()));
    }));
}

#[test]
fn slices_are_read_in_both_directions_page_by_page() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let table = table();
        for c in 0..200 {
            node.write(1, insert(&table, 1, c, "v", 1)).await.expect("writes");
            if c == 99 {
                node.shard(0).flush(table.id()).await.expect("flushes");
            }
        }
        let comparator = ClusteringComparator::new(table.clustering_types().clone());
        let bound = |kind, c| Bound { kind, prefix: clustering(c) };
        let slices = vec![
            Slice { start: bound(BoundKind::ExclusiveStart, 10), end: bound(BoundKind::InclusiveEnd, 30) },
            Slice { start: bound(BoundKind::InclusiveStart, 90), end: bound(BoundKind::ExclusiveEnd, 110) },
        ];
        let mut read = command(&table, ReadTarget::Keys(vec![key(1)]));
        read.slices = Slices::new(slices, &comparator);
        read.limits.row_count = 3;
        let expected = rows_of(1, (11..=30).chain(90..110), "v");
        let found: Vec<_> = pages(node.shard(0), read.clone()).await.iter().flat_map(flat).collect();
        assert_eq!(found, expected);
        read.reversed = true;
        let found: Vec<_> = pages(node.shard(0), read).await.iter().flat_map(flat).collect();
        assert_eq!(found, expected.into_iter().rev().collect::<Vec<_>>());
    });
}

#[test]
fn a_cache_smaller_than_a_chunk_serves_a_row_larger_than_many() {
    run(async {
        let small = storage::StorageOptions { cache_bytes: 1, cache_borrows: false, ..options(1) };
        let node = Node::start(&MemoryDisk::new(), small).expect("starts");
        let table = table();
        let long: String =
            (0..30_000u32).map(|index| char::from(b'a' + (index * index % 23) as u8)).collect();
        node.write(1, insert(&table, 1, 1, &long, 1)).await.expect("writes");
        node.shard(0).flush(table.id()).await.expect("flushes");
        assert_eq!(node.all(&table, 10).await, [(1, 1, long)]);
    });
}

#[test]
fn truncation_and_deletion_hide_what_was_before_and_not_what_comes_after() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(2)).expect("starts");
        let table = table();
        for pk in 0..20 {
            node.write(pk, insert(&table, pk, 0, "old", 5)).await.expect("writes");
        }
        for shard in 0..2 {
            node.shard(shard).flush(table.id()).await.expect("flushes");
        }
        node.write(3, delete(&table, 3, 6)).await.expect("deletes");
        assert_eq!(node.all(&table, 100).await.len(), 19);
        for pk in 0..20 {
            node.write(pk, insert(&table, pk, 1, "old", 7)).await.expect("writes");
        }
        for shard in 0..2 {
            node.shard(shard)
                .table(table.id())
                .expect("a table")
                .truncate(Emptying::Alone)
                .await
                .expect("truncates");
        }
        assert_eq!(node.all(&table, 100).await, []);
        node.write(3, insert(&table, 3, 2, "new", 1)).await.expect("writes");
        assert_eq!(node.all(&table, 100).await, [(3, 2, "new".to_owned())]);
    });
}

/// A row in a file that can not be read must not silently be missing.
#[test]
fn a_read_that_needs_a_damaged_file_is_refused() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        node.write(1, insert(&table(), 1, 1, "v", 1)).await.expect("writes");
        node.shard(0).flush(table().id()).await.expect("flushes");
        node.shards.stop(false).await.expect("stops");
    });
    let disk = disk.kill();
    let data = find(&disk, "/node/data", "-Statistics.db").expect("a table file");
    assert!(disk.flip_bits(std::path::Path::new(&data), 40, 0x10).is_ok());
    run(async {
        let node = Node::start(&disk, options(1)).expect("a damaged table file does not stop the node");
        let read = node.shard(0).read(&command(&table(), ReadTarget::Keys(vec![key(1)]))).await;
        assert!(matches!(read, Err(StorageError::Table(TableError::Quarantined { .. }))), "{read:?}");
        assert_eq!(node.all(&other(), 10).await, [], "other tables are served");
    });
}

/// The first file below a directory whose name ends so.
fn find(disk: &MemoryDisk, directory: &str, end: &str) -> Option<String> {
    use runtime::{Disk, EntryKind};
    for entry in disk.list(std::path::Path::new(directory)).ok()? {
        let path = format!("{directory}/{}", entry.name);
        match entry.kind {
            EntryKind::Directory => {
                if let Some(found) = find(disk, &path, end) {
                    return Some(found);
                }
            }
            _ if entry.name.ends_with(end) => return Some(path),
            _ => {}
        }
    }
    None
}

/// A read by key of a table without clustering columns takes a short way where it can; one by token
/// never does. Whatever was written where, both give the same.
#[test]
fn a_lone_row_is_read_by_key_as_by_its_token() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let (table, shard) = (lone(), node.shard(0));
        let cell = |timestamp, ends: Option<u32>| match ends {
            None => CellRef::live(timestamp, b"value"),
            Some(second) => CellRef::expiring(timestamp, 10, second, b"value"),
        };
        let row = |liveness, deletion, cells: &[CellRef<'_>]| {
            let mut row = RowBuilder::new(&Clustering::EMPTY, liveness, deletion);
            cells.iter().for_each(|cell| _ = row.cell(table.column("v").expect("column v").id, *cell));
            row.finish()
        };
        let of = |pk, rows: Vec<Row>, deletion| {
            let mut mutation = MutationBuilder::new(table.id(), key(pk));
            mutation.partition_deletion(deletion);
            rows.into_iter().for_each(|row| _ = mutation.row(row));
            mutation.finish()
        };
        let (live, now) = (DeletionTime::LIVE, command(&table, ReadTarget::Range(RingRange::ALL)).now);
        let deleted = |timestamp| DeletionTime { timestamp, local_deletion_time: now - 50 };
        let plain = || row(Liveness::at(5), live, &[cell(5, None)]);
        let written = [
            vec![],
            vec![of(1, vec![plain()], live)],
            vec![of(2, vec![row(Liveness::NONE, live, &[cell(5, None)])], live)],
            vec![of(3, vec![row(Liveness::NONE, live, &[cell(5, Some(now - 1))])], live)],
            vec![of(4, vec![row(Liveness::at(5), live, &[cell(5, Some(now - 1))])], live)],
            vec![of(5, vec![row(Liveness::at(5), live, &[cell(5, Some(now + 1))])], live)],
            vec![of(6, vec![row(Liveness::NONE, deleted(5), &[])], live)],
            vec![of(7, vec![], deleted(5))],
            vec![of(8, vec![plain()], live), of(8, vec![], deleted(5))],
            vec![of(9, vec![plain()], live), of(9, vec![], deleted(4))],
            vec![of(10, vec![row(Liveness::NONE, live, &[CellRef::tombstone(6, now - 5)])], live)],
            vec![of(11, vec![plain()], live), of(11, vec![row(Liveness::NONE, deleted(9), &[])], live)],
        ];
        for place in ["in memory", "in memory over a file", "in two files"] {
            for row_count in [1, 100] {
                for (pk, mutations) in written.iter().enumerate() {
                    let key = key(i32::try_from(pk).expect("few"));
                    for mutation in mutations.iter().filter(|_| place != "in two files") {
                        shard.write(std::slice::from_ref(mutation)).await.expect("writes");
                    }
                    let mut by_key = command(&table, ReadTarget::Keys(vec![key.clone()]));
                    by_key.limits.row_count = row_count;
                    let range = RingRange::tokens(key.token, key.token);
                    let by_token = ReadCommand { target: ReadTarget::Range(range), ..by_key.clone() };
                    let by_key = shard.read(&by_key).await.expect("reads");
                    let by_token = shard.read(&by_token).await.expect("reads");
                    assert_eq!(by_key.partitions, by_token.partitions, "key {pk}, {place}");
                    assert_eq!(by_key.next, by_token.next, "key {pk}, {place}");
                    assert_eq!(by_key.tombstone_count(), by_token.tombstone_count(), "key {pk}, {place}");
                }
            }
            shard.flush(table.id()).await.expect("flushes");
        }
    });
}

/// The keys of a map stand in the order of their type; as bytes -1 comes behind 1. A statement that saw the table
/// before it had the map merged what rows have of it in the wrong order, and gave keys twice.
#[test]
fn versions_are_merged_by_the_table_as_it_is_for_a_statement_that_saw_it_before_too() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let table = named("alone");
        let m = table.column("m").expect("a column").id;
        let put = |keys: &[i32], timestamp| {
            let paths: Vec<[u8; 4]> = keys.iter().map(|key| key.to_be_bytes()).collect();
            let cells = paths.iter().map(|path| CellRef::live(timestamp, b"v").with_path(path));
            let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(timestamp), DeletionTime::LIVE);
            row.complex(m, DeletionTime::LIVE, cells);
            let mut mutation = MutationBuilder::new(table.id(), key(1));
            mutation.row(row.finish());
            mutation.finish()
        };
        node.write(1, put(&[-1, 1], 1)).await.expect("writes");
        node.shard(0).flush(table.id()).await.expect("flushes");
        node.write(1, put(&[1], 2)).await.expect("writes");
        let before = TableBuilder::new(table.id(), "k", "alone").column(
            "pk",
            ColumnKind::PartitionKey(0),
            CqlType::Int,
        );
        let before = Arc::new(before.build().expect("a sound table"));
        for target in [ReadTarget::Keys(vec![key(1)]), ReadTarget::Range(RingRange::ALL)] {
            let page = node.shard(0).read(&command(&before, target.clone())).await.expect("reads");
            let Some(ColumnData::Complex(map)) = page.partitions[0].rows[0].column(m) else {
                panic!("{page:?}")
            };
            let keys: Vec<&[u8]> = map.cells().map(|cell| cell.path).collect();
            assert_eq!(keys, [&(-1i32).to_be_bytes()[..], &1i32.to_be_bytes()], "{target:?}");
        }
    });
}
