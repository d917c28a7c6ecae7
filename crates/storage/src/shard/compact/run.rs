//! How one compaction is carried out.
//!
//! 1. Inputs that hold nothing any more go without being read.
//! 2. The others are merged, piece by piece, at the rate that compaction may take of the disk; when clients wait for
//!    the disk, they go first.
//! 3. The manifest names the result instead of the inputs, in one step; then the inputs are deleted.
//!
//! The result is thrown away when an input is gone by then (truncation, drop).

use std::rc::Rc;
use std::sync::Arc;

use cache::Reservation;
use compaction::{
    Ahead, CompactionKind, CompactionRecord, FileFacts, Merge, MergeJob, MergeWatch, Merged, Progress,
    Settings, Task, fully_expired,
};
use sstable::{
    ChunkId, Component, Descriptor, KeptRoom, SstableError, StatisticsChange, TableFile, change_statistics,
};
use uuid::Uuid;

use super::{Claim, oldest_in_memory, properties};
use crate::StorageError;
use crate::shard::commit::{FileChange, Removed, ids};
use crate::shard::fetch::PATIENCE_OF_MERGES;
use crate::shard::{Shard, TableStore};

/// A merge is looked at after so many bytes: others that wait for the same thread take turns with it.
const PIECE_BYTES: u64 = 1 << 20;

/// A compaction that goes on.
pub(super) struct Active {
    pub(super) id: Uuid,
    pub(super) kind: CompactionKind,
    pub(super) store: Rc<TableStore>,
    pub(super) total_bytes: u64,
    pub(super) total_compressed_bytes: u64,
    pub(super) file_count: u64,
    pub(super) watch: Arc<MergeWatch>,
}

/// Is in the shard's list as long as it lives.
struct Listed<'a> {
    shard: &'a Shard,
    active: Rc<Active>,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let id = self.active.id;
        self.shard.compactions.active.borrow_mut().retain(|other| other.id != id);
    }
}

/// How a compaction ended.
pub(super) enum Outcome {
    /// It is done, or was of no use any more.
    Done,
    /// Somebody stopped it; the inputs stay.
    Stopped,
}

/// What the cache does for a merge. It hands out the chunks it has before the merge comes to them, so that they
/// need not be read and decompressed again. And one that nobody asked for goes then: what it takes becomes
/// room for the result. So a table that was in memory still is when its files have become one.
struct Handing {
    spare: Reservation,
    room: KeptRoom,
    inputs: Vec<HandedInput>,
    ahead: Arc<[Ahead]>,
}

struct HandedInput {
    file: u64,
    /// The first chunk that was not looked for.
    next: u32,
    chunk_count: u32,
    /// How many chunks are looked for ahead of the one that is being read.
    window: u32,
}

impl Handing {
    fn new(spare: Reservation, job: &MergeJob) -> Self {
        let piece_bytes = 2 * PIECE_BYTES as usize / job.inputs.len().max(1);
        let input = |(file, _): &(Arc<TableFile>, _)| HandedInput {
            file: file.number(),
            next: 0,
            chunk_count: file.chunk_count(Component::Data),
            window: 2 + u32::try_from(piece_bytes / file.chunk_bytes(Component::Data).max(1)).unwrap_or(0),
        };
        let inputs = job.inputs.iter().map(input).collect();
        Handing { spare, room: job.kept_room.clone(), inputs, ahead: Arc::clone(&job.ahead) }
    }

    /// Hands out what is there of the chunks that come next.
    fn go_on(&mut self) {
        for (input, ahead) in self.inputs.iter_mut().zip(&*self.ahead) {
            let reached = ahead.reached();
            let end = reached.saturating_add(input.window).min(input.chunk_count);
            for index in input.next.max(reached)..end {
                let id = ChunkId { file: input.file, component: Component::Data, index };
                if let Some(chunk) = self.spare.hand_out(id) {
                    ahead.give(index, chunk);
                }
            }
            input.next = input.next.max(end);
        }
        self.room.add(self.spare.take_over());
    }
}

