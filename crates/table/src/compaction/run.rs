//! How one compaction is carried out.
//!
//! 1. Inputs that hold nothing any more go without being read.
//! 2. The others are merged, piece by piece, at the rate that compaction may take of the disk; when clients wait for
//!    the disk, they go first.
//! 3. The manifest names the result instead of the inputs, in one step; then the inputs are deleted.
//!
//! The result is thrown away when an input is gone by then (truncation, drop).

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use cache::Reservation;
use compaction::{Ahead, CompactionRecord, Merge, MergeJob, MergeState, Merged, Settings, Task};
use sstable::{
    ChunkId, Component, Descriptor, KeptRoom, SstableError, StatisticsChange, TableFile, change_statistics,
};
use uuid::Uuid;

use super::room::fit_to_disk;
use super::{Active, Survey};
use crate::TableError;
use crate::commit::ids;
use crate::shared::PATIENCE_OF_MERGES;
use crate::{FileChange, TableStore};

/// A merge is looked at after so many bytes: others that wait for the same thread take turns with it.
const PIECE_BYTES: u64 = 1 << 20;

/// A task, the inputs of which are left to whoever holds this.
pub(super) struct Compaction {
    store: Rc<TableStore>,
    task: Task,
}

/// Is in the shard's list as long as it lives.
struct Listed(Rc<Active>, Rc<TableStore>);

