//! The keyspaces a node is born with, as CQL texts: one file each in `definitions/`.
//!
//! The texts hold columns, keys and what is special to a table; what all tables of a keyspace have
//! in common is in [`SYSTEM`] and its neighbours here.

use std::collections::BTreeMap;
use std::sync::Arc;

use cql::ast::{CqlTypeName, CreateTable, Property, StatementKind};
use md5::{Digest, Md5};
use schema::{
    ClusteringOrder, ColumnKind, CompactionOptions, Keyspace, Replication, Schema, Table, TableBuilder,
    TableId, TableOptions,
};
use types::CqlType;
use uuid::Uuid;

use crate::AssemblyError;

/// A keyspace that every node has.
struct Definition {
    name: &'static str,
    text: &'static str,
    /// Replicas; 0 for data that belongs to one node and is replicated nowhere.
    replication_factor: u32,
    gc_grace_seconds: u32,
    memtable_flush_period_in_ms: u32,
}

/// An hour: most of these tables are written seldom, and should not hold the commit log back.
const HOURLY: u32 = 3_600_000;

const SYSTEM: Definition = Definition {
    name: "system",
    text: include_str!("definitions/system.cql"),
    replication_factor: 0,
    gc_grace_seconds: 0,
    memtable_flush_period_in_ms: HOURLY,
};
const SYSTEM_SCHEMA: Definition = Definition {
    name: "system_schema",
    text: include_str!("definitions/system_schema.cql"),
    replication_factor: 0,
    gc_grace_seconds: 7 * 86_400,
    memtable_flush_period_in_ms: HOURLY,
};
const SYSTEM_AUTH: Definition = Definition {
    name: "system_auth",
    text: include_str!("definitions/system_auth.cql"),
    replication_factor: 1,
    gc_grace_seconds: 90 * 86_400,
    memtable_flush_period_in_ms: 0,
};
const SYSTEM_DISTRIBUTED: Definition = Definition {
    name: "system_distributed",
    text: include_str!("definitions/system_distributed.cql"),
    replication_factor: 3,
    gc_grace_seconds: 10 * 86_400,
    memtable_flush_period_in_ms: 0,
};
const SYSTEM_TRACES: Definition = Definition {
    name: "system_traces",
    text: include_str!("definitions/system_traces.cql"),
    replication_factor: 2,
    gc_grace_seconds: 0,
    memtable_flush_period_in_ms: 0,
};
const SYSTEM_VIEWS: Definition = Definition {
    name: "system_views",
    text: include_str!("definitions/system_views.cql"),
    replication_factor: 0,
    gc_grace_seconds: 0,
    memtable_flush_period_in_ms: 0,
};
const SYSTEM_VIRTUAL_SCHEMA: Definition = Definition {
    name: "system_virtual_schema",
    text: include_str!("definitions/system_virtual_schema.cql"),
    ..SYSTEM_VIEWS
};

/// The schema of a node that nobody has changed yet, at epoch 0.
///
/// # Errors
/// A text in `definitions/` is wrong, which the tests of this file would have shown.
pub fn base_schema() -> Result<Schema, AssemblyError> {
    let keyspaces = [SYSTEM, SYSTEM_SCHEMA, SYSTEM_AUTH, SYSTEM_DISTRIBUTED, SYSTEM_TRACES]
        .iter()
        .map(keyspace)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Schema::new(0, keyspaces))
}

/// The keyspaces that are no part of the schema: made up when they are read, never changed.
///
/// # Errors
/// As [`base_schema`].
pub(crate) fn virtual_keyspaces() -> Result<Vec<Arc<Keyspace>>, AssemblyError> {
    [SYSTEM_VIEWS, SYSTEM_VIRTUAL_SCHEMA]
        .iter()
        .map(|definition| keyspace(definition).map(Arc::new))
        .collect()
}

