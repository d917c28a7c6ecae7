//! The whole schema at one epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use stdx::id_map::IdHash;

use crate::changes::{differing_keyspaces, differing_tables};
use crate::{Keyspace, Replication, Table, TableId};

/// Every keyspace and table, at one epoch. Immutable, and sharing what did not change with the one before: see
/// [`crate::Transformation`].
#[derive(Clone, Debug, Default)]
pub struct Schema {
    epoch: u64,
    keyspaces: BTreeMap<String, Arc<Keyspace>>,
    index: Index,
    /// Tables that are there and were emptied: at which epoch last.
    truncated: BTreeMap<TableId, u64>,
}

/// What a request wants to know of a table's keyspace. It is the same whatever other tables come and go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The keyspace's name.
    pub name: String,
    /// How it is replicated.
    pub replication: Replication,
    /// Does the commit log keep its writes?
    pub durable_writes: bool,
    replication_factor: u32,
}

/// Tables by their ids, and what requests want to know of their keyspaces, by name.
#[derive(Clone, Debug, Default)]
struct Index {
    homes: BTreeMap<String, Arc<Home>>,
    by_id: GenericHashMap<TableId, Entry, IdHash, DefaultSharedPtr>,
}

#[derive(Clone, Debug)]
struct Entry {
    table: Arc<Table>,
    home: Arc<Home>,
}

impl Home {
    fn of(keyspace: &Keyspace) -> Home {
        let Keyspace { name, durable_writes, replication, .. } = keyspace;
        Home {
            name: name.clone(),
            replication: replication.clone(),
            durable_writes: *durable_writes,
            replication_factor: replication.factor(),
        }
    }
}

impl Index {
    /// Takes in what is otherwise in a keyspace than it was.
    fn take_in(&mut self, was: Option<&Arc<Keyspace>>, is: Option<&Arc<Keyspace>>) {
        let home = is.map(|is| Home::of(is));
        let stays = was.filter(|was| home.as_ref() == Some(&Home::of(was)));
        if let Some(was) = was.filter(|_| stays.is_none()) {
            self.homes.remove(&was.name);
            self.forget(was.tables.values());
        }
        let Some((is, home)) = is.zip(home) else { return };
        let home = Arc::clone(self.homes.entry(is.name.clone()).or_insert_with(|| Arc::new(home)));
        // In another home all tables are new.
        let before = stays.map(|stays| stays.tables.clone()).unwrap_or_default();
        let (gone, come): (Vec<_>, Vec<_>) = differing_tables(&before, &is.tables).unzip();
        self.forget(gone.into_iter().flatten());
        for table in come.into_iter().flatten() {
            self.by_id.insert(table.id(), Entry { table: Arc::clone(table), home: Arc::clone(&home) });
        }
    }

    fn forget<'t>(&mut self, tables: impl IntoIterator<Item = &'t Arc<Table>>) {
        tables.into_iter().for_each(|table| _ = self.by_id.remove(&table.id()));
    }
}

impl Schema {
    /// A schema of these keyspaces at this epoch.
    pub fn new(epoch: u64, keyspaces: impl IntoIterator<Item = Keyspace>) -> Self {
        let keyspaces: BTreeMap<_, _> =
            keyspaces.into_iter().map(|keyspace| (keyspace.name.clone(), Arc::new(keyspace))).collect();
        Schema { epoch, ..Schema::default().next(keyspaces, BTreeMap::new()) }
    }

    /// The next one after this, of these keyspaces.
    pub(crate) fn next(
        &self,
        keyspaces: BTreeMap<String, Arc<Keyspace>>,
        mut truncated: BTreeMap<TableId, u64>,
    ) -> Self {
        let mut index = self.index.clone();
        for (was, is) in differing_keyspaces(&self.keyspaces, &keyspaces) {
            index.take_in(was, is);
        }
        truncated.retain(|table, _| index.by_id.contains_key(table));
        Schema { epoch: self.epoch + 1, keyspaces, index, truncated }
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
        self.index.by_id.get(&id).map(|entry| &entry.table)
    }

    /// The keyspace of the table of that id.
    pub fn keyspace_of(&self, table: TableId) -> Option<&Home> {
        self.index.by_id.get(&table).map(|entry| &*entry.home)
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
        self.index.by_id.get(&table).map(|entry| entry.home.replication_factor)
    }
}

#[cfg(test)]
mod tests {
    use types::CqlType;
    use uuid::Uuid;

    use super::*;
    use crate::{ColumnKind, TableBuilder, Transformation};

    fn id(number: usize) -> TableId {
        TableId(Uuid::from_u128(0x1_0001 * number as u128))
    }

    fn table(keyspace: &str, number: usize, column: usize) -> Box<Table> {
        let table = TableBuilder::new(id(number), keyspace, format!("t{number}"))
            .column("k", ColumnKind::PartitionKey(0), CqlType::Int)
            .column(format!("v{column}"), ColumnKind::Regular, CqlType::Int);
        Box::new(table.build().expect("a table"))
    }

    /// A change of something, of two keyspaces of up to 40 tables.
    fn change(step: usize) -> Transformation {
        let (number, name) = (step * 7 % 40, if step.is_multiple_of(3) { "a" } else { "b" }.to_owned());
        let factor = (step % 3 + 1).to_string();
        let options = BTreeMap::from([("replication_factor".to_owned(), factor)]);
        let replication = Replication { class: "SimpleStrategy".to_owned(), options };
        match step % 23 {
            0 => Transformation::DropKeyspace { name },
            1..4 => Transformation::CreateKeyspace { name, replication, durable_writes: true },
            4 => Transformation::AlterKeyspace { name, replication, durable_writes: step.is_multiple_of(2) },
            5..8 => Transformation::AlterTable { table: table(&name, number, step) },
            8 | 9 => Transformation::DropTable { keyspace: name, name: format!("t{number}"), id: id(number) },
            10 => {
                Transformation::TruncateTable { keyspace: name, name: format!("t{number}"), id: id(number) }
            }
            // Ids of tables of two keyspaces differ.
            _ => Transformation::CreateTable {
                table: table(&name, number + usize::from(name == "b") * 40, step),
            },
        }
    }

    #[test]
    fn a_schema_made_step_by_step_is_the_same_as_one_made_at_once() {
        let (mut schema, mut taken_count) = (Schema::default(), 0);
        for step in 0..4_000 {
            let Ok(next) = change(step).apply(&schema) else { continue };
            taken_count += 1;
            schema = next;
            let keyspaces = schema.keyspaces.values().map(|keyspace| Keyspace::clone(keyspace));
            let at_once = Schema::new(schema.epoch, keyspaces);
            assert_eq!(schema.index.homes, at_once.index.homes);
            assert_eq!(schema.index.by_id.len(), at_once.index.by_id.len(), "after step {step}");
            for (id, Entry { table, home }) in &at_once.index.by_id {
                let home = &**home;
                assert_eq!((schema.table_by_id(*id), schema.keyspace_of(*id)), (Some(table), Some(home)));
            }
            assert!(schema.truncated.keys().all(|table| schema.index.by_id.contains_key(table)));
        }
        assert!(taken_count > 1_000, "{taken_count} changes were taken");
    }
}
