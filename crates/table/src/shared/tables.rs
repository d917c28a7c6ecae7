//! All tables of a shard.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use commitlog::LogPosition;
use schema::TableId;
use sstable::TableFile;
use stdx::id_map::IdMap;

use crate::TableStore;

/// The tables of a shard.
#[derive(Default)]
pub struct Tables(RefCell<IdMap<TableId, Rc<TableStore>>>);

impl Tables {
    /// One of them.
    #[inline]
    pub fn get(&self, id: TableId) -> Option<Rc<TableStore>> {
        self.0.borrow().get(&id).cloned()
    }

    /// All of them, in the order of their ids.
    pub fn all(&self) -> Vec<Rc<TableStore>> {
        let mut all: Vec<_> = self.0.borrow().iter().map(|(id, store)| (*id, Rc::clone(store))).collect();
        all.sort_by_key(|(id, _)| *id);
        all.into_iter().map(|(_, store)| store).collect()
    }

    /// Takes a new one.
    pub fn add(&self, id: TableId, store: Rc<TableStore>) {
        let known = self.0.borrow_mut().insert(id, store);
        assert!(known.is_none(), "a table is there once");
    }

    /// Lets go of one that is dropped.
    pub(crate) fn remove(&self, id: TableId) {
        let gone = self.0.borrow_mut().remove(&id);
        // What another has in memory alone would be flushed by nobody.
        assert!(gone.is_none_or(|store| store.is_dropped()), "a table goes when it is dropped");
    }

    /// Has any of them the file?
    pub(super) fn have(&self, file: &Arc<TableFile>) -> bool {
        self.0.borrow().values().any(|store| store.files().has(file))
    }

    /// Memory that their files hold as long as they are open.
    pub(super) fn pinned_bytes(&self) -> usize {
        let tables = self.0.borrow();
        tables.values().map(|store| store.files().memory_bytes()).fold(0, usize::saturating_add)
    }

    /// Bytes in all memtables.
    pub(super) fn memtable_bytes(&self) -> usize {
        self.0.borrow().values().map(|store| store.memtables().memory_bytes()).sum()
    }

    /// The log position of the oldest write that no file has.
    pub(super) fn first_position(&self) -> Option<LogPosition> {
        self.0.borrow().values().filter_map(|store| store.memtables().first_position()).min()
    }

    /// Starts a flush of the table with most in memory; `false` when no table has anything.
    pub(super) fn flush_largest(&self) -> bool {
        let largest = self.all().into_iter().max_by_key(|store| store.memtables().memory_bytes());
        let found = largest.filter(|store| store.memtables().memory_bytes() > 0);
        found.map(|store| store.spawn_flush()).is_some()
    }

    /// Starts flushes of those that hold back log segments up to that one.
    pub(super) fn flush_up_to(&self, segment: u64) {
        let is_old = |position: LogPosition| position.segment <= segment;
        let holds_back = |store: &Rc<TableStore>| store.memtables().first_position().is_some_and(is_old);
        self.all().into_iter().filter(holds_back).for_each(|store| store.spawn_flush());
    }

    /// Starts flushes of those that have taken writes.
    pub fn flush_written(&self) {
        let has_writes = |store: &Rc<TableStore>| !store.memtables().is_active_empty();
        self.all().into_iter().filter(has_writes).for_each(|store| store.spawn_flush());
    }
}