fn keyspace(definition: &Definition) -> Result<Keyspace, AssemblyError> {
    let tables = definition.text.split_inclusive(";\n").filter(|text| text.contains("CREATE TABLE"));
    let tables = tables
        .map(|text| {
            let table = table(definition, text)?;
            Ok((table.name().to_owned(), Arc::new(table)))
        })
        .collect::<Result<_, AssemblyError>>()?;
    let factor = definition.replication_factor;
    let replication = match factor {
        0 => Replication {
            class: "org.apache.cassandra.locator.LocalStrategy".into(),
            options: BTreeMap::new(),
        },
        _ => Replication {
            class: "org.apache.cassandra.locator.SimpleStrategy".into(),
            options: [("replication_factor".into(), factor.to_string())].into(),
        },
    };
    let name = definition.name.into();
    Ok(Keyspace { name, replication, durable_writes: true, tables, types: BTreeMap::new() })
}

/// The id of a system table: always the same, as in Cassandra a hash of its names.
pub(crate) fn table_id(keyspace: &str, table: &str) -> TableId {
    let digest = Md5::new_with_prefix(keyspace).chain_update(table).finalize();
    TableId(uuid::Builder::from_md5_bytes(digest.into()).into_uuid())
}

/// A version 3 UUID of a digest, as Java's `UUID.nameUUIDFromBytes` makes it.
pub(crate) fn digest_id(digest: Md5) -> Uuid {
    uuid::Builder::from_md5_bytes(digest.finalize().into()).into_uuid()
}

fn wrong(what: impl ToString) -> AssemblyError {
    AssemblyError::SystemTables(what.to_string())
}

fn table(definition: &Definition, text: &str) -> Result<Table, AssemblyError> {
    let statement = cql::parse_statement(text).map_err(|error| wrong(format!("{error} in {text}")))?;
    let StatementKind::CreateTable(create) = statement.kind else {
        return Err(wrong(format!("not a CREATE TABLE: {text}")));
    };
    let name = create.name.name.as_str();
    let keys = key_kinds(&create)?;
    let mut builder = TableBuilder::new(table_id(definition.name, name), definition.name, name);
    for column in &create.columns {
        let kind = match keys.get(column.name.as_str()) {
            Some(kind) => *kind,
            None if column.is_static => ColumnKind::Static,
            None => ColumnKind::Regular,
        };
        builder = builder.column(column.name.as_str(), kind, cql_type(&column.type_name)?);
    }
    builder.options = TableOptions {
        gc_grace_seconds: definition.gc_grace_seconds,
        memtable_flush_period_in_ms: definition.memtable_flush_period_in_ms,
        ..TableOptions::default()
    };
    for property in &create.options.properties {
        set_option(&mut builder.options, property)?;
    }
    builder.build().map_err(wrong)
}

/// The key columns by name.
fn key_kinds(create: &CreateTable) -> Result<BTreeMap<&str, ColumnKind>, AssemblyError> {
    let mut kinds = BTreeMap::new();
    let written = create.columns.iter().filter(|column| column.is_primary_key).map(|column| &column.name);
    let partition = create.primary_keys.iter().flat_map(|key| &key.partition);
    for (position, name) in (0u16..).zip(written.chain(partition)) {
        kinds.insert(name.as_str(), ColumnKind::PartitionKey(position));
    }
    let clustering = create.primary_keys.iter().flat_map(|key| &key.clustering);
    for (position, name) in (0u16..).zip(clustering) {
        let orders = &create.options.clustering_order;
        let is_descending = orders.iter().any(|order| order.column == *name && order.is_descending);
        let order = if is_descending { ClusteringOrder::Desc } else { ClusteringOrder::Asc };
        kinds.insert(name.as_str(), ColumnKind::Clustering(position, order));
    }
    match kinds.keys().find(|name| !create.columns.iter().any(|column| column.name.as_str() == **name)) {
        Some(name) => {
            Err(wrong(format!("key column {name} of {} is not declared", create.name.name.as_str())))
        }
        None => Ok(kinds),
    }
}

/// The few options that the texts use.
fn set_option(options: &mut TableOptions, property: &Property) -> Result<(), AssemblyError> {
    let text = property.value.as_text();
    match (property.name.as_str(), text) {
        ("comment", Some(text)) => options.comment = text.to_owned(),
        ("default_time_to_live", Some(text)) => options.default_time_to_live = text.parse().map_err(wrong)?,
        ("compaction", None) => {
            let mut entries: BTreeMap<String, String> = property
                .value
                .as_map()
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
            let class = entries.remove("class").ok_or_else(|| wrong("compaction without a class"))?;
            options.compaction = CompactionOptions { class, options: entries };
        }
        (name, _) => return Err(wrong(format!("option {name} is not known here"))),
    }
    Ok(())
}

