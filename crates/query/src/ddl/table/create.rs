//! `CREATE TABLE`: columns, keys, order, options.

use std::collections::{BTreeMap, BTreeSet};

use cql::ast::{ColumnDefinition, CreateTable, Ident, PrimaryKey, StatementKind};
use md5::{Digest, Md5};
use schema::{ClusteringOrder, ColumnKind, Schema, Table, TableBuilder, TableId, Transformation};
use types::{CqlType, quote_if_needed};
use uuid::Uuid;

use super::super::options::{self, Draft};
use super::super::properties::Properties;
use super::super::resolve_type;
use super::super::system::{Permission, Resource, check_permitted};
use super::super::{Context, Planned, check_statement_keyspace, object_change, type_size};
use super::columns::{check_no_mask, has_multi_cell_field, references_duration};
use super::{check_table, not_a_table};
use crate::catalog::{Catalog, no_keyspace};
use crate::error::refuse;
use crate::{ChangeTarget, ChangeType, NoVirtualTables, QueryError};

pub(in super::super) fn create(
    create: &CreateTable,
    context: &Context<'_>,
    make_table_id: impl FnOnce() -> Uuid,
) -> Result<Planned, QueryError> {
    let key = single_key(create)?;
    let keyspace = context.keyspace_of(&create.name)?;
    let name = create.name.name.as_str();
    let Some(key) = key else {
        refuse!("No PRIMARY KEY specifed for table '{}' (exactly one required)", written_name(create));
    };
    let properties = Properties(&create.options.properties);
    check_permitted(keyspace, Permission::Create, Resource::AllTables)?;
    let draft = options::read_new(properties)?;
    create.columns.iter().try_for_each(|column| check_no_mask(column.mask.is_some()))?;
    check_statement_keyspace(keyspace)?;
    let Some(home) = context.schema.keyspace(keyspace) else {
        refuse!("Keyspace '{keyspace}' doesn't exist");
    };
    if home.tables.contains_key(name) {
        if create.if_not_exists {
            return Ok(Planned::nothing());
        }
        return Err(QueryError::AlreadyExists {
            message: format!("Cannot add already existing table \"{name}\" to keyspace \"{keyspace}\""),
            keyspace: keyspace.to_owned(),
            table: name.to_owned(),
        });
    }
    let table = build(create, &key, keyspace, context.schema, draft, make_table_id)?;
    if context.schema.table_by_id(table.id()).is_some() {
        return Err(QueryError::config(format!("Table id {} is in use already", table.id().0)));
    }
    let change = Transformation::CreateTable { table: Box::new(table) };
    let reported = object_change(ChangeType::Created, ChangeTarget::Table, keyspace, name);
    Ok(Planned::change(change, reported))
}

/// The table of a `CREATE TABLE keyspace.name …`, made for this schema but not put in it. Its id is
/// always the same for the same names, as that of Cassandra's system tables is.
///
/// # Errors
/// The text is none, or no table can be made of it; [`QueryError`], as Cassandra would answer.
pub fn create_table_from_cql(text: &str, schema: &Schema) -> Result<Table, QueryError> {
    let StatementKind::CreateTable(create) = cql::parse_statement(text)?.kind else {
        return Err(QueryError::Syntax("expected CREATE TABLE".to_owned()));
    };
    let Some(key) = single_key(&create)? else {
        refuse!("No PRIMARY KEY specifed for table '{}' (exactly one required)", written_name(&create));
    };
    let keyspace = create.name.keyspace.as_deref().ok_or_else(no_keyspace)?;
    let draft = options::read_new(Properties(&create.options.properties))?;
    let id = || system_table_id(keyspace, create.name.name.as_str());
    build(&create, &key, keyspace, schema, draft, id)
}

/// A version 3 UUID of both names.
fn system_table_id(keyspace: &str, table: &str) -> Uuid {
    let digest = Md5::new_with_prefix(keyspace).chain_update(table).finalize();
    uuid::Builder::from_md5_bytes(digest.into()).into_uuid()
}

