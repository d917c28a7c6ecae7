//! How files become fewer.
//!
//! The strategy chooses (pure, `crate::compaction`), a background job merges (`merge.rs`), the shard
//! commits and swaps. The result is thrown away when an input is gone by then (truncation, drop).

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use runtime::Stopped;
use schema::TableId;
use sstable::{Descriptor, TableFile};

use super::flush::{FileChange, Removed, ids};
use super::merge::{Merge, MergeJob, Progress};
use super::{Shard, TableStore};
use crate::StorageError;
use crate::compaction::{FileFacts, SizeTiered};
use crate::memtable::Memtable;

/// A merge is looked at after so many bytes.
const PIECE_BYTES: u64 = 4 << 20;

impl Shard {
    /// Merges all files of a table into one and waits for it (`nodetool compact`).
    ///
    /// # Errors
    /// A file is damaged or the disk failed; the inputs stay.
    pub async fn compact(self: &Rc<Self>, table: TableId) -> Result<(), StorageError> {
        let store = self.store(table)?;
        let _turn = store.compact_turn.lock().await;
        let files = store.files();
        let foreign = |file: &Arc<TableFile>| !self.owns_all(file);
        if files.len() > 1
            || files.iter().any(foreign)
            || files.iter().any(|file| self.has_garbage(&store, file))
        {
            self.compact_files(&store, files.to_vec()).await?;
        }
        Ok(())
    }

    /// Starts compactions of a table in the background, as long as its strategy asks for one.
    pub(super) fn start_compaction(self: &Rc<Self>, store: &Rc<TableStore>) {
        if store.is_compacting.replace(true) {
            return;
        }
        let (shard, store) = (Rc::clone(self), Rc::clone(store));
        tokio::task::spawn_local(async move {
            let compacted = shard.compact_while_due(&store).await;
            if let Err(error) = compacted
                && !matches!(error, StorageError::ShuttingDown)
            {
                let table = store.table();
                tracing::error!(keyspace = table.keyspace(), table = table.name(), %error, "compaction failed");
            }
            store.is_compacting.set(false);
        });
    }

    async fn compact_while_due(self: &Rc<Self>, store: &Rc<TableStore>) -> Result<(), StorageError> {
        while !store.is_dropped.get() && !self.is_stopping.get() {
            let _turn = store.compact_turn.lock().await;
            let table = store.table();
            let Some(strategy) = SizeTiered::from_options(&table.options().compaction) else { return Ok(()) };
            let files = store.files();
            let facts: Vec<FileFacts> = files.iter().map(|file| FileFacts::of(file.summary())).collect();
            let Some(chosen) = strategy.choose(&facts) else { return Ok(()) };
            let inputs: Vec<_> = chosen.into_iter().map(|index| Arc::clone(&files[index])).collect();
            self.compact_files(store, inputs).await?;
        }
        Ok(())
    }

    async fn compact_files(
        self: &Rc<Self>,
        store: &Rc<TableStore>,
        inputs: Vec<Arc<TableFile>>,
    ) -> Result<(), StorageError> {
        let table = store.table();
        let id = self.runtime.random.uuid_v1(&*self.runtime.clock);
        let others = store
            .files()
            .iter()
            .filter(|file| !ids(&inputs).contains(&file.descriptor().id))
            .cloned()
            .collect();
        let memtable_timestamp_min = store
            .memtables()
            .iter()
            .filter(|slot| !slot.with(Memtable::is_empty))
            .map(|slot| slot.with(|memtable| memtable.encoding_stats().min_timestamp))
            .min();
        let job = MergeJob {
            disk: Arc::clone(&self.runtime.disk),
            descriptor: Descriptor::new(self.layout.table(&table), id),
            table: Arc::clone(&table),
            inputs: inputs.iter().map(|file| (Arc::clone(file), store.scopes_of(file))).collect(),
            others,
            memtable_timestamp_min,
            now: self.now_seconds(),
            sharding: self.sharding,
            shard: self.index,
        };
        let output = self.merge(store, job).await?;
        let change = FileChange {
            added: output.iter().cloned().collect(),
            removed: Removed::These(ids(&inputs)),
            flushed: None,
        };
        match self.commit(store, change).await? {
            Some(inputs) => self.delete_files(&inputs).await,
            // Truncated or dropped meanwhile: the result holds what should be gone.
            None => self.delete_files(output.as_slice()).await,
        }
        Ok(())
    }

    /// Drives a merge at the rate that compaction may take. `None` when nothing is left of the
    /// inputs, or when the merge was given up because the shard stops or the table is gone.
    async fn merge(&self, store: &TableStore, job: MergeJob) -> Result<Option<Arc<TableFile>>, StorageError> {
        let background = &self.runtime.background;
        let stopped = |Stopped| StorageError::ShuttingDown;
        let mut merge = background.run("compaction", move || Merge::start(job)).await.map_err(stopped)??;
        let started = self.runtime.clock.elapsed();
        loop {
            let progress = background.run("compaction", move || merge.advance(PIECE_BYTES));
            match progress.await.map_err(stopped)?? {
                Progress::Done(output) => return Ok(output),
                Progress::Going(going, _) if store.is_dropped.get() || self.is_stopping.get() => {
                    self.runtime.io.run(move || going.abandon()).await;
                    return Err(StorageError::ShuttingDown);
                }
                Progress::Going(going, written_bytes) => {
                    merge = going;
                    tokio::time::sleep(self.compaction_debt(started, written_bytes)).await;
                }
            }
        }
    }

    /// How long a merge must wait to keep to its rate.
    fn compaction_debt(&self, started: Duration, written_bytes: u64) -> Duration {
        let shard_count = self.sharding.shard_count() as u64;
        let rate = self.options.compaction_bytes_per_second / shard_count;
        if rate == 0 {
            return Duration::ZERO;
        }
        let due = Duration::from_secs_f64(written_bytes as f64 / rate as f64);
        due.saturating_sub(self.runtime.clock.elapsed().saturating_sub(started))
    }

    /// Seconds since 1970.
    pub fn now_seconds(&self) -> u32 {
        u32::try_from(self.runtime.clock.now_seconds().max(0)).unwrap_or(u32::MAX - 1)
    }

    fn owns_all(&self, file: &TableFile) -> bool {
        // Shards interleave: only a lone shard owns a whole run of the ring.
        self.sharding.shard_count() == 1
            || file.summary().partition_count == 0
            || !self.registry.is_shared(file.descriptor().id)
    }

    fn has_garbage(&self, store: &TableStore, file: &TableFile) -> bool {
        let gc_before = self.now_seconds().saturating_sub(store.table().options().gc_grace_seconds);
        file.summary().droppable_tombstone_ratio(gc_before) > 0.0
    }
}
