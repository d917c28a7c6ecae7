//! How the files of a table become fewer: who compacts what, and when.
//!
//! The strategy chooses (`survey.rs`), a background job merges (both in the crate `compaction`), the table
//! commits and swaps (`run.rs`). After a flush, and when time has passed (the shard sees to that), a
//! *worker* is started: it waits for one of the node's slots (`concurrent_compactors`), asks the strategy, starts
//! another worker in case there is more to do at the same time, carries its task out, and asks again.

mod active;
mod asked;
mod rewrite;
mod room;
mod run;
mod survey;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use compaction::{FileFacts, Memory, Settings};
use sstable::TableFile;
use tokio::sync::Notify;
use uuid::Uuid;

use super::TableStore;
use crate::TableError;
pub(crate) use active::Active;
pub(super) use rewrite::files_as_asked;
use rewrite::{Rewriter, Rewriting};
use run::{Compaction, Outcome};
use survey::Survey;

/// What a table knows of its compactions.
pub(crate) struct TableCompaction {
    /// Held by the one compaction that somebody asked for.
    asked_turn: tokio::sync::Mutex<()>,
    /// Shared by compactions that write, taken alone by whoever needs the table's directory at rest.
    write_turn: tokio::sync::RwLock<()>,
    /// Workers that look for something to do, or do it.
    workers: Cell<usize>,
    /// While above 0, strategies are not asked.
    paused: Cell<usize>,
    /// `nodetool disableautocompaction`.
    is_off: Cell<bool>,
    /// Files that are being compacted, or are about to be.
    busy: RefCell<HashSet<Uuid>>,
    /// Files of an import that is not over: not compacted until it is.
    held: RefCell<HashSet<Uuid>>,
    /// Told when a file is busy no more.
    rest: Notify,
    /// Files that were found damaged: left alone until the next start.
    suspects: RefCell<HashSet<Uuid>>,
    memory: RefCell<Memory>,
    rewriting: Rewriting,
}

impl Default for TableCompaction {
    fn default() -> Self {
        TableCompaction {
            asked_turn: tokio::sync::Mutex::new(()),
            write_turn: tokio::sync::RwLock::new(()),
            workers: Cell::new(0),
            paused: Cell::new(0),
            is_off: Cell::new(false),
            busy: RefCell::default(),
            held: RefCell::default(),
            rest: Notify::new(),
            suspects: RefCell::default(),
            memory: RefCell::default(),
            rewriting: Rewriting::default(),
        }
    }
}

impl TableCompaction {
    /// Takes in that files were flushed.
    pub(super) fn note_flush(&self, files: &[Arc<TableFile>]) {
        let mut memory = self.memory.borrow_mut();
        files.iter().for_each(|file| memory.note_flush(file.summary().data_file_bytes));
    }

    /// Keeps files from being compacted.
    pub(super) fn hold(&self, files: &[Uuid]) {
        self.held.borrow_mut().extend(files);
    }

    /// Ends that.
    pub(super) fn let_go(&self, files: &[Uuid]) {
        let mut held = self.held.borrow_mut();
        files.iter().for_each(|file| _ = held.remove(file));
    }

    /// Leaves a file that was found damaged alone.
    pub(super) fn suspect(&self, file: Uuid) {
        self.suspects.borrow_mut().insert(file);
    }