impl Listed {
    fn new(store: &Rc<TableStore>, active: Active) -> Self {
        let active = Rc::new(active);
        store.shared().compactor.list(Rc::clone(&active));
        Listed(active, Rc::clone(store))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.1.shared().compactor.unlist(self.0.id());
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

impl Compaction {
    /// Takes the inputs of a task for it alone.
    pub(super) fn claim(store: &Rc<TableStore>, task: Task) -> Self {
        store.compaction.claim(&task.inputs);
        store.shared().compactor.claim(&store.table());
        Compaction { store: Rc::clone(store), task }
    }

    /// Its input files, by their ids.
    pub(super) fn inputs(&self) -> &[Uuid] {
        &self.task.inputs
    }

    /// Is any of them still there?
    pub(super) fn has_inputs(&self) -> bool {
        !self.input_files().is_empty()
    }

    fn input_files(&self) -> Vec<Arc<TableFile>> {
        let is_input = |file: &&Arc<TableFile>| self.task.inputs.contains(&file.descriptor().id);
        self.store.files().all().iter().filter(is_input).cloned().collect()
    }

    /// Carries it out.
    ///
    /// # Errors
    /// A file is damaged or the disk failed; the inputs stay.
    pub(super) async fn run(&self) -> Result<Outcome, TableError> {
        let (store, shared) = (&self.store, self.store.shared());
        let result = shared.runtime.failsafe.guarded("a compaction", self.replace_inputs()).await;
        let is_aborted = !matches!(result, Ok(Outcome::Done) | Err(TableError::ShuttingDown));
        if is_aborted {
            shared.compactor.note_aborted();
        }
        if let Err(error) = &result {
            shared.note_fault("compaction", error);
            if let TableError::TableFile(error) = error {
                suspect(store, error);
            }
            store.leave_out(error);
        }
        result
    }

    /// Has the inputs replaced by what they come to.
    async fn replace_inputs(&self) -> Result<Outcome, TableError> {
        let (store, shared) = (&self.store, self.store.shared());
        let mut task = self.task.clone();
        let _at_work = store.compaction.write_turn.read().await;
        let mut inputs = self.input_files();
        let (expired, mut to_merge) = match task.keeps_tombstones() {
            true => (Vec::new(), inputs.clone()),
            false => Survey::of(store).without_expired(inputs.clone()),
        };
        if let ([file], true, true) = (to_merge.as_slice(), expired.is_empty(), task.is_move)
            && shared.owns_all(file)
        {
            return move_level(store, file, task.level).await.map(|()| Outcome::Done);
        }
        let left_out = fit_to_disk(store, &task, &mut to_merge).await?;
        self.note_reduced(&left_out);
        inputs.retain(|file| !left_out.iter().any(|out| Arc::ptr_eq(out, file)));
        task.inputs = ids(&inputs);
        assert_eq!(
            inputs.len(),
            to_merge.len() + expired.len(),
            "an input that goes is merged, or holds nothing any more"
        );
        let uncompressed_bytes = to_merge.iter().map(|file| file.summary().uncompressed_bytes).sum::<u64>();
        let spare = shared.spare_for(usize::try_from(uncompressed_bytes).unwrap_or(usize::MAX));
        let job = job(store, &task, &to_merge, spare.bytes())?;
        let compression = job.compression.clone();
        let mut handing = Handing::new(spare, &job);
        let listed = Listed::new(store, Active::new(store, task.kind, &job));
        let Some(merged) = merge(store, job, &listed.0, &mut handing).await? else {
            return Ok(Outcome::Stopped);
        };
        let outputs = &merged.files;
        if task.keeps_tombstones() {
            store.compaction.rewriting().check(outputs, &compression);
        }
        let change = FileChange::replacing(task.inputs.clone(), outputs.clone());
        let Some(gone) = change.commit_new(store).await? else { return Ok(Outcome::Done) };
        self.note_done(&listed.0, &inputs, expired.len() as u64, &merged);
        drop(listed);
        shared.delete_files(&gone).await;
        shared.cache_written(handing.spare, outputs).await;
        shared.compactor.write_history().await;
        Ok(Outcome::Done)
    }

    /// Tells that it goes without some of its inputs, for want of room.
    fn note_reduced(&self, left_out: &[Arc<TableFile>]) {
        if left_out.is_empty() {
            return;
        }
        let (file_count, left_out_bytes) = (left_out.len(), data_bytes(left_out));
        tracing::warn!(
            inputs = self.task.inputs.len(),
            file_count,
            left_out_bytes,
            "a compaction goes without its largest inputs: there is no room on the disk for all"
        );
        self.store.shared().compactor.note_reduced(file_count);
    }

    /// Tells that it has replaced its inputs.
    fn note_done(&self, active: &Active, inputs: &[Arc<TableFile>], expired_count: u64, merged: &Merged) {
        let (table, shared) = (self.store.table(), self.store.shared());
        let properties = BTreeMap::from([("compaction_type".to_owned(), self.task.kind.name().to_owned())]);
        let record = CompactionRecord {
            id: active.id(),
            keyspace: table.keyspace().to_owned(),
            table: table.name().to_owned(),
            finished_ms: shared.runtime.clock.now_micros() / 1_000,
            bytes_in: data_bytes(inputs),
            bytes_out: data_bytes(&merged.files),
            rows_merged: merged.partitions.clone(),
            properties,
        };
        shared.compactor.note_done(active, record, expired_count);
    }
}

impl Drop for Compaction {
    fn drop(&mut self) {
        self.store.compaction.give_up(&self.task.inputs);
        self.store.shared().compactor.give_up(&self.store.table());
    }
}

/// What is to be merged, and how.
fn job(
    store: &TableStore,
    task: &Task,
    merged: &[Arc<TableFile>],
    kept_bytes: usize,
) -> Result<MergeJob, TableError> {
    let (shared, table, files) = (store.shared(), store.table(), store.files().all());
    let settings = Settings::of(&table.options().compaction);
    let others = files.iter().filter(|file| !task.inputs.contains(&file.descriptor().id)).cloned();
    let is_repaired = merged.iter().all(|file| file.summary().repaired_at != 0);
    let keeps_all = task.keeps_tombstones() || settings.only_purge_repaired && !is_repaired;
    let runtime = &shared.runtime;
    Ok(MergeJob {
        disk: Arc::clone(&runtime.disk),
        random: Arc::clone(&runtime.random),
        clock: Arc::clone(&runtime.clock),
        directory: shared.table_directory(&table)?,
        inputs: merged.iter().map(|file| (Arc::clone(file), store.files().scopes_of(file))).collect(),
        input_bytes: shared.compactor.input_bytes(merged.len()),
        level: task.level,
        split: task.split,
        others: others.collect(),
        memtable_timestamp_min: store.oldest_beside_files(),
        now: shared.now_seconds(),
        gc_before: if keeps_all { 0 } else { shared.gc_before(&table) },
        sharding: shared.sharding,
        shard: shared.index,
        watch: Arc::default(),
        kept_room: KeptRoom::new(kept_bytes),
        ahead: merged.iter().map(|_| Ahead::default()).collect(),
        compression: store.compression(),
        plants: runtime.plants.clone(),
        table,
    })
}

/// Drives a merge at the rate that compaction may take. `None` when somebody stopped it.
async fn merge(
    store: &TableStore,
    job: MergeJob,
    active: &Active,
    handing: &mut Handing,
) -> Result<Option<Merged>, TableError> {
    if job.inputs.is_empty() {
        return Ok(Some(Merged { files: Vec::new(), partitions: Default::default() }));
    }
    let shared = store.shared();
    let mut merge = shared.run_vital("a compaction", move || Merge::start(job)).await?;
    let mut paid_bytes = 0;
    loop {
        handing.go_on();
        let progress = shared.run_vital("a compaction", move || merge.advance(PIECE_BYTES));
        let MergeState::Going(going) = (match progress.await?? {
            MergeState::Done(merged) => return Ok(Some(merged)),
            going => going,
        }) else {
            return Ok(None);
        };
        let is_over = || store.is_dropped() || shared.check_open().is_err() || active.is_stopped();
        if is_over() {
            shared.runtime.io.run(move || going.abandon()).await;
            return if active.is_stopped() { Ok(None) } else { Err(TableError::ShuttingDown) };
        }
        merge = going;
        let read_bytes = active.read_bytes();
        let bytes = ((read_bytes - paid_bytes) as f64 * active.compressed_part()) as u64;
        paid_bytes = read_bytes;
        shared.compactor.control().pay(bytes, &*shared.runtime.clock, is_over).await;
        shared.fetcher.let_reads_go_first(PATIENCE_OF_MERGES).await;
    }
}

/// Puts a file into another level without writing it again: its statistics alone change.
async fn move_level(store: &TableStore, file: &Arc<TableFile>, level: u32) -> Result<(), TableError> {
    let shared = store.shared();
    let (disk, table) = (Arc::clone(&shared.runtime.disk), store.table());
    let descriptor: Descriptor = file.descriptor().clone();
    let change = StatisticsChange { level: Some(level), ..StatisticsChange::default() };
    let change_and_open = move || -> Result<Arc<TableFile>, SstableError> {
        change_statistics(&*disk, &descriptor, change)?;
        TableFile::open(disk, descriptor, &table)
    };
    let moved = shared.runtime.io.run(change_and_open).await?;
    // No test can break it: it is opened by what describes the file.
    assert_eq!(moved.descriptor().id, file.descriptor().id, "a file in another level is the same file");
    // Nobody else changes the table's files meanwhile.
    let manifest = shared.manifest.lock().await;
    let swap = |other: &Arc<TableFile>| Arc::clone(if Arc::ptr_eq(other, file) { &moved } else { other });
    store.files.replace(store.files.all().iter().map(swap).collect());
    drop(manifest);
    shared.cache.forget(&[file.number()]);
    Ok(())
}

/// A file that was found damaged is compacted no more: it would fail again and again.
fn suspect(store: &TableStore, error: &SstableError) {
    let path = match error {
        SstableError::Damaged { path, .. } | SstableError::Checksum { path, .. } => path,
        _ => return,
    };
    if let Ok((descriptor, _)) = Descriptor::from_path(path) {
        tracing::warn!(id = %descriptor.id, "a damaged table file is not compacted any more");
        store.compaction.suspect(descriptor.id);
    }
}

fn data_bytes(files: &[Arc<TableFile>]) -> u64 {
    files.iter().map(|file| file.summary().data_file_bytes).sum()
}