fn cql_type(name: &CqlTypeName) -> Result<CqlType, AssemblyError> {
    // What is inside another type is one value with it.
    let inner = |part: &CqlTypeName| cql_type(part).map(|of| Arc::new(of.freeze()));
    Ok(match name {
        CqlTypeName::Native(native) => {
            CqlType::from_native_name(native.name()).ok_or_else(|| wrong(native.name()))?
        }
        CqlTypeName::Frozen(part) => cql_type(part)?.freeze(),
        CqlTypeName::List(element) => CqlType::List { element: inner(element)?, frozen: false },
        CqlTypeName::Set(element) => CqlType::Set { element: inner(element)?, frozen: false },
        CqlTypeName::Map(key, value) => {
            CqlType::Map { key: inner(key)?, value: inner(value)?, frozen: false }
        }
        CqlTypeName::Tuple(parts) => {
            let parts = parts.iter().map(|part| Ok(cql_type(part)?.freeze()));
            CqlType::Tuple(parts.collect::<Result<Vec<_>, AssemblyError>>()?.into())
        }
        CqlTypeName::Custom(class) => CqlType::from_marshal(class.as_str()).map_err(wrong)?,
        CqlTypeName::Vector(..) | CqlTypeName::User { .. } => {
            return Err(wrong(format!("type {name} in a system table")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_makes_tables_under_the_ids_that_cassandra_gives_them() {
        let schema = base_schema().expect("schema");
        let check = |keyspace: &str, table: &str, id: &str| {
            let table = schema.table(keyspace, table).expect("table");
            assert_eq!(table.id().0.to_string(), id, "{keyspace}.{}", table.name());
        };
        check("system", "local", "7ad54392-bcdd-35a6-8417-4e047860b377");
        check("system", "IndexInfo", "9f5c6374-d485-3229-9a0a-5094af9ad1e3");
        check("system", "batches", "919a4bc5-7a33-3573-b03e-13fc3f68b465");
        check("system_schema", "tables", "afddfb9d-bc1e-3068-8056-eed6c302ba09");
        check("system_traces", "sessions", "c5e99f16-8677-3914-b17e-960613512345");
        check("system_distributed", "view_build_status", "5582b59f-8e4e-35e1-b913-3acada51eb04");
        let counts: Vec<_> = schema
            .keyspaces()
            .values()
            .map(|keyspace| (keyspace.name.as_str(), keyspace.tables.len()))
            .collect();
        let expected = [
            // Cassandra's, and `operations`.
            ("system", 24),
            ("system_auth", 8),
            ("system_distributed", 4),
            ("system_schema", 11),
            ("system_traces", 2),
        ];
        assert_eq!(counts, expected);
    }

    #[test]
    fn options_are_those_of_the_keyspace_and_of_the_text() {
        let schema = base_schema().expect("schema");
        let history = schema.table("system", "compaction_history").expect("table").options().clone();
        assert_eq!(history.gc_grace_seconds, 0);
        assert_eq!(history.default_time_to_live, 604_800);
        assert_eq!(history.comment, "week-long compaction history");
        let batches = schema.table("system", "batches").expect("table").options().clone();
        assert_eq!(batches.compaction.options.get("min_threshold").map(String::as_str), Some("2"));
        assert_eq!(schema.keyspace("system_distributed").expect("keyspace").replication.factor(), 3);
    }

    #[test]
    fn virtual_keyspaces_are_two() {
        let keyspaces = virtual_keyspaces().expect("keyspaces");
        let counts: Vec<_> =
            keyspaces.iter().map(|keyspace| (keyspace.name.as_str(), keyspace.tables.len())).collect();
        assert_eq!(counts, [("system_views", 44), ("system_virtual_schema", 3)]);
        let settings = keyspaces[0].tables.get("settings").expect("table");
        assert_eq!(settings.partition_key().len(), 1);
    }
}
