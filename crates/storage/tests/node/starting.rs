//! What when a shard can not start?

use std::sync::Arc;

use runtime::{MemoryDisk, Runtime};
use storage::{Directory, RunningShards, ShardHandle, StorageError, StorageOptions};

use crate::given::*;

/// Starts shards on threads of their own, and tells what came of it and whether the directory is free.
fn start(options: StorageOptions, body: fn(ShardHandle)) -> (Result<RunningShards, StorageError>, bool) {
    let runtime = Runtime::in_memory(Arc::new(MemoryDisk::new()), 1);
    let recovered =
        Directory::open(&runtime, options.clone()).expect("opens").recover(&schema()).expect("recovers");
    let started = recovered.start(&schema(), move |handle| {
        body(handle);
        async {}
    });
    let is_free = Directory::open(&runtime, options).is_ok();
    (started, is_free)
}

/// Two nodes in one directory would write over each other's manifests.
#[test]
fn a_directory_that_another_process_has_locked_is_refused_in_words() {
    let runtime = Runtime::in_memory(Arc::new(MemoryDisk::new()), 1);
    let first = Directory::open(&runtime, options(1)).expect("opens");
    let refused = Directory::open(&runtime, options(1)).err().expect("one node per directory").to_string();
    let words = "data directory /node can not be used: another process uses it (lock /node: ";
    assert!(refused.starts_with(words), "{refused}");
    drop(first);
    assert!(Directory::open(&runtime, options(1)).is_ok());
}

/// A database was once begun among the files of a home directory.
#[test]
fn a_node_does_not_begin_among_files_of_others() {
    use runtime::{Disk, OpenMode};
    let disk = MemoryDisk::new();
    let root = std::path::Path::new("/node");
    for harmless in ["lost+found", "manifest"] {
        disk.create_dir_all(&root.join(harmless)).expect("makes");
    }
    disk.open(&root.join("thesis.tex"), OpenMode::CreateNew).expect("writes");
    let runtime = Runtime::in_memory(Arc::new(disk.clone()), 1);
    let refused = Directory::open(&runtime, options(1)).err().expect("not ours").to_string();
    let words = "data directory /node can not be used: it is no node's and not empty: there is thesis.tex; \
                 a new node begins in an empty one";
    assert_eq!(refused, words);
    assert!(!disk.exists(&root.join("node.json")).expect("asked"));
    disk.remove_file(&root.join("thesis.tex")).expect("removes");
    drop(Directory::open(&runtime, options(1)).expect("begins"));
    disk.open(&root.join("notes"), OpenMode::CreateNew).expect("writes");
    assert!(Directory::open(&runtime, options(1)).is_ok(), "a node that is there minds nothing");
}

/// A downgrade must say what it is, not that files are missing or damaged.
#[test]
fn what_a_newer_version_wrote_is_refused_in_words() {
    use runtime::{Disk, OpenMode};
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        node.write(1, insert(&table(), 1, 0, "v", 1)).await.expect("writes");
        node.shard(0).flush(table().id()).await.expect("flushes");
        node.shards.stop(true).await.expect("stops");
    });
    let newer_state = disk.kill();
    let facts = std::path::Path::new("/node/node.json");
    let text = String::from_utf8(newer_state.read(facts).expect("a file")).expect("text");
    let newer = text.replacen("peristyle state 1 ", "peristyle state 2 ", 1);
    newer_state
        .open(facts, OpenMode::ReadWrite)
        .and_then(|file| file.write_all_at(newer.as_bytes(), 0))
        .expect("writes");
    let refused = run(async { Node::start(&newer_state, options(1)).err() }).expect("no start").to_string();
    assert!(
        refused.contains("node.json can not be used: it is of version 2, this program reads"),
        "{refused}"
    );

    let directory = format!("/node/data/k/t-{}", table().id().0.simple());
    for entry in disk.list(std::path::Path::new(&directory)).expect("files") {
        let path = |name: &str| std::path::PathBuf::from(format!("{directory}/{name}"));
        disk.rename(&path(&entry.name), &path(&entry.name.replacen("da-", "dz-", 1))).expect("renames");
    }
    run(async {
        let node = Node::start(&disk, options(1)).expect("other tables are served");
        let read = command(&table(), read::ReadTarget::Keys(vec![key(1)]));
        let refused = node.shard(0).read(&read).await.expect_err("not read").to_string();
        assert!(refused.contains("version dz of the format bti is newer than da"), "{refused}");
    });
    assert!(disk.list(std::path::Path::new(&directory)).expect("files").len() > 5, "nothing is swept up");
}

/// The start waited for the word of a shard that was dead.
#[test]
fn a_shard_that_panics_while_it_starts_ends_the_start() {
    for shard_count in [1, 3] {
        let (started, is_free) =
            start(options(shard_count), |handle| assert!(handle.local().index() > 0, "a panic on purpose"));
        let error = started.err().expect("no start");
        assert!(matches!(error, StorageError::DiedStarting { shard: 0 }), "{error}");
        assert!(is_free, "the other shards have ended and let go of the directory");
    }
}

#[test]
fn a_shard_that_can_not_open_its_log_ends_the_start() {
    let (started, is_free) = start(StorageOptions { segment_bytes: 1, ..options(2) }, |_| {});
    let error = started.err().expect("no start").to_string();
    assert!(error.contains("segment size of 1 bytes"), "{error}");
    assert!(is_free);
}

#[test]
fn shards_that_start_are_served_until_they_are_stopped() {
    let (started, is_free) = start(options(2), |_| {});
    let running = started.expect("starts");
    assert!(!is_free);
    run(async move { running.stop(true).await.expect("stops") });
}
