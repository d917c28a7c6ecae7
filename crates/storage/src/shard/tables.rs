//! How the shard learns of a new schema, empties a table, and tells how its tables are.

use std::rc::Rc;
use std::sync::Arc;

use memtable::{Memtable, MemtableSlot};
use schema::{Schema, Table, TableId};

use super::commit::{FileChange, Removed};
use super::snapshot::Occasion;
use super::{Shard, TableStore};
use crate::StorageError;
use crate::metrics::{TableStats, of_files};

impl Shard {
    /// Takes a newer schema: makes room for new tables, lets go of dropped ones, hands changed
    /// definitions to the rest. An older one is ignored.
    ///
    /// # Errors
    /// A manifest could not be written; the new schema is in force all the same.
    pub async fn take_schema(self: &Rc<Self>, schema: Arc<Schema>) -> Result<(), StorageError> {
        if schema.epoch() <= self.schema.borrow().epoch() {
            return Ok(());
        }
        let tables = schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values());
        for table in tables {
            let known = self.tables.borrow().get(&table.id()).cloned();
            match known {
                None => {
                    let store = TableStore::new(Arc::clone(table), None, &self.health, &self.runtime);
                    self.tables.borrow_mut().insert(table.id(), store);
                }
                Some(store) => {
                    let redefine = || self.redefine(&store, table);
                    self.runtime.failsafe.guard("a new definition of a table", redefine);
                }
            }
        }
        self.periods_changed.notify_one();
        *self.schema.borrow_mut() = Arc::clone(&schema);
        let is_gone = |store: &Rc<TableStore>| schema.table_by_id(store.table().id()).is_none();
        let mut result = Ok(());
        for store in self.stores().into_iter().filter(is_gone) {
            let dropped = self.runtime.failsafe.guarded("a drop of a table", self.drop_table(&store)).await;
            result = result.and(dropped);
        }
        result
    }

    fn redefine(self: &Rc<Self>, store: &Rc<TableStore>, table: &Arc<Table>) {
        if *store.table.borrow() == *table {
            return;
        }
        // A memtable keeps to one definition.
        self.freeze(store);
        store.active_since.set(self.runtime.clock.elapsed());
        *store.table.borrow_mut() = Arc::clone(table);
        store.chunk_length.go_on_from(&store.files());
        *store.active.borrow_mut() = MemtableSlot::active(Memtable::new(Arc::clone(table)));
        if !store.frozen.borrow().is_empty() {
            self.spawn_flush(Rc::clone(store));
        }
        // Another strategy may have something to do, and files may not be as they are to be any more.
        self.start_compaction(store);
    }

    async fn drop_table(self: &Rc<Self>, store: &Rc<TableStore>) -> Result<(), StorageError> {
        if self.wants_auto_snapshot(&store.table()) {
            let flushed = self.flush_store(store).await;
            if let Err(error) = flushed.and(self.auto_snapshot(store, Occasion::Dropped).await) {
                tracing::error!(%error, table = store.table().name(), "a dropped table has no snapshot of all its rows");
            }
        }
        store.is_dropped.set(true);
        let id = store.table().id();
        self.forget_pending(store);
        self.tables.borrow_mut().remove(&id);
        self.freeze(store);
        self.forget_frozen(store, |_| true);
        let mut manifest = self.manifest.lock().await;
        let next = manifest.without(id);
        let written = self.replace_manifest(&mut manifest, next).await;
        written.inspect_err(|error| self.note_fault("drop a table", error))?;
        drop(manifest);
        self.account_files();
        self.delete_files(&store.files()).await;
        Ok(())
    }

    /// Empties this shard's part of a table: everything written before goes, in one step.
    ///
    /// # Errors
    /// There is no such table, or it is dropped meanwhile; or the manifest could not be written, and the table is as
    /// before, on the disk.
    pub async fn truncate(self: &Rc<Self>, table: TableId) -> Result<(), StorageError> {
        let store = self.store(table)?;
        let emptied = self.runtime.failsafe.guarded("a truncation", self.truncate_store(&store)).await;
        unless_dropped(&store, emptied)
    }

    async fn truncate_store(self: &Rc<Self>, store: &Rc<TableStore>) -> Result<(), StorageError> {
        if self.wants_auto_snapshot(&store.table()) {
            self.flush_store(store).await?;
            self.auto_snapshot(store, Occasion::Truncated).await?;
        }
        let _turn = store.flush_turn.lock().await;
        self.freeze(store);
        let before: Vec<_> = store.frozen.borrow().iter().map(|frozen| Rc::clone(&frozen.slot)).collect();
        let change = FileChange { added: Vec::new(), removed: Removed::All, flushed: Some(self.log.end()) };
        let emptied = self.commit(store, change).await;
        let files = emptied.inspect_err(|error| self.note_fault("truncate", error))?.unwrap_or_default();
        store.damage.borrow_mut().clear();
        // A schema change may have frozen a memtable meanwhile: it holds writes that came after.
        self.forget_frozen(store, |frozen| before.iter().any(|slot| Rc::ptr_eq(slot, &frozen.slot)));
        self.delete_files(&files).await;
        Ok(())
    }

    /// About how many partitions of a table are here: too many where several files know one.
    ///
    /// # Errors
    /// There is no such table.
    pub fn partition_count_estimate(&self, table: TableId) -> Result<u64, StorageError> {
        let store = self.store(table)?;
        let in_files: u64 = store.files().iter().map(|file| file.summary().partition_count).sum();
        let in_memory = store.memtables().into_iter().map(|slot| slot.with(Memtable::partition_count));
        Ok(in_files + in_memory.sum::<usize>() as u64)
    }

    /// What is known of a table here.
    ///
    /// # Errors
    /// There is no such table.
    pub fn table_stats(&self, table: TableId) -> Result<TableStats, StorageError> {
        let store = self.store(table)?;
        let gc_before = self.now_seconds().saturating_sub(store.table().options().gc_grace_seconds);
        let mut stats = of_files(&store.files(), gc_before);
        let memtables = store.memtables();
        let in_memory = |of: fn(&Memtable) -> u64| memtables.iter().map(|slot| slot.with(of)).sum::<u64>();
        let metrics = &store.metrics;
        let (live_rows_per_read, tombstones_per_read) = metrics.slices(self.runtime.clock.elapsed());
        let (current_sstable_count, current_compressed_bytes) = store.files_as_asked();
        stats.estimated_partition_count += in_memory(|memtable| memtable.partition_count() as u64);
        Ok(TableStats {
            read_count: metrics.read_count.get(),
            read_nanos: metrics.read_nanos.get(),
            write_count: metrics.write_count.get(),
            write_nanos: metrics.write_nanos.get(),
            pending_flushes: store.frozen.borrow().len() as u64,
            memtable_cell_count: in_memory(Memtable::operation_count),
            memtable_data_size: in_memory(|memtable| memtable.memory_bytes() as u64),
            memtable_switch_count: metrics.flush_count.get(),
            memtable_partition_count: in_memory(|memtable| memtable.partition_count() as u64),
            cache_hit_count: metrics.cache_hit_count.get(),
            cache_miss_count: metrics.cache_miss_count.get(),
            live_rows_per_read,
            tombstones_per_read,
            current_sstable_count,
            current_compressed_bytes,
            chunk_length: store.chunk_length.stats(&store.table().options().compression),
            prefetch: store.prefetch.stats(&store.table()),
            damaged_files: store.damage.borrow().iter().map(|damaged| damaged.reason.clone()).collect(),
            ..stats
        })
    }

    /// Refuses writes from now on, then writes everything out. Reads go on.
    ///
    /// # Errors
    /// The disk failed; the log has what is not in files.
    pub async fn drain(self: &Rc<Self>) -> Result<(), StorageError> {
        self.is_stopping.set(true);
        self.flushing.room.notify_waiters();
        self.flush_all().await?;
        self.note_hot().await;
        self.close_log().await
    }

    /// Writes everything out and takes nothing more: the way to a clean stop.
    ///
    /// # Errors
    /// The disk failed; the log has what is not in files.
    pub async fn stop(self: &Rc<Self>, flush_first: bool) -> Result<(), StorageError> {
        let flushed = if flush_first { self.flush_all().await } else { Ok(()) };
        self.is_stopping.set(true);
        self.flushing.room.notify_waiters();
        self.note_hot().await;
        let closed = self.close_log().await;
        flushed.and(closed)
    }
}

/// What an act of a table came to. The files of one that was dropped meanwhile are gone, which is no failure of the
/// disk.
pub(super) fn unless_dropped<T>(
    store: &TableStore,
    outcome: Result<T, StorageError>,
) -> Result<T, StorageError> {
    match outcome {
        Err(_) if store.is_dropped.get() => Err(StorageError::NoTable { table: store.table().id() }),
        outcome => outcome,
    }
}