/// The name as it stands in the statement, for errors that come before the session is asked.
fn written_name(create: &CreateTable) -> String {
    match &create.name.keyspace {
        Some(keyspace) => format!("{}.{}", keyspace.as_str(), create.name.name.as_str()),
        None => create.name.name.as_str().to_owned(),
    }
}

/// The primary key, if there is one; checks what the grammar leaves open.
fn single_key(create: &CreateTable) -> Result<Option<PrimaryKey>, QueryError> {
    let columns = &create.columns;
    let order = &create.options.clustering_order;
    let in_keys = create.primary_keys.iter().map(|key| key.partition.len() + key.clustering.len()).sum();
    [columns.len(), order.len(), in_keys].into_iter().try_for_each(type_size::check_count)?;
    let mut names = BTreeSet::new();
    for column in columns {
        if !names.insert(column.name.as_str()) {
            refuse!(
                "Duplicate column '{}' declaration for table '{}'",
                column.name.as_str(),
                written_name(create)
            );
        }
    }
    let beside = |column: &ColumnDefinition| PrimaryKey {
        partition: vec![column.name.clone()],
        clustering: Vec::new(),
    };
    let beside = columns.iter().filter(|column| column.is_primary_key).map(beside);
    let mut keys: Vec<PrimaryKey> = beside.chain(create.primary_keys.iter().cloned()).collect();
    if keys.len() > 1 {
        refuse!("Multiple PRIMARY KEY specified for table '{}' (exactly one required)", written_name(create));
    }
    for (index, column) in order.iter().enumerate() {
        if order[..index].iter().any(|before| before.column == column.column) {
            refuse!(
                "Duplicate column '{}' in CLUSTERING ORDER BY clause for table '{}'",
                column.column.as_str(),
                written_name(create)
            );
        }
    }
    Ok(keys.pop())
}

fn build(
    create: &CreateTable,
    key: &PrimaryKey,
    keyspace: &str,
    schema: &Schema,
    draft: Draft,
    make_table_id: impl FnOnce() -> Uuid,
) -> Result<Table, QueryError> {
    let properties = Properties(&create.options.properties);
    options::validate(properties, &draft)?;
    let catalog = Catalog { schema, made_up: &NoVirtualTables };
    let mut types = BTreeMap::new();
    for column in &create.columns {
        types.insert(column.name.as_str(), resolve_type(&column.type_name, keyspace, &catalog)?);
    }
    if types.values().any(has_multi_cell_field) {
        refuse!("Non-frozen UDTs with nested non-frozen collections are not supported");
    }
    check_key(create, key, &types)?;
    let orders = clustering_orders(create, key)?;
    let is_static = |name: &str| create.columns.iter().any(|column| column.is_static && column.name == *name);
    if key.clustering.is_empty() && create.columns.iter().any(|column| column.is_static) {
        refuse!(
            "Static columns are only useful (and thus allowed) if the table has at least one clustering column"
        );
    }
    let is_in_key = |name: &str| key.partition.iter().chain(&key.clustering).any(|column| column == name);
    let counts = types.values().any(|cql_type| *cql_type == CqlType::Counter);
    if counts {
        if types.iter().any(|(name, cql_type)| !is_in_key(name) && *cql_type != CqlType::Counter) {
            refuse!("Cannot mix counter and non counter columns in the same table");
        }
        if draft.default_time_to_live() > 0 {
            refuse!("Cannot set default_time_to_live on a table with counters");
        }
    }
    if create.options.is_compact_storage {
        return Err(QueryError::unsupported("COMPACT STORAGE"));
    }
    let id = options::table_id(properties)?.unwrap_or_else(make_table_id);
    let mut builder = TableBuilder::new(TableId(id), keyspace, create.name.name.as_str());
    let type_of = |name: &str| types.get(name).cloned().unwrap_or(CqlType::Blob);
    for (position, name) in (0u16..).zip(&key.partition) {
        builder = builder.column(name.as_str(), ColumnKind::PartitionKey(position), type_of(name));
    }
    for ((position, name), order) in (0u16..).zip(&key.clustering).zip(orders) {
        builder = builder.column(name.as_str(), ColumnKind::Clustering(position, order), type_of(name));
    }
    for (name, cql_type) in types.iter().filter(|(name, _)| !is_in_key(name)) {
        let kind = if is_static(name) { ColumnKind::Static } else { ColumnKind::Regular };
        builder = builder.column(*name, kind, cql_type.clone());
    }
    builder.options = draft.finish();
    let table = builder.build().map_err(|error| not_a_table(&error))?;
    check_table(&table)?;
    Ok(table)
}

