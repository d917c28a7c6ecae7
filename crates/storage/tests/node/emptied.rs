//! Tables that are emptied.

use std::time::Duration;

use runtime::MemoryDisk;
use runtime::memory_disk::{Fault, Operation};
use storage::{Emptying, StorageError, StorageOptions, TableError};

use crate::failing::{data_files, kinds, two_files};
use crate::given::*;

/// What a ring has agreed on is done on each node, and not held up by one whose disk is full.
#[test]
fn a_table_is_emptied_without_a_snapshot_where_that_is_agreed_on() {
    run(async {
        let disk = MemoryDisk::new();
        let storage = StorageOptions { auto_snapshot: true, ..options(1) };
        let node = Node::start(&disk, storage).expect("starts");
        two_files(&node).await;
        // Links are files that there is no room for, and an edit of the manifest goes to one that is there.
        disk.faults().fail_all(Some(Operation::Create), Fault::NoSpace);
        let store = node.shard(0).table(table().id()).expect("a table");
        assert!(store.truncate(Emptying::Alone).await.is_err(), "it would be gone without a snapshot");
        assert_eq!(node.all(&table(), 10).await.len(), 2);
        store.truncate(Emptying::Agreed { epoch: 7 }).await.expect("emptied");
        assert_eq!(node.all(&table(), 10).await.len(), 0);
        assert_eq!(store.memtables().truncated_at(), 7);
    });
}

/// A TRUNCATE that came upon a DROP told its client that a file was not found, and where.
#[test]
fn a_table_that_is_dropped_while_it_is_truncated_or_snapshot_is_no_failure() {
    let options = StorageOptions { auto_snapshot: true, ..options(1) };
    let mut keyspaces: Vec<_> = schema().keyspaces().values().map(|keyspace| (**keyspace).clone()).collect();
    keyspaces[0].tables.remove("t");
    let without = std::sync::Arc::new(schema::Schema::new(9, keyspaces));
    let (mut done, mut gone) = (0, 0);
    for after_micros in (0..40_000).step_by(500) {
        let disk = MemoryDisk::new();
        run(async {
            let delay = Duration::from_millis(1);
            let node = Node::start_with_delay(&disk, options.clone(), delay).expect("starts");
            two_files(&node).await;
            node.write(3, insert(&table(), 3, 0, "in memory", 1)).await.expect("writes");
            let shard = node.shard(0);
            let later = async {
                tokio::time::sleep(Duration::from_micros(after_micros)).await;
                shard.table(table().id())?.truncate(Emptying::Alone).await.map_err(StorageError::from)
            };
            let shards = node.shards.handles()[0].shards();
            let snapshot = async {
                tokio::time::sleep(Duration::from_micros(after_micros)).await;
                shards.snapshot(table().id(), "tag", false).await
            };
            // So that each of them has something to flush.
            let writes = async {
                for c in 0..100 {
                    tokio::time::sleep(Duration::from_micros(300)).await;
                    _ = shard.write(&[insert(&table(), 4, c, "late", 1)]).await;
                }
            };
            let dropping = shard.take_schema(std::sync::Arc::clone(&without));
            let (dropped, truncated, snapshot, ()) = tokio::join!(dropping, later, snapshot, writes);
            dropped.expect("dropped");
            for outcome in [truncated, snapshot] {
                match outcome {
                    Ok(()) => done += 1,
                    Err(StorageError::Table(TableError::NoTable { .. })) => gone += 1,
                    Err(error) => panic!("after {after_micros} µs: {error}"),
                }
            }
            assert_eq!(kinds(&node), [], "after {after_micros} µs");
        });
        assert!(data_files(&disk).is_empty(), "after {after_micros} µs");
    }
    assert!(done > 0 && gone > 0, "{done} were done, {gone} found no table");
}
