//! What with several directories of table files?

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use read::ReadTarget;
use runtime::memory_disk::{Fault, Operation};
use runtime::{Disk, EntryKind, MemoryDisk, Runtime};
use storage::{ClearFilter, Demand, Directory, DiskFailurePolicy, StorageOptions};

use crate::given::*;

fn on_two_disks(shard_count: u16) -> StorageOptions {
    StorageOptions { data_directories: vec!["/one".into(), "/two".into()], ..options(shard_count) }
}

/// Data files below a directory, snapshots not counted.
fn data_count(disk: &MemoryDisk, directory: &str) -> usize {
    let directory = Path::new(directory);
    if !matches!(disk.metadata(directory), Ok(Some(entry)) if entry.kind == EntryKind::Directory) {
        return 0;
    }
    let entries = disk.list(directory).expect("lists");
    let below = |name: &str| directory.join(name).to_str().map_or(0, |path| data_count(disk, path));
    entries
        .iter()
        .map(|entry| match entry.kind {
            EntryKind::Directory if entry.name == "snapshots" => 0,
            EntryKind::Directory => below(&entry.name),
            _ => usize::from(entry.name.ends_with("-Data.db")),
        })
        .sum()
}

async fn fill(node: &Node, from: i32) {
    for pk in from..from + 40 {
        node.write(pk, insert(&table(), pk, 0, "v", 1)).await.expect("writes");
    }
    for handle in node.shards.handles() {
        handle.local().flush(table().id()).await.expect("flushes");
    }
}

#[test]
fn each_shard_writes_to_one_directory_and_earlier_files_are_read_on() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(2)).expect("starts");
        fill(&node, 0).await;
        node.shards.stop(true).await.expect("stops");
    });
    assert_eq!(data_count(&disk, "/node/data"), 2);
    let disk = disk.crash(1);
    run(async {
        let node = Node::start(&disk, on_two_disks(2)).expect("takes two directories");
        assert_eq!(node.all(&table(), 100).await.len(), 40, "what lies in `data` is read");
        fill(&node, 100).await;
        assert_eq!((data_count(&disk, "/one"), data_count(&disk, "/two")), (1, 1));
        let snapshot = node.shards.handles()[0].shards().snapshot(table().id(), "tag", true);
        snapshot.await.expect("a snapshot of files on several disks");
        let listed = node.shard(0).snapshots().list().await.expect("lists");
        assert_eq!(listed.len(), 1);
        for shard in 0..2 {
            node.shard(shard).compact(table().id()).await.expect("compacts");
        }
        assert_eq!(data_count(&disk, "/node/data"), 0, "compaction moves what lies in `data`");
        assert_eq!((data_count(&disk, "/one"), data_count(&disk, "/two")), (1, 1));
        assert_eq!(node.shard(0).snapshots().clear(ClearFilter::default()).await.expect("clears"), 3);
        node.shards.stop(false).await.expect("stops");
    });
    // Another number of shards, and back to one directory: nothing is lost that is still named.
    let disk = disk.crash(2);
    run(async {
        let node = Node::start(&disk, on_two_disks(3)).expect("starts with three shards");
        assert_eq!(node.all(&table(), 100).await.len(), 80);
    });
}

#[test]
fn what_lies_in_another_directory_is_compacted_before_anything_is_flushed() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(2)).expect("starts");
        for from in [0, 100] {
            fill(&node, from).await;
        }
        node.shards.stop(true).await.expect("stops");
    });
    let disk = disk.crash(1);
    run(async {
        let node = Node::start(&disk, on_two_disks(2)).expect("takes two directories");
        for shard in 0..2 {
            node.shard(shard).compact(table().id()).await.expect("compacts");
        }
        assert_eq!(data_count(&disk, "/node/data"), 0);
        assert_eq!((data_count(&disk, "/one"), data_count(&disk, "/two")), (1, 1));
        assert_eq!(node.all(&table(), 100).await.len(), 80);
    });
}

#[test]
fn a_directory_of_another_node_or_with_other_files_is_refused() {
    let disk = MemoryDisk::new();
    let open = |root: &str, data: &[&str]| {
        let runtime = Runtime::in_memory(Arc::new(disk.clone()), root.len() as u64);
        let options = StorageOptions {
            directory: root.into(),
            data_directories: data.iter().map(PathBuf::from).collect(),
            ..options(1)
        };
        Directory::open(&runtime, options).map_err(|error| error.to_string())
    };
    let first = open("/a", &["/shared"]).expect("takes it");
    assert!(open("/bb", &["/shared"]).err().expect("locked").contains("another process uses it"));
    drop(first);
    assert!(open("/bb", &["/shared"]).err().expect("owned").contains("it belongs to the node"));
    assert!(open("/a", &["/shared"]).is_ok());
    disk.create_dir_all(Path::new("/full/of/things")).expect("made");
    let refused = open("/a", &["/full"]).err().expect("not empty");
    assert!(refused.contains("it belongs to no node and is not empty: there is of"), "{refused}");
}

#[test]
fn best_effort_flushes_to_the_other_directory_when_one_fails() {
    let disk = MemoryDisk::new();
    let options = StorageOptions { disk_failure_policy: DiskFailurePolicy::BestEffort, ..on_two_disks(1) };
    run(async {
        let node = Node::start(&disk, options.clone()).expect("starts");
        node.write(1, insert(&table(), 1, 0, "v", 1)).await.expect("writes");
        disk.faults().fail_nth(Some(Operation::Create), 0, Fault::InputOutput);
        assert!(node.shard(0).flush(table().id()).await.is_err());
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!((data_count(&disk, "/one"), data_count(&disk, "/two")), (0, 1), "tried again elsewhere");
        let health = Arc::clone(node.shards.handles()[0].shards().health());
        assert_eq!(health.demand().get(), Demand::Serve);
        let writable: Vec<bool> =
            health.directories().iter().map(|directory| directory.is_writable).collect();
        assert_eq!(writable, [false, true]);
        assert_eq!(node.all(&table(), 10).await.len(), 1);
    });
}

/// A disk that was not mounted, or was replaced by an empty one.
#[test]
fn a_directory_that_is_gone_is_answered_by_the_policy() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, on_two_disks(2)).expect("starts");
        fill(&node, 0).await;
        node.shards.stop(true).await.expect("stops");
    });
    disk.remove_dir_all(Path::new("/two")).expect("removed");
    for (policy, is_served) in [
        (DiskFailurePolicy::Stop, false),
        (DiskFailurePolicy::BestEffort, true),
        (DiskFailurePolicy::Die, false),
    ] {
        let disk = disk.kill();
        run(async {
            let options = StorageOptions { disk_failure_policy: policy, ..on_two_disks(2) };
            let node = match Node::start(&disk, options) {
                Ok(node) => node,
                Err(error) => return assert_eq!(policy, DiskFailurePolicy::Die, "{error}"),
            };
            let lost = (0..40).find(|pk| std::rc::Rc::ptr_eq(node.owner(*pk), node.shard(1))).expect("a key");
            let kept = (0..40).find(|pk| std::rc::Rc::ptr_eq(node.owner(*pk), node.shard(0))).expect("a key");
            let of = |pk| command(&table(), ReadTarget::Keys(vec![key(pk)]));
            assert_eq!(node.shard(1).read(&of(lost)).await.is_ok(), is_served, "{policy:?}");
            // Each partition lies in one directory as a whole.
            let page = node.shard(0).read(&of(kept)).await.expect("of the other disk");
            assert_eq!(page.partitions.len(), 1);
        });
    }
}
