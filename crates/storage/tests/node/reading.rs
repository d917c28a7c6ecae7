//! Do reads see memory and files as one?

use rows::{Bound, BoundKind, ClusteringComparator, Slice, Slices};
use runtime::MemoryDisk;
use storage::{ReadTarget, StorageError};

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
        assert_eq!(node.shard(0).table_stats(table.id()).expect("stats").sstable_count, 1);
        assert_eq!(node.all(&table, 7).await, expected, "from one file");
    });
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
        let small = storage::StorageOptions { cache_bytes: 1, ..options(1) };
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
            node.shard(shard).truncate(table.id()).await.expect("truncates");
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
        assert!(matches!(read, Err(StorageError::Quarantined { .. })), "{read:?}");
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