impl Shard {
    /// Carries a task out.
    pub(super) async fn carry_out(self: &Rc<Self>, claim: &Claim) -> Result<Outcome, StorageError> {
        let result = self.runtime.failsafe.guarded("a compaction", self.replace_inputs(claim)).await;
        let is_aborted = !matches!(result, Ok(Outcome::Done) | Err(StorageError::ShuttingDown));
        if is_aborted {
            self.compactions.totals.borrow_mut().aborted += 1;
        }
        if let Err(error) = &result {
            self.note_fault("compaction", error);
            if let StorageError::TableFile(error) = error {
                suspect(&claim.store, error);
            }
            if self.health.answers_from_the_rest() {
                self.leave_out(&claim.store, error);
            }
        }
        result
    }

    /// Has the inputs of a task replaced by what they come to.
    async fn replace_inputs(self: &Rc<Self>, claim: &Claim) -> Result<Outcome, StorageError> {
        let store = &claim.store;
        let mut task = claim.task.clone();
        let _at_work = store.compact_turn.share().await;
        let files = store.files();
        let is_input = |file: &&Arc<TableFile>| task.inputs.contains(&file.descriptor().id);
        let mut inputs: Vec<Arc<TableFile>> = files.iter().filter(is_input).cloned().collect();
        let settings = Settings::of(&store.table().options().compaction);
        let (expired, mut to_merge) = match task.keeps_tombstones() {
            true => (Vec::new(), inputs.clone()),
            false => self.without_expired(store, inputs.clone(), settings.only_purge_repaired),
        };
        if let ([file], true, true) = (to_merge.as_slice(), expired.is_empty(), task.is_move)
            && self.owns_all(file)
        {
            return self.move_level(store, file, task.level).await.map(|()| Outcome::Done);
        }
        let left_out = self.fit_to_disk(store, &task, &mut to_merge).await?;
        self.note_reduced(&task, &left_out);
        inputs.retain(|file| !left_out.iter().any(|out| Arc::ptr_eq(out, file)));
        task.inputs = ids(&inputs);
        assert_eq!(
            inputs.len(),
            to_merge.len() + expired.len(),
            "an input that goes is merged, or holds nothing any more"
        );
        let uncompressed_bytes = to_merge.iter().map(|file| file.summary().uncompressed_bytes).sum::<u64>();
        let spare = self.spare_for(usize::try_from(uncompressed_bytes).unwrap_or(usize::MAX));
        let job = self.job(store, &task, &settings, &to_merge, spare.bytes())?;
        let compression = job.compression.clone();
        let mut handing = Handing::new(spare, &job);
        let active = self.list(claim, &job);
        let Some(merged) = self.merge(store, job, &active.active, &mut handing).await? else {
            return Ok(Outcome::Stopped);
        };
        let outputs = &merged.files;
        if task.keeps_tombstones() {
            store.compacting.rewriting.check(outputs, &compression);
        }
        let change = FileChange {
            added: outputs.clone(),
            removed: Removed::These(task.inputs.clone()),
            flushed: None,
        };
        let Some(gone) = self.commit_new(store, change).await? else { return Ok(Outcome::Done) };
        self.note_done(&task, &active.active, &inputs, expired.len() as u64, &merged);
        drop(active);
        self.delete_files(&gone).await;
        self.cache_written(handing.spare, outputs).await;
        self.write_history().await;
        Ok(Outcome::Done)
    }

    /// Counts a compaction that goes without some of its inputs, for want of room.
    fn note_reduced(&self, task: &Task, left_out: &[Arc<TableFile>]) {
        if left_out.is_empty() {
            return;
        }
        let (file_count, left_out_bytes) = (left_out.len(), data_bytes(left_out));
        tracing::warn!(
            inputs = task.inputs.len(),
            file_count,
            left_out_bytes,
            "a compaction goes without its largest inputs: there is no room on the disk for all"
        );
        let mut totals = self.compactions.totals.borrow_mut();
        totals.reduced += 1;
        totals.left_out_files += file_count as u64;
    }

