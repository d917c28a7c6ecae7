//! Which tables differ between two schemas.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use crate::{Keyspace, Schema, Table, TableId};

/// What a later schema has otherwise than an earlier one.
#[derive(Debug, Default)]
pub struct Changes<'s> {
    /// Tables that are new or have another definition.
    pub put: Vec<&'s Arc<Table>>,
    /// Tables that are there no more.
    pub gone: Vec<TableId>,
}

impl Schema {
    /// What is otherwise than before. Schemas made of each other share what did not change, which is passed over: of
    /// ten thousand tables some dozen are looked at.
    pub fn changes_since<'s>(&'s self, before: &'s Schema) -> Changes<'s> {
        static NONE: LazyLock<OrdMap<String, Arc<Table>>> = LazyLock::new(OrdMap::new);
        let mut changes = Changes::default();
        for (was, is) in differing_keyspaces(before.keyspaces(), self.keyspaces()) {
            let [was, is] = [was, is].map(|keyspace| keyspace.map_or(&*NONE, |keyspace| &keyspace.tables));
            for (was, is) in differing_tables(was, is) {
                changes.put.extend(is);
                changes.gone.extend(was.map(|table| table.id()).filter(|id| self.table_by_id(*id).is_none()));
            }
        }
        changes
    }
}

/// Keyspaces that are in either of two maps and may not be the same in both, as they were and as they are: those that
/// are gone first.
pub(crate) fn differing_keyspaces<'m>(
    was: &'m BTreeMap<String, Arc<Keyspace>>,
    is: &'m BTreeMap<String, Arc<Keyspace>>,
) -> impl Iterator<Item = (Option<&'m Arc<Keyspace>>, Option<&'m Arc<Keyspace>>)> {
    let gone = was.iter().filter(|(name, _)| !is.contains_key(*name)).map(|(_, was)| (Some(was), None));
    let there = is.iter().map(|(name, is)| (was.get(name), is));
    let differ = there.filter(|(was, is)| was.is_none_or(|was| !Arc::ptr_eq(was, is)));
    gone.chain(differ.map(|(was, is)| (was, Some(is))))
}

/// Tables that are in either of two maps and are not the same in both, as they were and as they are. What the maps
/// share is passed over.
pub(crate) fn differing_tables<'m>(
    was: &'m OrdMap<String, Arc<Table>>,
    is: &'m OrdMap<String, Arc<Table>>,
) -> impl Iterator<Item = (Option<&'m Arc<Table>>, Option<&'m Arc<Table>>)> {
    was.diff(is).map(|change| match change {
        DiffItem::Add(_, is) => (None, Some(is)),
        DiffItem::Update { old: (_, was), new: (_, is) } => (Some(was), Some(is)),
        DiffItem::Remove(_, was) => (Some(was), None),
    })
}

#[cfg(test)]
mod tests {
    use types::CqlType;
    use uuid::Uuid;

    use super::*;
    use crate::{ColumnKind, Replication, TableBuilder, Transformation};

    fn table(keyspace: &str, name: &str, id: u128) -> Transformation {
        let table = TableBuilder::new(TableId(Uuid::from_u128(id)), keyspace, name)
            .column("k", ColumnKind::PartitionKey(0), CqlType::Int)
            .column(format!("v{id}"), ColumnKind::Regular, CqlType::Int);
        Transformation::CreateTable { table: Box::new(table.build().unwrap()) }
    }

    fn drop_table(keyspace: &str, name: &str, id: u128) -> Transformation {
        let id = TableId(Uuid::from_u128(id));
        Transformation::DropTable { keyspace: keyspace.into(), name: name.into(), id }
    }

    fn keyspace(name: &str) -> Transformation {
        let replication = Replication { class: "SimpleStrategy".into(), options: BTreeMap::new() };
        Transformation::CreateKeyspace { name: name.into(), replication, durable_writes: true }
    }

    fn after(schema: &Schema, changes: &[Transformation]) -> Schema {
        changes.iter().fold(schema.clone(), |schema, change| change.apply(&schema).unwrap())
    }

    #[track_caller]
    fn check(before: &Schema, after: &Schema, put: &[&str], gone: &[u128]) {
        let changes = after.changes_since(before);
        let names: Vec<&str> = changes.put.iter().map(|table| table.name()).collect();
        assert_eq!(names, put);
        assert_eq!(changes.gone, gone.iter().map(|id| TableId(Uuid::from_u128(*id))).collect::<Vec<_>>());
    }

    #[test]
    fn what_did_not_change_is_passed_over() {
        let all = [keyspace("a"), table("a", "x", 1), table("a", "z", 2), keyspace("b"), table("b", "t", 3)];
        let before = after(&Schema::default(), &all);
        check(&Schema::default(), &before, &["x", "z", "t"], &[]);
        check(&before, &before, &[], &[]);
        check(&before, &after(&before, &[table("a", "y", 4)]), &["y"], &[]);
        check(&before, &after(&before, &[drop_table("a", "x", 1)]), &[], &[1]);
        let anew = [drop_table("a", "x", 1), table("a", "x", 5), keyspace("c")];
        check(&before, &after(&before, &anew), &["x"], &[1]);
        check(&before, &after(&before, &[Transformation::DropKeyspace { name: "b".into() }]), &[], &[3]);
    }
}
