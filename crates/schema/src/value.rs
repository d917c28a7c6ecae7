//! The whole schema at one epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::id_map::IdMap;

use crate::{Keyspace, Table, TableId};

/// Every keyspace and table, at one epoch. Immutable: see [`crate::Transformation`].
#[derive(Clone, Debug, Default)]
pub struct Schema {
    epoch: u64,
    keyspaces: BTreeMap<String, Arc<Keyspace>>,
    by_id: IdMap<TableId, Entry>,
    /// Tables that are there and were emptied: at which epoch last.
    truncated: BTreeMap<TableId, u64>,
}

/// A table and what a request wants to know of its keyspace.
#[derive(Clone, Debug)]
struct Entry {
    table: Arc<Table>,
    keyspace: Arc<Keyspace>,
    replication_factor: u32,
}

impl Schema {
    /// A schema of these keyspaces at this epoch.
    pub fn new(epoch: u64, keyspaces: impl IntoIterator<Item = Keyspace>) -> Self {
        let keyspaces: BTreeMap<_, _> =
            keyspaces.into_iter().map(|keyspace| (keyspace.name.clone(), Arc::new(keyspace))).collect();
        Self::from_parts(epoch, keyspaces, BTreeMap::new())
    }

    pub(crate) fn from_parts(
        epoch: u64,
        keyspaces: BTreeMap<String, Arc<Keyspace>>,
        mut truncated: BTreeMap<TableId, u64>,
    ) -> Self {
        let mut by_id = IdMap::default();
        by_id.reserve(keyspaces.values().map(|keyspace| keyspace.tables.len()).sum());
        for keyspace in keyspaces.values() {
            let replication_factor = keyspace.replication.factor();
            for table in keyspace.tables.values() {
                let (table, keyspace) = (Arc::clone(table), Arc::clone(keyspace));
                by_id.insert(table.id(), Entry { table, keyspace, replication_factor });
            }
        }
        truncated.retain(|table, _| by_id.contains_key(table));
        Schema { epoch, keyspaces, by_id, truncated }
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
        self.by_id.get(&id).map(|entry| &entry.table)
    }

    /// The keyspace of the table of that id.
    pub fn keyspace_of(&self, table: TableId) -> Option<&Arc<Keyspace>> {
        self.by_id.get(&table).map(|entry| &entry.keyspace)
    }

    /// The epoch at which that table was emptied last; 0 when it never was. Writes that were planned before that are
    /// not in it.
    pub fn truncated_at(&self, table: TableId) -> u64 {
        self.truncated.get(&table).copied().unwrap_or(0)
    }

    pub(crate) fn truncated(&self) -> &BTreeMap<TableId, u64> {
        &self.truncated
    }

    /// How many replicas each partition of the table of that id has; see [`crate::Replication::factor`].
    pub fn replication_factor(&self, table: TableId) -> Option<u32> {
        self.by_id.get(&table).map(|entry| entry.replication_factor)
    }
}
