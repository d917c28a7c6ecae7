//! What when the node's own code breaks a promise? Each with a fault that is planted.

use read::ReadTarget;
use rows::{Mutation, RingRange};
use runtime::{MemoryDisk, Plant, Plants, caught_in};
use storage::{ShardHandle, StorageError, TableError, Unit};

use crate::given::*;

fn start(disk: &MemoryDisk, plants: &Plants) -> Node {
    Node::start_with(disk, options(1), |runtime| runtime.plants = plants.clone()).expect("starts")
}

/// Nothing is done any more, and each refusal says why.
async fn check_refuses(node: &Node, what: &str) {
    let shard = node.shard(0);
    let read = shard.read(&command(&table(), ReadTarget::Range(RingRange::ALL))).await.map(|_| ());
    for refused in [
        read,
        node.write(9, insert(&table(), 9, 0, "late", 9)).await,
        shard.flush(table().id()).await,
        shard.compact(table().id()).await,
        shard.table(table().id()).map(|_| ()),
        shard.stop(true).await,
    ] {
        match refused {
            Err(StorageError::Table(TableError::Broken(broken))) => {
                assert!(broken.what.contains(what), "{broken}")
            }
            other => panic!("{what} gave {other:?}"),
        }
    }
}

/// What an earlier life acknowledged is there.
fn check_rows(disk: &MemoryDisk, keys: &[i32]) {
    run(async {
        let rows = start(disk, &Plants::default()).all(&table(), 10).await;
        assert_eq!(rows, keys.iter().map(|pk| (*pk, 0, "v".to_owned())).collect::<Vec<_>>());
    });
}

/// Two mutations are written, of which the first is logged and not merged. So many of them replay may have.
fn check_merged_in_part(
    write: impl AsyncFnOnce(&ShardHandle, Vec<Mutation>) -> Result<(), StorageError>,
    replayed_counts: [usize; 2],
) {
    let (disk, plants) = (MemoryDisk::new(), Plants::default());
    run(async {
        let node = start(&disk, &plants);
        node.write(1, insert(&table(), 1, 0, "one", 1)).await.expect("writes");
        plants.plant(Plant::UnappliedMutation);
        let both = vec![insert(&table(), 2, 0, "two", 2), insert(&table(), 3, 0, "three", 2)];
        // Of work that was sent to a shard the caller is told by an error.
        let written = caught_in(write(&node.shards.handles()[0], both)).await;
        assert!(!matches!(written, Ok(Ok(()))));
        check_refuses(&node, "every mutation of a record is merged into a memtable").await;
    });
    run(async {
        let rows = start(&disk, &Plants::default()).all(&table(), 10).await;
        assert!(replayed_counts.contains(&(rows.len() - 1)), "{rows:?}");
        assert_eq!(rows[0], (1, 0, "one".to_owned()));
    });
}

#[test]
fn a_record_that_is_merged_in_part_stops_the_node_and_replay_has_all_of_it() {
    let write = async |handle: &ShardHandle, both: Vec<Mutation>| handle.write(0, &both).await;
    check_merged_in_part(write, [0, 2]);
}

#[test]
fn a_record_of_a_group_that_is_not_merged_stops_the_node_and_replay_has_it() {
    let write = async |handle: &ShardHandle, both: Vec<Mutation>| {
        handle.write_units(0, None, Unit::Each, both).await.error.map_or(Ok(()), Err)
    };
    check_merged_in_part(write, [0, 1]);
}

/// Two files are merged.
fn check_merge_with(plant: Plant, what: &str) {
    let (disk, plants) = (MemoryDisk::new(), Plants::default());
    run(async {
        let node = start(&disk, &plants);
        for pk in [1, 2] {
            node.write(pk, insert(&table(), pk, 0, "v", 1)).await.expect("writes");
            node.shard(0).flush(table().id()).await.expect("flushes");
        }
        plants.plant(plant);
        // Of a job on another thread the caller is told by an error.
        let merged = caught_in(node.shard(0).compact(table().id())).await;
        assert!(!matches!(merged, Ok(Ok(()))), "{plant:?}");
        check_refuses(&node, what).await;
    });
    check_rows(&disk, &[1, 2]);
}

#[test]
fn a_merge_that_loses_a_partition_stops_the_node_before_its_inputs_go() {
    check_merge_with(Plant::PartitionLost, "a partition that is merged is written");
}

#[test]
fn a_change_that_takes_out_what_the_manifest_does_not_name_stops_the_node_before_it_is_written() {
    check_merge_with(Plant::UnnamedFileRemoved, "which is not named");
}

#[test]
fn a_file_that_a_table_has_is_not_deleted() {
    check_merge_with(Plant::FileDeletedEarly, "a file that is deleted is no table's");
}

#[test]
fn memory_that_is_given_back_twice_stops_the_node() {
    let (disk, plants) = (MemoryDisk::new(), Plants::default());
    run(async {
        let node = start(&disk, &plants);
        node.write(1, insert(&table(), 1, 0, "v", 1)).await.expect("writes");
        plants.plant(Plant::MemoryGivenBackTwice);
        assert!(caught_in(node.shard(0).flush(table().id())).await.is_err());
        check_refuses(&node, "the memory of a memtable is counted until it is let go").await;
    });
    check_rows(&disk, &[1]);
}
