//! Shards that run, and how they are stopped.

use std::rc::Rc;

use runtime::{DirectoryLock, Runtime, ShardThreads};
use table::TableError;

use crate::StorageError;
use crate::reach::{ShardHandle, Shards};
use crate::shard::Shard;

/// Shards on threads of their own.
pub struct RunningShards {
    pub(super) shards: Shards,
    pub(super) threads: Option<ShardThreads>,
    pub(super) runtime: Runtime,
    pub(super) _locks: Vec<DirectoryLock>,
}

impl RunningShards {
    /// Where to send work.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Has a shard ended although nobody told it to?
    pub fn any_finished(&self) -> bool {
        self.threads.as_ref().is_some_and(ShardThreads::any_finished)
    }

    /// Makes everything durable and ends the threads. With `flush_first` memtables are written
    /// out, so that the next start has nothing to replay. Call it outside the shards' threads.
    ///
    /// # Errors
    /// A shard could not flush or close its log; the others were stopped all the same.
    pub async fn stop(mut self, flush_first: bool) -> Result<(), StorageError> {
        let mut result = Ok(());
        for shard in 0..self.shards.count() {
            let stop = move |shard: Rc<Shard>| async move { shard.stop(flush_first).await };
            let stopped = self.shards.on_when_free(shard, stop).await;
            result = result.and(stopped.and_then(|stopped| stopped));
        }
        self.shards.exit().await;
        if let Some(threads) = self.threads.take() {
            let joined =
                threads.join().map_err(|source| TableError::Disk { act: "join shard threads", source });
            result = result.and(joined.map_err(StorageError::from));
        }
        self.runtime.stop();
        result
    }
}

/// Shards that are tasks of one thread.
pub struct LocalShards {
    pub(super) handles: Vec<ShardHandle>,
    pub(super) _locks: Vec<DirectoryLock>,
}

impl LocalShards {
    /// Where to send work.
    pub fn shards(&self) -> &Shards {
        self.handles.first().expect("a node has one shard at least").shards()
    }

    /// A handle on each shard.
    pub fn handles(&self) -> &[ShardHandle] {
        &self.handles
    }

    /// Makes everything durable and ends the tasks.
    ///
    /// # Errors
    /// As [`RunningShards::stop`].
    pub async fn stop(self, flush_first: bool) -> Result<(), StorageError> {
        let mut result = Ok(());
        for handle in &self.handles {
            result = result.and(handle.local().stop(flush_first).await);
        }
        self.shards().exit().await;
        result
    }
}