    /// Counts a compaction that has replaced its inputs, and puts it into the history.
    fn note_done(
        &self,
        task: &Task,
        active: &Active,
        inputs: &[Arc<TableFile>],
        expired_count: u64,
        merged: &Merged,
    ) {
        let table = active.store.table();
        self.compactions.history.borrow_mut().push(CompactionRecord {
            id: active.id,
            keyspace: table.keyspace().to_owned(),
            table: table.name().to_owned(),
            finished_ms: self.runtime.clock.now_micros() / 1_000,
            bytes_in: data_bytes(inputs),
            bytes_out: data_bytes(&merged.files),
            rows_merged: merged.partitions.clone(),
            properties: properties(task),
        });
        let mut totals = self.compactions.totals.borrow_mut();
        totals.completed += 1;
        totals.bytes += active.total_bytes;
        totals.compressed_bytes += active.total_compressed_bytes;
        totals.dropped_files += expired_count;
    }

    /// Splits the inputs into those that hold nothing any more and those that must be merged.
    fn without_expired(
        &self,
        store: &TableStore,
        inputs: Vec<Arc<TableFile>>,
        only_purge_repaired: bool,
    ) -> (Vec<Arc<TableFile>>, Vec<Arc<TableFile>>) {
        let facts = self.facts(store);
        let inside: Vec<&FileFacts> =
            facts.iter().filter(|facts| inputs.iter().any(|file| file.descriptor().id == facts.id)).collect();
        let expired: Vec<Uuid> = fully_expired(&inside, self.picture(store, &facts), only_purge_repaired)
            .iter()
            .map(|facts| facts.id)
            .collect();
        inputs.into_iter().partition(|file| expired.contains(&file.descriptor().id))
    }

    fn job(
        &self,
        store: &TableStore,
        task: &Task,
        settings: &Settings,
        merged: &[Arc<TableFile>],
        kept_bytes: usize,
    ) -> Result<MergeJob, StorageError> {
        let table = store.table();
        let files = store.files();
        let others = files.iter().filter(|file| !task.inputs.contains(&file.descriptor().id)).cloned();
        let is_repaired = merged.iter().all(|file| file.summary().repaired_at != 0);
        let keeps_all = task.keeps_tombstones() || settings.only_purge_repaired && !is_repaired;
        Ok(MergeJob {
            disk: Arc::clone(&self.runtime.disk),
            random: Arc::clone(&self.runtime.random),
            clock: Arc::clone(&self.runtime.clock),
            directory: self.table_directory(&table)?,
            inputs: merged.iter().map(|file| (Arc::clone(file), store.scopes_of(file))).collect(),
            input_bytes: self.merge_bytes / merged.len().max(1),
            level: task.level,
            split: task.split,
            others: others.collect(),
            memtable_timestamp_min: oldest_in_memory(store),
            now: self.now_seconds(),
            gc_before: if keeps_all { 0 } else { self.gc_before(store) },
            sharding: self.sharding,
            shard: self.index,
            watch: Arc::default(),
            kept_room: KeptRoom::new(kept_bytes),
            ahead: merged.iter().map(|_| Ahead::default()).collect(),
            compression: store.compression(),
            plants: self.runtime.plants.clone(),
            table,
        })
    }

