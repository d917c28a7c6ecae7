//! How a table is defined anew, emptied and dropped.

use std::rc::Rc;
use std::sync::Arc;

use memtable::Memtable;
use schema::Table;

use super::memtables::Frozen;
use super::snapshot::{Occasion, wants_auto_snapshot};
use super::{FileChange, TableStore};
use crate::TableError;

/// Who wants a table to be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptying {
    /// This node alone: what can not be kept as a snapshot first, where that is wanted, stays.
    Alone,
    /// The nodes of a ring, at that epoch of the schema: what was planned on an earlier one is outdated from then on.
    /// It is empty on the others, and no node may hold up what they agree on next: also without a snapshot.
    Agreed {
        /// The epoch of the schema.
        epoch: u64,
    },
}

impl TableStore {
    /// Takes another definition.
    pub fn redefine(self: &Rc<Self>, table: &Arc<Table>) {
        if self.with_table(|known| *known == **table) {
            return;
        }
        assert_eq!(table.id(), self.id(), "another definition is one of the same table");
        // A memtable keeps to one definition.
        self.freeze();
        *self.table.borrow_mut() = Arc::clone(table);
        self.chunk_length.go_on_from(&self.files.all());
        let now = self.shared.runtime.clock.elapsed();
        self.memtables.replace_empty(Memtable::new(Arc::clone(table)), now);
        if self.memtables.has_frozen() {
            self.spawn_flush();
        }
        // Another strategy may have something to do, and files may not be as they are to be any more.
        self.start_compaction();
    }

    /// Lets go of what a table had that the schema does not know any more.
    ///
    /// # Errors
    /// The manifest could not be written; nobody finds the table all the same.
    pub async fn drop_all(self: &Rc<Self>) -> Result<(), TableError> {
        let shared = &self.shared;
        if wants_auto_snapshot(self) {
            let flushed = self.flush().await;
            if let Err(error) = flushed.and(self.auto_snapshot(Occasion::Dropped).await) {
                tracing::error!(%error, table = self.table().name(), "a dropped table has no snapshot of all its rows");
            }
        }
        self.is_dropped.set(true);
        let id = self.id();
        shared.compactor.forget_pending(&self.table());
        if let Some(tables) = shared.tables() {
            tables.remove(id);
        }
        self.freeze();
        self.memtables.let_go(shared, |_| true);
        let mut manifest = shared.manifest.lock().await;
        let next = manifest.without(id);
        let written = shared.replace_manifest(&mut manifest, next).await;
        written.inspect_err(|error| shared.note_fault("drop a table", error))?;
        drop(manifest);
        shared.account_files();
        shared.delete_files(&self.files.all()).await;
        Ok(())
    }

    /// Empties this shard's part of the table: everything written before goes, in one step.
    ///
    /// # Errors
    /// The table is dropped meanwhile; or the manifest could not be written, and the table is as before, on the disk.
    /// Where this node alone wants it, also when there is no snapshot to be had.
    pub async fn truncate(self: &Rc<Self>, wanted: Emptying) -> Result<(), TableError> {
        let emptying = truncate_in_turn(self, wanted);
        let emptied = self.shared.runtime.failsafe.guarded("a truncation", emptying).await;
        self.unless_dropped(emptied)
    }

    /// What an act of the table came to. The files of one that was dropped meanwhile are gone, which is no failure of
    /// the disk.
    pub(crate) fn unless_dropped<T>(&self, outcome: Result<T, TableError>) -> Result<T, TableError> {
        match outcome {
            Err(_) if self.is_dropped() => Err(TableError::NoTable { table: self.id() }),
            outcome => outcome,
        }
    }
}

async fn truncate_in_turn(store: &Rc<TableStore>, wanted: Emptying) -> Result<(), TableError> {
    let shared = &store.shared;
    if wants_auto_snapshot(store) {
        let flushed = store.flush().await;
        match (flushed.and(store.auto_snapshot(Occasion::Truncated).await), wanted) {
            (Err(error), Emptying::Agreed { .. }) => {
                tracing::error!(%error, table = store.table().name(), "a truncated table has no snapshot of all its rows");
            }
            (kept, _) => kept?,
        }
    }
    let _turn = store.flush_turn.lock().await;
    if let Emptying::Agreed { epoch } = wanted {
        store.memtables.outdate(epoch);
    }
    store.freeze();
    let before: Vec<_> = store.memtables.frozen().iter().map(|frozen| Rc::clone(&frozen.slot)).collect();
    let end = shared.log.end();
    let emptied = FileChange::emptying(end).commit(store).await;
    let files = emptied.inspect_err(|error| shared.note_fault("truncate", error))?.unwrap_or_default();
    store.memtables.note_emptied(end);
    store.files.forget_all_damage();
    // A schema change may have frozen a memtable meanwhile: it holds writes that came after.
    let is_before = |frozen: &Frozen| before.iter().any(|slot| Rc::ptr_eq(slot, &frozen.slot));
    let gone_count = store.memtables.let_go(shared, is_before);
    // Of a table that is dropped meanwhile all have gone. No test can break it: flushes wait for their turn.
    let is_right = gone_count == before.len() || store.is_dropped();
    assert!(is_right, "what was written before the table was emptied goes");
    shared.delete_files(&files).await;
    Ok(())
}
