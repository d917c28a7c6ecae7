//! Which tables differ between two schemas.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Schema, Table, TableId};

/// What a later schema has otherwise than an earlier one.
#[derive(Debug, Default)]
pub struct Changes<'s> {
    /// Tables that are new or have another definition; of those that have the same one, some may be here, too.
    pub put: Vec<&'s Arc<Table>>,
    /// Tables that are there no more.
    pub gone: Vec<TableId>,
}

impl Schema {
    /// What is otherwise than before. Schemas made of each other share what did not change, which is passed over: of
    /// ten thousand tables one is looked at.
    pub fn changes_since<'s>(&'s self, before: &'s Schema) -> Changes<'s> {
        static NONE: BTreeMap<String, Arc<Table>> = BTreeMap::new();
        let mut changes = Changes::default();
        for (was, is) in differing(before.keyspaces(), self.keyspaces()) {
            let was = was.map_or(&NONE, |keyspace| &keyspace.tables);
            let is = is.map_or(&NONE, |keyspace| &keyspace.tables);
            for (was, is) in differing(was, is) {
                changes.put.extend(is);
                changes.gone.extend(was.map(|table| table.id()).filter(|id| self.table_by_id(*id).is_none()));
            }
        }
        changes
    }
}

/// What is in either of two maps and is not the same in both, by name.
fn differing<'m, V>(
    before: &'m BTreeMap<String, Arc<V>>,
    after: &'m BTreeMap<String, Arc<V>>,
) -> impl Iterator<Item = (Option<&'m Arc<V>>, Option<&'m Arc<V>>)> {
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    std::iter::from_fn(move || {
        loop {
            let order = match (before.peek(), after.peek()) {
                (Some((_, was)), Some((_, is))) if Arc::ptr_eq(was, is) => {
                    before.next();
                    after.next();
                    continue;
                }
                (Some((was, _)), Some((is, _))) => was.cmp(is),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return None,
            };
            let was = if order.is_le() { before.next() } else { None };
            let is = if order.is_ge() { after.next() } else { None };
            return Some((was.map(|(_, was)| was), is.map(|(_, is)| is)));
        }
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
