//! A node in a machine: started as the server starts one, all shards as tasks of one thread.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use cluster::{MetadataError, MetadataLog};
use coordinator::{Coordinator, CoordinatorError, Node};
use ring::Sharding;
use runtime::Runtime;
use storage::{Directory, LocalShards, Shard, StorageError, StorageOptions, SyncMode};

use crate::dice::Dice;
use crate::world;

/// Where the node keeps its data on the machine's disk.
const DIRECTORY: &str = "/peristyle";

/// How the node is set up in one life.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) shard_count: u16,
    memtable_bytes: usize,
    cache_bytes: usize,
    cache_borrows: bool,
    segment_bytes: u32,
    sync: SyncMode,
    data_directories: Vec<PathBuf>,
    auto_snapshot: bool,
}

impl Setup {
    /// Small, so that everything happens often.
    pub(crate) fn roll(dice: &Dice) -> Setup {
        let syncs = [
            SyncMode::Group { window: Duration::ZERO },
            SyncMode::Group { window: Duration::from_millis(3) },
            SyncMode::Batch,
        ];
        Setup {
            shard_count: *dice.pick(&[1, 2, 2, 3, 4]),
            memtable_bytes: dice.between(100_000, 1_500_000) as usize,
            cache_bytes: *dice.pick(&[0, 20_000, 200_000, 4_000_000]),
            cache_borrows: *dice.pick(&[false, true]),
            segment_bytes: *dice.pick(&[256 << 10, 512 << 10, 1 << 20]),
            sync: *dice.pick(&syncs),
            data_directories: Vec::new(),
            auto_snapshot: false,
        }
    }

    /// A third of all nodes have several directories of table files, and the same in all lives; a
    /// quarter keeps what is truncated and dropped.
    pub(crate) fn on_disks_of(self, seed: u64) -> Setup {
        let data_directories = match seed % 3 {
            0 => vec!["/first".into(), "/second".into()],
            _ => Vec::new(),
        };
        Setup { data_directories, auto_snapshot: seed.is_multiple_of(4), ..self }
    }

    fn options(&self) -> StorageOptions {
        StorageOptions {
            sync: self.sync,
            segment_bytes: self.segment_bytes,
            memtable_bytes: self.memtable_bytes,
            cache_bytes: self.cache_bytes,
            cache_borrows: self.cache_borrows,
            log_bytes: 0,
            data_directories: self.data_directories.clone(),
            auto_snapshot: self.auto_snapshot,
            ..StorageOptions::new(DIRECTORY, self.shard_count, 1 << 20)
        }
    }

    /// Which shard owns what in this life.
    pub(crate) fn sharding(&self) -> Sharding {
        Sharding::new(self.shard_count, Sharding::IGNORE_MSB).expect("shard counts are small and not 0")
    }
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("{0}")]
    Storage(#[from] StorageError),
    #[error("{0}")]
    Metadata(#[from] MetadataError),
    #[error("{0}")]
    Coordinator(#[from] CoordinatorError),
}

/// Where work on a shard is done from: reads and writes by its coordinator, flushes and compactions by itself.
pub(crate) struct Seat {
    pub(crate) coordinator: Coordinator,
    pub(crate) shard: Rc<Shard>,
}

/// A node that serves.
pub(crate) struct SimulatedNode {
    shards: LocalShards,
    node: Node,
}

impl SimulatedNode {
    /// Starts a node on the machine's disk, recovery and all. Gives how many batches it finished.
    pub(crate) async fn start(runtime: &Runtime, setup: &Setup) -> Result<(SimulatedNode, u64), StartError> {
        let directory = Directory::open(runtime, setup.options())?;
        let log = directory.layout().schema_log();
        let metadata = MetadataLog::open(&runtime.disk, &log, world::base_schema())?;
        let schema = metadata.schema().clone();
        let shards = directory.recover(&schema)?.start_local(&schema)?;
        let node = SimulatedNode { shards, node: Node::new(metadata) };
        let batch_count = node.coordinator(0).replay_batches().await?;
        node.coordinator(0).finish_truncation().await?;
        for handle in node.shards.handles() {
            handle.local().start_prefetch();
        }
        Ok((node, batch_count))
    }

    /// The coordinator of a shard.
    pub(crate) fn coordinator(&self, shard: usize) -> Coordinator {
        self.seat(shard).coordinator
    }

    /// Where work on a shard is done from.
    pub(crate) fn seat(&self, shard: usize) -> Seat {
        let handles = self.shards.handles();
        let handle = handles[shard % handles.len()].clone();
        let shard = Rc::clone(handle.local());
        Seat { coordinator: Coordinator::new(self.node.clone(), handle), shard }
    }

    /// Stops as a node that was told to.
    pub(crate) async fn stop(self, flush_first: bool) -> Result<(), StorageError> {
        self.shards.stop(flush_first).await
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
