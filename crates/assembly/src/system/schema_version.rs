//! The version of a schema: a digest that clients compare to see whether nodes agree.

use std::collections::HashMap;
use std::sync::Arc;

use md5::{Digest, Md5};
use schema::{Keyspace, Schema, Table, TableId};
use types::CqlType;
use uuid::Uuid;

use super::definitions::digest_id;

type TableDigest = [u8; 16];

/// Makes versions, and remembers the digests of tables that did not change since the last one.
#[derive(Default)]
pub(super) struct SchemaVersions {
    tables: HashMap<TableId, (Arc<Table>, TableDigest)>,
}

impl SchemaVersions {
    /// The version of that schema: another one at every epoch, the same on all nodes.
    pub(super) fn of(&mut self, schema: &Schema) -> Uuid {
        let mut digest = Md5::new_with_prefix(schema.epoch().to_be_bytes());
        let mut tables = HashMap::with_capacity(self.tables.len());
        for keyspace in schema.keyspaces().values() {
            add_keyspace(&mut digest, keyspace);
            for table in keyspace.tables.values() {
                let known = self.tables.remove(&table.id()).filter(|(known, _)| Arc::ptr_eq(known, table));
                let (table, of) = known.unwrap_or_else(|| (Arc::clone(table), table_digest(table)));
                digest.update(of);
                tables.insert(table.id(), (table, of));
            }
        }
        self.tables = tables;
        digest_id(digest)
    }
}

/// Lengths stand before texts, so that no two schemas make the same bytes.
fn add_text(digest: &mut Md5, text: &str) {
    digest.update((text.len() as u64).to_be_bytes());
    digest.update(text);
}

fn add_keyspace(digest: &mut Md5, keyspace: &Keyspace) {
    add_text(digest, &keyspace.name);
    add_text(digest, &keyspace.replication.class);
    for (name, value) in &keyspace.replication.options {
        add_text(digest, name);
        add_text(digest, value);
    }
    digest.update([u8::from(keyspace.durable_writes)]);
    for definition in keyspace.types.values() {
        let definition = Arc::clone(definition);
        add_text(digest, &CqlType::UserDefined { definition, frozen: false }.to_marshal());
    }
}

fn table_digest(table: &Table) -> TableDigest {
    let mut digest = Md5::new_with_prefix(table.id().0.as_bytes());
    add_text(&mut digest, table.name());
    for column in table.columns() {
        add_text(&mut digest, &column.name);
        add_text(&mut digest, &format!("{:?}", column.kind));
        add_text(&mut digest, &column.cql_type.to_marshal());
    }
    add_text(&mut digest, &format!("{:?}", table.options()));
    for (name, dropped) in table.dropped_columns() {
        add_text(&mut digest, name);
        digest.update(dropped.dropped_time_us.to_be_bytes());
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::super::definitions::base_schema;
    use super::*;
    use schema::{Replication, Transformation};

    #[test]
    fn the_version_changes_with_the_schema_and_with_nothing_else() {
        let base = base_schema().expect("schema");
        let first = SchemaVersions::default().of(&base);
        let mut versions = SchemaVersions::default();
        assert_eq!(versions.of(&base), first);
        assert_eq!(versions.of(&base), first);
        assert_eq!(first.get_version_num(), 3);
        let replication = Replication { class: "SimpleStrategy".into(), options: Default::default() };
        let create = Transformation::CreateKeyspace { name: "k".into(), replication, durable_writes: true };
        let created = create.apply(&base).expect("created");
        let second = versions.of(&created);
        assert_ne!(second, first);
        let dropped = Transformation::DropKeyspace { name: "k".into() }.apply(&created).expect("dropped");
        let third = versions.of(&dropped);
        assert!(third != first && third != second);
    }
}
