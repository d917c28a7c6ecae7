//! How files become fewer: who compacts what, and when.
//!
//! The strategy chooses, a background job merges (both in the crate `compaction`), the shard
//! commits and swaps (`compact/run.rs`). After a flush, and when time has passed (`housekeeping.rs`), a
//! *worker* is started: it waits for one of the node's slots (`concurrent_compactors`), asks the strategy, starts
//! another worker in case there is more to do at the same time, carries its task out, and asks again.

mod control;
mod history;
mod rewrite;
mod room;
mod run;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use compaction::{
    CompactionControl, CompactionKind, CompactionRequest, CompactionTotals, FileFacts, History, Memory,
    Picture, Settings, Split, Task,
};
use memtable::Memtable;
use schema::{Table, TableId};
use sstable::TableFile;
use tokio::sync::Notify;
use uuid::Uuid;

use super::{Shard, TableStore};
use crate::StorageError;
pub(super) use history::read_history;
use run::{Active, Outcome};

/// What a shard knows of its compactions.
pub(super) struct Compactions {
    pub(super) control: Arc<CompactionControl>,
    active: RefCell<Vec<Rc<Active>>>,
    history: RefCell<History>,
    /// Held by whoever writes it down.
    history_turn: tokio::sync::Mutex<()>,
    totals: RefCell<CompactionTotals>,
}

impl Compactions {
    pub(super) fn new(control: Arc<CompactionControl>, history: History) -> Self {
        Compactions {
            control,
            active: RefCell::default(),
            history: RefCell::new(history),
            history_turn: tokio::sync::Mutex::new(()),
            totals: RefCell::default(),
        }
    }
}

/// Shared by compactions that write, taken alone by whoever needs the table's directory at rest.
#[derive(Default)]
pub(super) struct CompactTurn(tokio::sync::RwLock<()>);

impl CompactTurn {
    /// Waits until no compaction writes; none does until the guard is dropped.
    pub(super) async fn lock(&self) -> tokio::sync::RwLockWriteGuard<'_, ()> {
        self.0.write().await
    }

    async fn share(&self) -> tokio::sync::RwLockReadGuard<'_, ()> {
        self.0.read().await
    }
}

/// What a table on a shard knows of its compactions.
pub(super) struct Compacting {
    /// Held by the one compaction that somebody asked for.
    turn: tokio::sync::Mutex<()>,
    /// Workers that look for something to do, or do it.
    workers: Cell<usize>,
    /// While above 0, strategies are not asked.
    paused: Cell<usize>,
    /// `nodetool disableautocompaction`.
    is_off: Cell<bool>,
    /// Files that are being compacted, or are about to be.
    busy: RefCell<HashSet<Uuid>>,
    /// How many tasks they are the inputs of.
    claim_count: Cell<u64>,
    /// Files of an import that is not over: not compacted until it is.
    held: RefCell<HashSet<Uuid>>,
    /// Told when a file is busy no more.
    rest: Notify,
    /// Files that were found damaged: left alone until the next start.
    suspects: RefCell<HashSet<Uuid>>,
    memory: RefCell<Memory>,
    rewriting: rewrite::Rewriting,
}

impl Default for Compacting {
    fn default() -> Self {
        Compacting {
            turn: tokio::sync::Mutex::new(()),
            workers: Cell::new(0),
            paused: Cell::new(0),
            is_off: Cell::new(false),
            busy: RefCell::default(),
            claim_count: Cell::new(0),
            held: RefCell::default(),
            rest: Notify::new(),
            suspects: RefCell::default(),
            memory: RefCell::default(),
            rewriting: rewrite::Rewriting::default(),
        }
    }
}

impl Compacting {
    /// Takes in that files were flushed.
    pub(super) fn note_flush(&self, files: &[Arc<TableFile>]) {
        let mut memory = self.memory.borrow_mut();
        files.iter().for_each(|file| memory.note_flush(file.summary().data_file_bytes));
    }

    /// Keeps files from being compacted.
    pub(super) fn hold(&self, files: &[Uuid]) {
        self.held.borrow_mut().extend(files);
    }

    /// Leaves a file that was found damaged alone.
    pub(super) fn suspect(&self, file: Uuid) {
        self.suspects.borrow_mut().insert(file);
    }

    /// Ends that.
    pub(super) fn let_go(&self, files: &[Uuid]) {
        let mut held = self.held.borrow_mut();
        files.iter().for_each(|file| _ = held.remove(file));
    }
}

impl TableStore {
    /// Does a worker look for something to do, or do it?
    pub(super) fn is_compacting(&self) -> bool {
        self.compacting.workers.get() > 0
    }
}

