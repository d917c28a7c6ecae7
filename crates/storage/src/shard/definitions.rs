//! How the shard learns of a new schema.

use std::sync::Arc;

use schema::{Changes, Schema};
use table::TableStore;

use super::Shard;
use crate::StorageError;

impl Shard {
    /// Takes a newer schema: makes room for new tables, lets go of dropped ones, hands changed
    /// definitions to the rest. An older one is ignored.
    ///
    /// # Errors
    /// A manifest could not be written; the new schema is in force all the same.
    pub async fn take_schema(&self, schema: Arc<Schema>) -> Result<(), StorageError> {
        if schema.epoch() <= self.schema.borrow().epoch() {
            return Ok(());
        }
        let failsafe = &self.shared.runtime.failsafe;
        let before = Arc::clone(&self.schema.borrow());
        let Changes { put, gone } = schema.changes_since(&before);
        for table in &put {
            match self.tables.get(table.id()) {
                None => {
                    let store = TableStore::new(
                        Arc::clone(table),
                        None,
                        schema.truncated_at(table.id()),
                        &self.shared,
                    );
                    self.tables.add(table.id(), store);
                }
                Some(store) => failsafe.guard("a new definition of a table", || store.redefine(table)),
            }
        }
        if put.iter().any(|table| table.options().memtable_flush_period_in_ms > 0) {
            self.periods_changed.notify_one();
        }
        *self.schema.borrow_mut() = Arc::clone(&schema);
        let mut result = Ok(());
        for store in gone.into_iter().filter_map(|id| self.tables.get(id)) {
            let dropped = failsafe.guarded("a drop of a table", store.drop_all()).await;
            result = result.and(dropped);
        }
        Ok(result?)
    }
}
