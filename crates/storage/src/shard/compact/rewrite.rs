//! Files that are written anew, one by one, because they are not as the table asks for any more.
//!
//! After `ALTER TABLE … WITH compression`, or when files of an older version were brought in, compaction would
//! come by some day, and at large old files perhaps never. So, while a table's strategy has nothing to do, its files
//! that are out of date are written anew in the background, and somebody may ask for it (`nodetool upgradesstables`).
//!
//! ```text
//!   worker: nothing to do ──► rewriter waits for the node's turn ──► the largest file out of date ──► merge of
//!                             (one file at a time on the node,        (none: the rewriter ends)       this one
//!                              beside the compactors' slots)     ◄──────────────────────────────────────┘
//! ```
//!
//! It is a merge of one file that keeps its level, its state of repair and all its tombstones, as in Cassandra.
//! One that is larger than half of the free disk waits until there is more room.
//! Nothing is noted anywhere: which files are left is seen from the files, after a crash, too.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use cache::is_compressed_as_asked;
use compaction::{FileFacts, RewriteFiles, RewriteRequest, Task};
use schema::{CompressionOptions, TableId};
use sstable::TableFile;
use uuid::Uuid;

use super::{Claim, Outcome, Pause};
use crate::StorageError;
use crate::shard::{Shard, TableStore};

/// What a table on a shard knows of files that are written anew.
#[derive(Default)]
pub(super) struct Rewriting {
    /// Is there a task that writes files anew in the background?
    is_going: Cell<bool>,
    /// Files that are left alone until the next start: they came out of it and are not as they should be, or
    /// could not be written anew.
    left_alone: RefCell<HashSet<Uuid>>,
}

impl Rewriting {
    /// What was just written by these options is as they say. Were it not, it would be written again and
    /// again: so it is left alone then.
    pub(super) fn check(&self, outputs: &[Arc<TableFile>], compression: &CompressionOptions) {
        for file in outputs.iter().filter(|file| is_old(file) || !file.is_compressed_as(compression)) {
            let id = file.descriptor().id;
            tracing::error!(%id, "a table file was written anew and is not as it should be: it is left alone");
            self.left_alone.borrow_mut().insert(id);
        }
    }
}

/// There is a rewriter of the table as long as it lives.
struct Rewriter(Rc<TableStore>);

impl Rewriter {
    fn new(store: &Rc<TableStore>) -> Self {
        store.compacting.rewriting.is_going.set(true);
        Rewriter(Rc::clone(store))
    }
}

impl Drop for Rewriter {
    fn drop(&mut self) {
        self.0.compacting.rewriting.is_going.set(false);
    }
}

impl TableStore {
    /// How many files are as the table asks, and the bytes of their Data on the disk.
    pub(in crate::shard) fn files_as_asked(&self) -> (u64, u64) {
        let files = self.files();
        let current = files.iter().filter(|file| self.is_as_asked(file));
        current.fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.summary().data_file_bytes))
    }

    fn is_as_asked(&self, file: &TableFile) -> bool {
        !is_old(file) && is_compressed_as_asked(&self.table.borrow().options().compression, file)
    }
}

/// Is it of a version that we do not write?
fn is_old(file: &TableFile) -> bool {
    file.descriptor().version != sstable::Version::default()
}

impl Shard {
    /// Writes files of a table anew, one after the other, and waits for it. Compactions of the table that go on
    /// are stopped first: they may write as the table asked before. Was it gone through to the end? Not if
    /// somebody stopped it.
    ///
    /// # Errors
    /// A file is damaged or the disk failed; it stays, as do those after it.
    pub async fn rewrite(
        self: &Rc<Self>,
        table: TableId,
        request: RewriteRequest,
    ) -> Result<bool, StorageError> {
        let store = self.store(table)?;
        let _turn = store.compacting.turn.lock().await;
        let pause = Pause::new(&store);
        self.stop_table(&store).await;
        let tasks = self.rewrites(&store, |file, facts| {
            let is_wanted = match request.files {
                RewriteFiles::OldVersion => is_old(file),
                RewriteFiles::OtherCompression => !file.is_compressed_as(&store.compression()),
                RewriteFiles::All => true,
            };
            is_wanted && request.created_max_ms.is_none_or(|max| facts.created_ms <= max)
        });
        // All of them now: strategies go on with the others meanwhile.
        let claims: Vec<Claim> = tasks.into_iter().map(|task| Claim::new(&store, task)).collect();
        drop(pause);
        let done = self.carry_all_out(claims).await;
        self.start_compaction(&store);
        done
    }