    fn list<'a>(&'a self, claim: &Claim, job: &MergeJob) -> Listed<'a> {
        let sum = |of: fn(&sstable::TableSummary) -> u64| -> u64 {
            job.inputs.iter().map(|(file, _)| of(file.summary())).sum()
        };
        let active = Rc::new(Active {
            id: self.runtime.random.uuid_v1(&*self.runtime.clock),
            kind: claim.task.kind,
            store: Rc::clone(&claim.store),
            total_bytes: sum(|summary| summary.uncompressed_bytes),
            total_compressed_bytes: sum(|summary| summary.data_file_bytes),
            file_count: job.inputs.len() as u64,
            watch: Arc::clone(&job.watch),
        });
        self.compactions.active.borrow_mut().push(Rc::clone(&active));
        Listed { shard: self, active }
    }

    /// Drives a merge at the rate that compaction may take. `None` when somebody stopped it.
    async fn merge(
        &self,
        store: &TableStore,
        job: MergeJob,
        active: &Active,
        handing: &mut Handing,
    ) -> Result<Option<Merged>, StorageError> {
        if job.inputs.is_empty() {
            return Ok(Some(Merged { files: Vec::new(), partitions: Default::default() }));
        }
        let ratio = active.total_compressed_bytes as f64 / active.total_bytes.max(1) as f64;
        let mut merge = self.run_vital("a compaction", move || Merge::start(job)).await?;
        let mut paid_bytes = 0;
        loop {
            handing.go_on();
            let progress = self.run_vital("a compaction", move || merge.advance(PIECE_BYTES));
            let Progress::Going(going) = (match progress.await?? {
                Progress::Done(merged) => return Ok(Some(merged)),
                going => going,
            }) else {
                return Ok(None);
            };
            let is_over =
                || store.is_dropped.get() || self.check_open().is_err() || active.watch.is_stopped();
            if is_over() {
                self.runtime.io.run(move || going.abandon()).await;
                return if active.watch.is_stopped() { Ok(None) } else { Err(StorageError::ShuttingDown) };
            }
            merge = going;
            let read_bytes = active.watch.read_bytes();
            let bytes = ((read_bytes - paid_bytes) as f64 * ratio) as u64;
            paid_bytes = read_bytes;
            self.compactions.control.pay(bytes, &*self.runtime.clock, is_over).await;
            self.fetcher.let_reads_go_first(PATIENCE_OF_MERGES).await;
        }
    }

    /// Puts a file into another level without writing it again: its statistics alone change.
    async fn move_level(
        &self,
        store: &TableStore,
        file: &Arc<TableFile>,
        level: u32,
    ) -> Result<(), StorageError> {
        let (disk, table) = (Arc::clone(&self.runtime.disk), store.table());
        let descriptor: Descriptor = file.descriptor().clone();
        let change = StatisticsChange { level: Some(level), ..StatisticsChange::default() };
        let change_and_open = move || -> Result<Arc<TableFile>, SstableError> {
            change_statistics(&*disk, &descriptor, change)?;
            TableFile::open(disk, descriptor, &table)
        };
        let moved = self.runtime.io.run(change_and_open).await?;
        // Nobody else changes the table's files meanwhile.
        let manifest = self.manifest.lock().await;
        let files = store.files();
        let swap = |other: &Arc<TableFile>| Arc::clone(if Arc::ptr_eq(other, file) { &moved } else { other });
        let files: Vec<_> = files.iter().map(swap).collect();
        *store.files.borrow_mut() = Rc::new(files);
        drop(manifest);
        self.cache.forget(&[file.number()]);
        Ok(())
    }
}

/// A file that was found damaged is compacted no more: it would fail again and again.
fn suspect(store: &TableStore, error: &SstableError) {
    let path = match error {
        SstableError::Damaged { path, .. } | SstableError::Checksum { path, .. } => path,
        _ => return,
    };
    if let Ok((descriptor, _)) = Descriptor::from_path(path) {
        tracing::warn!(id = %descriptor.id, "a damaged table file is not compacted any more");
        store.compacting.suspects.borrow_mut().insert(descriptor.id);
    }
}

fn data_bytes(files: &[Arc<TableFile>]) -> u64 {
    files.iter().map(|file| file.summary().data_file_bytes).sum()
}