/// Each column of the key: there, once, and of a type that can be one.
fn check_key(
    create: &CreateTable,
    key: &PrimaryKey,
    types: &BTreeMap<&str, CqlType>,
) -> Result<(), QueryError> {
    let table = create.name.name.as_str();
    let columns: Vec<&Ident> = key.partition.iter().chain(&key.clustering).collect();
    for (index, name) in columns.iter().enumerate() {
        let column = name.as_str();
        let Some(cql_type) = types.get(column) else {
            refuse!("Unknown column '{column}' referenced in PRIMARY KEY for table '{table}'");
        };
        if columns[..index].contains(name) {
            refuse!("Duplicate column '{column}' in PRIMARY KEY clause for table '{table}'");
        }
        match cql_type {
            CqlType::UserDefined { definition, frozen: false } => {
                // Both names in one pair of quotes, as Cassandra has it.
                let name = quote_if_needed(&format!("{}.{}", definition.keyspace, definition.name));
                refuse!("Invalid non-frozen user-defined type {name} for PRIMARY KEY column '{column}'")
            }
            _ if cql_type.is_multi_cell() => {
                refuse!("Invalid non-frozen collection type {cql_type} for PRIMARY KEY column '{column}'")
            }
            CqlType::Counter => refuse!("counter type is not supported for PRIMARY KEY column '{column}'"),
            _ if references_duration(cql_type) => {
                refuse!("duration type is not supported for PRIMARY KEY column '{column}'")
            }
            _ => {}
        }
        if create.columns.iter().any(|definition| definition.is_static && definition.name == **name) {
            refuse!("Static column '{column}' cannot be part of the PRIMARY KEY");
        }
    }
    Ok(())
}

/// The order of each clustering column.
fn clustering_orders(create: &CreateTable, key: &PrimaryKey) -> Result<Vec<ClusteringOrder>, QueryError> {
    let written = &create.options.clustering_order;
    let strangers: Vec<&str> = written
        .iter()
        .map(|order| order.column.as_str())
        .filter(|column| !key.clustering.iter().any(|known| known == column))
        .collect();
    if !strangers.is_empty() {
        refuse!(
            "Only clustering key columns can be defined in CLUSTERING ORDER directive: [{}] are not clustering columns",
            strangers.join(", ")
        );
    }
    for (order, column) in written.iter().zip(&key.clustering) {
        if order.column == *column {
            continue;
        }
        if written.iter().any(|order| order.column == *column) {
            refuse!(
                "The order of columns in the CLUSTERING ORDER directive must match that of the clustering columns \
                 ({} must appear before {})",
                column.as_str(),
                order.column.as_str()
            );
        }
        refuse!("Missing CLUSTERING ORDER for column {}", column.as_str());
    }
    let order_of = |column: &Ident| match written.iter().find(|order| order.column == *column) {
        Some(order) if order.is_descending => ClusteringOrder::Desc,
        _ => ClusteringOrder::Asc,
    };
    Ok(key.clustering.iter().map(order_of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_tables_have_the_ids_they_have_in_cassandra() {
        let text = "CREATE TABLE system_schema.keyspaces (keyspace_name text PRIMARY KEY, durable_writes boolean, \
                    replication frozen<map<text, text>>) WITH comment = 'keyspace definitions'";
        let table = create_table_from_cql(text, &Schema::default()).expect("table");
        assert_eq!(table.id().0.to_string(), "abac5682-dea6-31c5-b535-b3d6cffd0fb6");
        assert_eq!(table.options().comment, "keyspace definitions");
        let names: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["keyspace_name", "durable_writes", "replication"]);
        assert!(
            create_table_from_cql("CREATE TABLE unqualified (k int PRIMARY KEY)", &Schema::default())
                .is_err()
        );
    }
}