    async fn carry_all_out(self: &Rc<Self>, all: Vec<Claim>) -> Result<bool, StorageError> {
        for claim in all {
            let Some(_slot) = self.compactions.control.slot().await else { return Ok(false) };
            let is_there = |file: &Arc<TableFile>| claim.task.inputs.contains(&file.descriptor().id);
            // Truncated meanwhile.
            if !claim.store.files().iter().any(is_there) {
                continue;
            }
            if matches!(self.carry_out(&claim).await?, Outcome::Stopped) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Starts to write files of a table anew in the background, if there is one to be.
    pub(super) fn start_rewriting(self: &Rc<Self>, store: &Rc<TableStore>) {
        let is_going = store.compacting.rewriting.is_going.get();
        if is_going || !self.may_compact(store) || self.next_rewrite(store, u64::MAX).is_none() {
            return;
        }
        let rewriter = Rewriter::new(store);
        let (shard, store) = (Rc::clone(self), Rc::clone(store));
        runtime::spawn_local("rewrite", async move {
            let rewritten = shard.rewrite_while_due(&store).await;
            drop(rewriter);
            store.log_failure("rewrite", rewritten);
        });
    }

    async fn rewrite_while_due(self: &Rc<Self>, store: &Rc<TableStore>) -> Result<(), StorageError> {
        loop {
            let Some(_turn) = self.compactions.control.rewrite_turn().await else { return Ok(()) };
            if !self.may_compact(store) {
                return Ok(());
            }
            // Nobody has asked for it now, so it leaves what it can not know others to need. Where the disk does not
            // tell, the rewrite will.
            let room = self.free_bytes().await.map_or(u64::MAX, |bytes| bytes / 2);
            let Some(task) = self.next_rewrite(store, room) else { return Ok(()) };
            let claim = Claim::new(store, task);
            let outcome = self.carry_out(&claim).await;
            if let Err(error) = &outcome
                && !matches!(error, StorageError::ShuttingDown)
            {
                store.compacting.rewriting.left_alone.borrow_mut().extend(&claim.task.inputs);
            }
            if matches!(outcome?, Outcome::Stopped) {
                return Ok(());
            }
        }
    }

    fn next_rewrite(&self, store: &TableStore, room: u64) -> Option<Task> {
        let left_alone = store.compacting.rewriting.left_alone.borrow();
        let is_due = |file: &TableFile, facts: &FileFacts| {
            !left_alone.contains(&facts.id)
                && !store.is_as_asked(file)
                && file.summary().uncompressed_bytes <= room
        };
        self.rewrites(store, is_due).into_iter().next()
    }

    /// Tasks for files that are wanted and free, the largest first: it is the last that compaction comes by.
    fn rewrites(&self, store: &TableStore, is_wanted: impl Fn(&TableFile, &FileFacts) -> bool) -> Vec<Task> {
        let (files, facts) = (store.files(), self.facts(store));
        // Facts are in the order of the files.
        let all = files.iter().zip(facts).filter(|(file, facts)| facts.is_free() && is_wanted(file, facts));
        let mut wanted: Vec<FileFacts> = all.map(|(_, facts)| facts).collect();
        wanted.sort_by_key(|facts| Reverse(facts.data_bytes));
        wanted.iter().map(Task::rewrite).collect()
    }
}
