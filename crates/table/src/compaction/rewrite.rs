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
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use cache::is_compressed_as_asked;
use schema::{CompressionOptions, Table};
use sstable::TableFile;
use uuid::Uuid;

use super::{Compaction, Outcome, Survey};
use crate::TableError;
use crate::TableStore;

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
            self.leave_alone(&[id]);
        }
    }

    fn leave_alone(&self, files: &[Uuid]) {
        self.left_alone.borrow_mut().extend(files);
    }

    pub(super) fn leaves_alone(&self, file: Uuid) -> bool {
        self.left_alone.borrow().contains(&file)
    }
}

/// Writes files of a table anew in the background. There is one of the table at most.
pub(super) struct Rewriter(Rc<TableStore>);

impl Rewriter {
    /// Starts one, if there is something to do for it.
    pub(super) fn start(store: &Rc<TableStore>) {
        let is_going = &store.compaction.rewriting().is_going;
        let has_task = || Survey::of(store).next_rewrite(u64::MAX).is_some();
        if is_going.get() || !store.may_compact() || !has_task() {
            return;
        }
        is_going.set(true);
        let (rewriter, store) = (Rewriter(Rc::clone(store)), Rc::clone(store));
        runtime::spawn_local("rewrite", async move {
            let rewritten = rewriter.work().await;
            store.log_failure("rewrite", rewritten);
        });
    }

    async fn work(self) -> Result<(), TableError> {
        let store = &self.0;
        loop {
            let Some(_turn) = store.shared.compactor.control().rewrite_turn().await else { return Ok(()) };
            if !store.may_compact() {
                return Ok(());
            }
            // Nobody has asked for it now, so it leaves what it can not know others to need. Where the disk does not
            // tell, the rewrite will.
            let room = store.shared.free_bytes().await.map_or(u64::MAX, |bytes| bytes / 2);
            let Some(task) = Survey::of(store).next_rewrite(room) else { return Ok(()) };
            let compaction = Compaction::claim(store, task);
            let outcome = compaction.run().await;
            if let Err(error) = &outcome
                && !matches!(error, TableError::ShuttingDown)
            {
                store.compaction.rewriting().leave_alone(compaction.inputs());
            }
            if matches!(outcome?, Outcome::Stopped) {
                return Ok(());
            }
        }
    }
}

impl Drop for Rewriter {
    fn drop(&mut self) {
        self.0.compaction.rewriting().is_going.set(false);
    }
}

/// How many files are as the table asks, and the bytes of their Data on the disk.
pub(crate) fn files_as_asked(files: &[Arc<TableFile>], table: &Table) -> (u64, u64) {
    let current = files.iter().filter(|file| is_as_asked(table, file));
    current.fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.summary().data_file_bytes))
}

/// Is a file as its table asks?
pub(super) fn is_as_asked(table: &Table, file: &TableFile) -> bool {
    !is_old(file) && is_compressed_as_asked(&table.options().compression, file)
}

/// Is it of a version that we do not write?
pub(super) fn is_old(file: &TableFile) -> bool {
    file.descriptor().version != sstable::Version::default()
}
