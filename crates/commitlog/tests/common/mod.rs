//! What the tests of the log share: a runtime in virtual time over a memory disk.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use commitlog::{CommitLog, CommitLogError, CommitLogOptions, Replayed, SyncMode, TornTail, replay};
use runtime::{
    Background, Disk, Failsafe, Io, MemoryDisk, Network, Plants, Runtime, SeededRandom, VirtualClock,
};

pub(crate) const DIRECTORY: &str = "/data/commitlog";

/// Of segments that a few records fill.
pub(crate) const SMALL: CommitLogOptions = CommitLogOptions {
    segment_bytes: 4096,
    sync: SyncMode::Group { window: Duration::ZERO },
    segment_above: 0,
    goes_on_after_failure: false,
    spare_segments_max: 2,
    pending_bytes_max: 16 << 20,
};

pub(crate) fn open(disk: &MemoryDisk, stream: u32, options: CommitLogOptions) -> CommitLog {
    CommitLog::open(&runtime_over(disk), Path::new(DIRECTORY), stream, options).expect("open")
}

/// Runs `body` in paused time on one thread. Whatever tasks are left die with it, as in a crash.
pub(crate) fn in_virtual_time<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("runtime");
    tokio::task::LocalSet::new().block_on(&runtime, body)
}

/// A runtime whose disk answers after 3 ms of virtual time.
pub(crate) fn runtime_over(disk: &MemoryDisk) -> Runtime {
    Runtime {
        disk: Arc::new(disk.clone()),
        network: Network::None,
        clock: Arc::new(VirtualClock::new(0)),
        random: Arc::new(SeededRandom::new(1)),
        background: Background::inline(),
        io: Io::delayed(Duration::from_millis(3)),
        failsafe: Failsafe::default(),
        plants: Plants::default(),
    }
}

/// Everything a replay of the disk gives.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) records: Vec<Replayed>,
    pub(crate) errors: Vec<CommitLogError>,
    pub(crate) torn: Vec<TornTail>,
}

pub(crate) fn read_all(disk: &MemoryDisk) -> Found {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut found = Found::default();
    let mut replay = replay(&disk, Path::new(DIRECTORY)).expect("list");
    for item in &mut replay {
        match item {
            Ok(record) => found.records.push(record),
            Err(error) => found.errors.push(error),
        }
    }
    found.torn = replay.torn_tails().to_vec();
    found
}
