//! How the shard learns of a new schema.

use std::rc::Rc;
use std::sync::Arc;

use schema::Schema;
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
        for table in schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values()) {
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
        self.periods_changed.notify_one();
        *self.schema.borrow_mut() = Arc::clone(&schema);
        let is_gone = |store: &Rc<TableStore>| schema.table_by_id(store.id()).is_none();
        let mut result = Ok(());
        for store in self.tables.all().into_iter().filter(is_gone) {
            let dropped = failsafe.guarded("a drop of a table", store.drop_all()).await;
            result = result.and(dropped);
        }
        Ok(result?)
    }
}