/// A task, the inputs of which are left to whoever holds this.
struct Claim {
    store: Rc<TableStore>,
    task: Task,
}

impl Claim {
    fn new(store: &Rc<TableStore>, task: Task) -> Self {
        let mut busy = store.compacting.busy.borrow_mut();
        let is_free = task.inputs.iter().all(|id| busy.insert(*id));
        drop(busy);
        assert!(is_free, "a file is the input of one compaction at a time, and once");
        store.compacting.claim_count.set(store.compacting.claim_count.get() + 1);
        Claim { store: Rc::clone(store), task }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let state = &self.store.compacting;
        let mut busy = state.busy.borrow_mut();
        self.task.inputs.iter().for_each(|id| _ = busy.remove(id));
        state.claim_count.set(state.claim_count.get().saturating_sub(1));
        state.rest.notify_waiters();
    }
}

/// While it lives, no strategy is asked for a table.
struct Pause(Rc<TableStore>);

impl Pause {
    fn new(store: &Rc<TableStore>) -> Self {
        store.compacting.paused.set(store.compacting.paused.get() + 1);
        Pause(Rc::clone(store))
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.compacting.paused.set(self.0.compacting.paused.get().saturating_sub(1));
    }
}

/// Counts a worker as long as it lives.
struct Worker(Rc<TableStore>);

impl Worker {
    fn new(store: &Rc<TableStore>) -> Self {
        store.compacting.workers.set(store.compacting.workers.get() + 1);
        Worker(Rc::clone(store))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.compacting.workers.set(self.0.compacting.workers.get().saturating_sub(1));
    }
}

impl Shard {
    /// Merges all files of a table and waits for it (`nodetool compact`).
    ///
    /// # Errors
    /// A file is damaged or the disk failed; the inputs stay.
    pub async fn compact(self: &Rc<Self>, table: TableId) -> Result<(), StorageError> {
        self.compact_as(table, &CompactionRequest::default()).await
    }

    /// Compacts what is asked for and waits for it. Compactions of the table that go on are stopped first.
    ///
    /// # Errors
    /// As [`Shard::compact`].
    pub async fn compact_as(
        self: &Rc<Self>,
        table: TableId,
        request: &CompactionRequest,
    ) -> Result<(), StorageError> {
        let store = self.store(table)?;
        let _turn = store.compacting.turn.lock().await;
        let pause = Pause::new(&store);
        self.stop_table(&store).await;
        for task in self.requested(&store, request) {
            let Some(_slot) = self.compactions.control.slot().await else { break };
            let claim = Claim::new(&store, task);
            if matches!(self.carry_out(&claim).await?, Outcome::Stopped) {
                break;
            }
        }
        drop(pause);
        self.start_compaction(&store);
        Ok(())
    }

    /// The tasks that fulfil a request.
    fn requested(&self, store: &Rc<TableStore>, request: &CompactionRequest) -> Vec<Task> {
        let settings = Settings::of(&store.table().options().compaction);
        let facts = self.facts(store);
        let is_wanted = |file: &&FileFacts| {
            let in_range = |(first, last)| file.first <= last && first <= file.last;
            request.tokens.is_none_or(in_range)
                && request.files.as_ref().is_none_or(|files| files.contains(&file.id))
        };
        let tasks = if request.tokens.is_none() && request.files.is_none() {
            let mut tasks = settings.major(&facts, request.split_output);
            tasks.retain(|task| self.is_of_use(store, task));
            tasks
        } else {
            settings.user_defined(&facts.iter().filter(is_wanted).collect::<Vec<_>>())
        };
        let major = |task| Task { kind: CompactionKind::MajorCompaction, ..task };
        tasks.into_iter().map(major).collect()
    }

    /// One file that would come out as it is need not be written again.
    fn is_of_use(&self, store: &TableStore, task: &Task) -> bool {
        let [only] = task.inputs.as_slice() else { return true };
        let may_be_cut = matches!(task.split, Split::Parts(parts) if parts > 1);
        store.files().iter().any(|file| {
            file.descriptor().id == *only
                && (may_be_cut
                    || !self.owns_all(file)
                    || self.has_garbage(store, file)
                    || !file.is_compressed_as(&store.compression()))
        })
    }

    /// Starts a worker for a table in the background, unless there are enough.
    pub(super) fn start_compaction(self: &Rc<Self>, store: &Rc<TableStore>) {
        if !self.may_compact(store) {
            return self.forget_pending(store);
        }
        if store.compacting.workers.get() >= self.compactions.control.slot_count() {
            return;
        }
        let worker = Worker::new(store);
        let (shard, store) = (Rc::clone(self), Rc::clone(store));
        runtime::spawn_local("compaction", async move {
            let compacted = shard.compact_while_due(&store).await;
            drop(worker);
            store.log_failure("compaction", compacted);
        });
    }