    /// Waits until no compaction writes; none does until the guard is dropped.
    pub(super) async fn at_rest(&self) -> tokio::sync::RwLockWriteGuard<'_, ()> {
        self.write_turn.write().await
    }

    /// Are compactions that the strategy asks for turned off?
    pub(crate) fn is_off(&self) -> bool {
        self.is_off.get()
    }

    fn rewriting(&self) -> &Rewriting {
        &self.rewriting
    }

    /// Marks what strategies are to leave alone.
    fn mark(&self, mut facts: Vec<FileFacts>) -> Vec<FileFacts> {
        let (busy, held, suspects) = (self.busy.borrow(), self.held.borrow(), self.suspects.borrow());
        for facts in &mut facts {
            facts.is_busy = busy.contains(&facts.id) || held.contains(&facts.id);
            facts.is_suspect = suspects.contains(&facts.id);
        }
        facts
    }

    /// Has the strategy choose, with what it remembers of the last times.
    fn remember<T>(&self, choose: impl FnOnce(&mut Memory) -> T) -> T {
        choose(&mut self.memory.borrow_mut())
    }

    /// Stops the compactions of a table and waits until they are gone.
    async fn stop(&self, store: &TableStore) {
        loop {
            let rest = self.rest.notified();
            tokio::pin!(rest);
            rest.as_mut().enable();
            if self.busy.borrow().is_empty() {
                return;
            }
            store.shared.compactor.stop_those_of(store);
            rest.await;
        }
    }

    /// Takes the inputs of a task for it alone.
    fn claim(&self, inputs: &[Uuid]) {
        let mut busy = self.busy.borrow_mut();
        let is_free = inputs.iter().all(|id| busy.insert(*id));
        assert!(is_free, "a file is the input of one compaction at a time, and once");
    }

    /// Leaves them to others.
    fn give_up(&self, inputs: &[Uuid]) {
        let mut busy = self.busy.borrow_mut();
        inputs.iter().for_each(|id| _ = busy.remove(id));
        self.rest.notify_waiters();
    }
}

/// While it lives, no strategy is asked for a table.
struct Pause(Rc<TableStore>);

impl Pause {
    fn new(store: &Rc<TableStore>) -> Self {
        let paused = &store.compaction.paused;
        paused.set(paused.get() + 1);
        Pause(Rc::clone(store))
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        let paused = &self.0.compaction.paused;
        paused.set(paused.get().saturating_sub(1));
    }
}

/// Looks for something to do, and does it; counted as long as it lives.
struct Worker(Rc<TableStore>);

impl Worker {
    fn new(store: &Rc<TableStore>) -> Self {
        let workers = &store.compaction.workers;
        workers.set(workers.get() + 1);
        Worker(Rc::clone(store))
    }

    async fn work(self) -> Result<(), TableError> {
        let store = &self.0;
        loop {
            let Some(_slot) = store.shared.compactor.control().slot().await else { return Ok(()) };
            if !store.may_compact() {
                store.shared.compactor.forget_pending(&store.table());
                return Ok(());
            }
            let Some(task) = Survey::of(store).choose() else {
                Rewriter::start(store);
                return Ok(());
            };
            let compaction = Compaction::claim(store, task);
            store.start_compaction();
            if matches!(compaction.run().await?, Outcome::Stopped) {
                return Ok(());
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let workers = &self.0.compaction.workers;
        workers.set(workers.get().saturating_sub(1));
    }
}

impl TableStore {
    /// Starts a worker in the background, unless there are enough.
    pub fn start_compaction(self: &Rc<Self>) {
        if !self.may_compact() {
            return self.shared.compactor.forget_pending(&self.table());
        }
        if self.compaction.workers.get() >= self.shared.compactor.control().slot_count() {
            return;
        }
        let (worker, store) = (Worker::new(self), Rc::clone(self));
        runtime::spawn_local("compaction", async move {
            let compacted = worker.work().await;
            store.log_failure("compaction", compacted);
        });
    }

    fn may_compact(&self) -> bool {
        let is_held = self.is_dropped() || self.shared.check_open().is_err() || self.compaction.is_off();
        let is_enabled = || self.with_table(|table| Settings::of(&table.options().compaction).is_enabled);
        !is_held && self.compaction.paused.get() == 0 && is_enabled()
    }

    /// Does a worker look for something to compact, or do it?
    pub fn is_compacting(&self) -> bool {
        self.compaction.workers.get() > 0
    }

    /// The oldest write that is in no file that can be read. What is in those that can not may be as old as can be.
    fn oldest_beside_files(&self) -> Option<i64> {
        if self.files.is_damaged() { Some(i64::MIN) } else { self.memtables.oldest_timestamp() }
    }
}
