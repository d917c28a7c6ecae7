//! What can be asked of compactions and told to them: progress, history, stop, on and off.

use std::collections::BTreeMap;
use std::rc::Rc;

use compaction::{ActiveCompaction, CompactionKind, CompactionRecord, CompactionTotals};
use schema::TableId;
use uuid::Uuid;

use crate::StorageError;
use crate::shard::{Shard, TableStore};

impl Shard {
    /// Compactions that go on here.
    pub fn active_compactions(&self) -> Vec<ActiveCompaction> {
        let active = self.compactions.active.borrow();
        let tell = |active: &Rc<super::Active>| {
            let table = active.store.table();
            ActiveCompaction {
                id: active.id,
                kind: active.kind,
                keyspace: table.keyspace().to_owned(),
                table: table.name().to_owned(),
                completed_bytes: active.watch.read_bytes().min(active.total_bytes),
                total_bytes: active.total_bytes,
                total_compressed_bytes: active.total_compressed_bytes,
                file_count: active.file_count,
                directory: self.table_directory(&table).unwrap_or_else(|_| self.layout.table(&table)),
            }
        };
        active.iter().map(tell).collect()
    }

    /// Compactions that ended here in the last week, also before the start; the oldest first.
    pub fn compaction_history(&self) -> Vec<CompactionRecord> {
        self.compactions.history.borrow().records()
    }

    /// What compactions did here since the start.
    pub fn compaction_totals(&self) -> CompactionTotals {
        let control = &self.compactions.control;
        let mut totals = self.compactions.totals.borrow().clone();
        for store in self.stores() {
            let claim_count = store.compacting.claim_count.get();
            if claim_count > 0 {
                *totals.pending.entry(super::name_of(&store.table())).or_default() += claim_count;
            }
        }
        CompactionTotals {
            concurrent: control.slot_count() as u64,
            bytes_per_second: control.rate(),
            ..totals
        }
    }

    /// Stops compactions of these kinds that go on here, or the one of that id; their inputs stay. How many
    /// were there?
    pub fn stop_compactions(&self, id: Option<Uuid>, kinds: &[CompactionKind]) -> usize {
        let active = self.compactions.active.borrow();
        let is_meant =
            |active: &&Rc<super::Active>| kinds.contains(&active.kind) && id.is_none_or(|id| active.id == id);
        active.iter().filter(is_meant).inspect(|active| active.watch.stop()).count()
    }

    /// Bytes a second that all compactions of the node may read; 0 is without limit. One rate for all
    /// shards: it is enough to tell one of them.
    pub fn set_compaction_rate(&self, bytes_per_second: u64) {
        self.compactions.control.set_rate(bytes_per_second);
    }

    /// Turns the compactions that strategies ask for on or off for a table, until the next start.
    ///
    /// # Errors
    /// There is no such table.
    pub fn set_auto_compaction(self: &Rc<Self>, table: TableId, is_on: bool) -> Result<(), StorageError> {
        let store = self.store(table)?;
        store.compacting.is_off.set(!is_on);
        if is_on {
            self.start_compaction(&store);
        } else {
            self.forget_pending(&store);
            self.stop_active_of(&store);
        }
        Ok(())
    }

    /// Are compactions that the strategy asks for on, as far as `nodetool` is concerned?
    ///
    /// # Errors
    /// There is no such table.
    pub fn is_auto_compaction_on(&self, table: TableId) -> Result<bool, StorageError> {
        Ok(!self.store(table)?.compacting.is_off.get())
    }

    /// Which tables have which of the files here.
    pub fn tables_of_files(&self, files: &[Uuid]) -> BTreeMap<TableId, Vec<Uuid>> {
        let mut tables: BTreeMap<TableId, Vec<Uuid>> = BTreeMap::new();
        for store in self.stores() {
            let of_table = store.files();
            let ids = of_table.iter().map(|file| file.descriptor().id).filter(|id| files.contains(id));
            let ids: Vec<Uuid> = ids.collect();
            if !ids.is_empty() {
                tables.insert(store.table().id(), ids);
            }
        }
        tables
    }

    fn stop_active_of(&self, store: &Rc<TableStore>) {
        let active = self.compactions.active.borrow();
        active
            .iter()
            .filter(|active| Rc::ptr_eq(&active.store, store))
            .for_each(|active| active.watch.stop());
    }

    /// Stops the compactions of a table and waits until they are gone.
    pub(super) async fn stop_table(&self, store: &Rc<TableStore>) {
        loop {
            let rest = store.compacting.rest.notified();
            tokio::pin!(rest);
            rest.as_mut().enable();
            if store.compacting.busy.borrow().is_empty() {
                return;
            }
            self.stop_active_of(store);
            rest.await;
        }
    }
}