    async fn compact_while_due(self: &Rc<Self>, store: &Rc<TableStore>) -> Result<(), StorageError> {
        loop {
            let Some(_slot) = self.compactions.control.slot().await else { return Ok(()) };
            if !self.may_compact(store) {
                self.forget_pending(store);
                return Ok(());
            }
            let Some(task) = self.choose(store) else {
                self.start_rewriting(store);
                return Ok(());
            };
            let claim = Claim::new(store, task);
            self.start_compaction(store);
            if matches!(self.carry_out(&claim).await?, Outcome::Stopped) {
                return Ok(());
            }
        }
    }

    fn may_compact(&self, store: &TableStore) -> bool {
        let state = &store.compacting;
        let is_held = store.is_dropped.get() || self.check_open().is_err() || state.is_off.get();
        !is_held && state.paused.get() == 0 && Settings::of(&store.table().options().compaction).is_enabled
    }

    /// What the table's strategy wants done now.
    fn choose(&self, store: &TableStore) -> Option<Task> {
        let table = store.table();
        let facts = self.facts(store);
        let mut memory = store.compacting.memory.borrow_mut();
        let settings = Settings::of(&table.options().compaction);
        let choice = settings.choose(self.picture(store, &facts), &mut memory);
        let name = name_of(&table);
        let pending = &mut self.compactions.totals.borrow_mut().pending;
        match choice.pending as u64 {
            0 => _ = pending.remove(&name),
            count => _ = pending.insert(name, count),
        }
        choice.task
    }

    /// What was left to do for a table is not any more: it is gone, or left alone.
    pub(super) fn forget_pending(&self, store: &TableStore) {
        self.compactions.totals.borrow_mut().pending.remove(&name_of(&store.table()));
    }

    /// What strategies know of the files of a table.
    fn facts(&self, store: &TableStore) -> Vec<FileFacts> {
        let gc_before = self.gc_before(store);
        let Compacting { busy, held, suspects, .. } = &store.compacting;
        let (busy, held, suspects) = (busy.borrow(), held.borrow(), suspects.borrow());
        let files = store.files();
        let facts = files.iter().map(|file| FileFacts::of(file.summary(), gc_before));
        facts
            .map(|facts| FileFacts {
                is_busy: busy.contains(&facts.id) || held.contains(&facts.id),
                is_suspect: suspects.contains(&facts.id),
                ..facts
            })
            .collect()
    }

    fn picture<'a>(&self, store: &TableStore, facts: &'a [FileFacts]) -> Picture<'a> {
        Picture {
            all: facts,
            now_ms: u64::try_from(self.runtime.clock.now_micros() / 1_000).unwrap_or(0),
            gc_before: self.gc_before(store),
            memtable_timestamp_min: oldest_in_memory(store),
        }
    }

    /// Tombstones of before this second may go.
    fn gc_before(&self, store: &TableStore) -> u32 {
        self.now_seconds().saturating_sub(store.table().options().gc_grace_seconds)
    }

    /// Seconds since 1970.
    pub fn now_seconds(&self) -> u32 {
        u32::try_from(self.runtime.clock.now_seconds().max(0)).unwrap_or(u32::MAX - 1)
    }

    fn owns_all(&self, file: &TableFile) -> bool {
        // Shards interleave: only a lone shard owns a whole run of the ring. A file of the format big is
        // never as we would write it.
        !file.descriptor().version.is_big()
            && (self.sharding.shard_count() == 1
                || file.summary().partition_count == 0
                || !self.registry.is_shared(file.descriptor().id))
    }

    fn has_garbage(&self, store: &TableStore, file: &TableFile) -> bool {
        file.summary().droppable_tombstone_ratio(self.gc_before(store)) > 0.0
    }
}

/// How a table is told among what is pending.
fn name_of(table: &Table) -> (String, String) {
    (table.keyspace().to_owned(), table.name().to_owned())
}

/// The oldest write in any memtable. What is in files that can not be read may be as old as can be.
fn oldest_in_memory(store: &TableStore) -> Option<i64> {
    if !store.damage.borrow().is_empty() {
        return Some(i64::MIN);
    }
    let memtables = store.memtables();
    let full = memtables.iter().filter(|slot| !slot.with(Memtable::is_empty));
    full.map(|slot| slot.with(|memtable| memtable.encoding_stats().min_timestamp)).min()
}

/// What a record of a compaction says of it.
fn properties(task: &Task) -> BTreeMap<String, String> {
    BTreeMap::from([("compaction_type".to_owned(), task.kind.name().to_owned())])
}
