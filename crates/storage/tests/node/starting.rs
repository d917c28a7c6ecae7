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
