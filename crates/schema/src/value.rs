//! The whole schema at one epoch.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::{Keyspace, Table, TableId};

/// Every keyspace and table, at one epoch. Immutable: see [`crate::Transformation`].
#[derive(Clone, Debug, Default)]
pub struct Schema {
    epoch: u64,
    keyspaces: BTreeMap<String, Arc<Keyspace>>,
    tables_by_id: HashMap<TableId, Arc<Table>>,
}

impl Schema {
    /// A schema of these keyspaces at this epoch.
    pub fn new(epoch: u64, keyspaces: impl IntoIterator<Item = Keyspace>) -> Self {
        let keyspaces: BTreeMap<_, _> =
            keyspaces.into_iter().map(|keyspace| (keyspace.name.clone(), Arc::new(keyspace))).collect();
        Self::from_parts(epoch, keyspaces)
    }

    pub(crate) fn from_parts(epoch: u64, keyspaces: BTreeMap<String, Arc<Keyspace>>) -> Self {
        let tables_by_id = keyspaces
            .values()
            .flat_map(|keyspace| keyspace.tables.values())
            .map(|table| (table.id(), Arc::clone(table)))
            .collect();
        Schema { epoch, keyspaces, tables_by_id }
    }

    /// Counts the transformations applied so far.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Keyspaces by name.
    pub fn keyspaces(&self) -> &BTreeMap<String, Arc<Keyspace>> {
        &self.keyspaces
    }

    /// The keyspace of that name.
    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(name)
    }

    /// The table of that name.
    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Arc<Table>> {
        self.keyspaces.get(keyspace)?.tables.get(name)
    }

    /// The table of that id.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables_by_id.get(&id)
    }
}
