//! `ALTER TABLE`: columns come and go, keys get other names, options change.

use cql::ast::{AlterTable, AlterTableAction, ColumnDefinition, Ident};
use schema::{Column, ColumnKind, DroppedColumn, Schema, Table, Transformation};
use types::CqlType;

use super::super::options;
use super::super::properties::Properties;
use super::super::resolve_type;
use super::super::system::{Permission, Resource, check_permitted};
use super::super::user_type::expand;
use super::super::{Context, Planned, check_statement_keyspace, object_change, type_size};
use super::columns::{check_no_mask, check_no_mixture, has_multi_cell_field};
use super::compatible::is_serialization_compatible;
use super::not_a_table;
use crate::catalog::Catalog;
use crate::error::refuse;
use crate::{ChangeTarget, ChangeType, NoVirtualTables, QueryError};

pub(in super::super) fn alter(alter: &AlterTable, context: &Context<'_>) -> Result<Planned, QueryError> {
    let keyspace = context.keyspace_of(&alter.name)?;
    let name = alter.name.name.as_str();
    check_permitted(keyspace, Permission::Alter, Resource::Table(name))?;
    check_before_looking(&alter.action)?;
    check_statement_keyspace(keyspace)?;
    let Some(table) = context.schema.table(keyspace, name) else {
        if alter.if_exists {
            return Ok(Planned::nothing());
        }
        refuse!("Table '{keyspace}.{name}' doesn't exist");
    };
    let changed = match &alter.action {
        AlterTableAction::AlterType { .. } => refuse!("Altering column types is no longer supported"),
        AlterTableAction::AlterMask { if_exists, column, .. } => check_unmasked(table, column, *if_exists)?,
        AlterTableAction::Add { if_not_exists, columns } => {
            add(table, columns, *if_not_exists, context.schema)?
        }
        AlterTableAction::Drop { if_exists, columns, timestamp } => {
            let time_us = drop_time(timestamp.as_ref().map(cql::Text::as_str), context.now_us)?;
            drop_columns(table, columns, *if_exists, time_us)?
        }
        AlterTableAction::Rename { columns, .. } => rename(table, columns)?,
        AlterTableAction::DropCompactStorage => {
            refuse!("DROP COMPACT STORAGE is disabled. Enable in cassandra.yaml to use.")
        }
        AlterTableAction::With(properties) => with(table, Properties(properties))?,
    };
    if changed == **table {
        return Ok(Planned::nothing());
    }
    let change = Transformation::AlterTable { table: Box::new(changed) };
    let reported = object_change(ChangeType::Updated, ChangeTarget::Table, keyspace, name);
    Ok(Planned::change(change, reported))
}

/// What is refused even of a table that does not exist.
fn check_before_looking(action: &AlterTableAction) -> Result<(), QueryError> {
    match action {
        AlterTableAction::AlterMask { mask, .. } => check_no_mask(mask.is_some()),
        AlterTableAction::With(properties) => options::read_new(Properties(properties)).map(|_| ()),
        _ => Ok(()),
    }
}

/// `DROP MASKED` of a column, which has no mask.
fn check_unmasked(table: &Table, column: &Ident, if_exists: bool) -> Result<Table, QueryError> {
    if !if_exists && table.column(column).is_none() {
        refuse!("Column with name '{}' doesn't exist on table '{}'", column.as_str(), table.name());
    }
    Ok(table.clone())
}

fn with(table: &Table, properties: Properties<'_>) -> Result<Table, QueryError> {
    // Checked as if the table had only these, as Cassandra does.
    options::validate(properties, &options::read_new(properties)?)?;
    if options::table_id(properties)?.is_some() {
        return Err(QueryError::config("Cannot alter table id."));
    }
    let draft = options::read(properties, table.options())?;
    if counts(table) && draft.default_time_to_live() > 0 {
        refuse!("Cannot set default_time_to_live on a table with counters");
    }
    rebuild(table, |builder| builder.options = draft.finish())
}

fn rebuild(table: &Table, edit: impl FnOnce(&mut schema::TableBuilder)) -> Result<Table, QueryError> {
    let mut builder = table.to_builder();
    edit(&mut builder);
    builder.build().map_err(|error| not_a_table(&error))
}

fn add(
    table: &Table,
    columns: &[ColumnDefinition],
    if_not_exists: bool,
    schema: &Schema,
) -> Result<Table, QueryError> {
    let catalog = Catalog { schema, made_up: &NoVirtualTables };
    let mut builder = table.to_builder();
    type_size::check_count(columns.len())?;
    for column in columns {
        let name = column.name.as_str();
        let cql_type = resolve_type(&column.type_name, table.keyspace(), &catalog)?;
        check_no_mask(column.mask.is_some())?;
        if builder.columns.iter().any(|existing| existing.name == name) {
            if if_not_exists {
                continue;
            }
            refuse!("Column with name '{name}' already exists");
        }
        if column.is_static && table.clustering().is_empty() {
            refuse!(
                "Static columns are only useful (and thus allowed) if the table has at least one clustering column"
            );
        }
        if has_multi_cell_field(&cql_type) {
            refuse!("Non-frozen UDTs with nested non-frozen collections are not supported for column {name}");
        }
        let kind = if column.is_static { ColumnKind::Static } else { ColumnKind::Regular };
        if let Some(dropped) = table.dropped_columns().get(name) {
            check_as_before(table, name, &cql_type, kind, dropped)?;
        }
        builder = builder.column(name, kind, cql_type);
    }
    let changed = builder.build().map_err(|error| not_a_table(&error))?;
    type_size::check_table(&changed)?;
    let values = changed.static_columns().iter().chain(changed.regular_columns());
    check_no_mixture(counts(table), values.map(|column| (column.name.as_str(), &column.cql_type)))
        .map_err(|message| QueryError::Config(format!("{}.{}: {message}", table.keyspace(), table.name())))?;
    Ok(changed)
}

/// A column dropped before can come back only as one that reads the cells left of it.
fn check_as_before(
    table: &Table,
    name: &str,
    cql_type: &CqlType,
    kind: ColumnKind,
    dropped: &DroppedColumn,
) -> Result<(), QueryError> {
    let before = &dropped.column.cql_type;
    if !is_serialization_compatible(cql_type, before) {
        refuse!(
            "Cannot add a column '{name}' of type {cql_type}, incompatible with previously dropped column '{name}' of type {before}"
        );
    }
    if dropped.column.kind != kind {
        refuse!(
            "Cannot re-add previously dropped column '{name}' of kind {}, incompatible with previous kind {}",
            kind_name(kind),
            kind_name(dropped.column.kind)
        );
    }
    if counts(table) {
        refuse!("Cannot re-add previously dropped counter column {name}");
    }
    Ok(())
}

/// Is it a table of counters, even if the last of them was dropped?
fn counts(table: &Table) -> bool {
    table.is_counter()
        || table.dropped_columns().values().any(|dropped| dropped.column.cql_type == CqlType::Counter)
}

fn kind_name(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::PartitionKey(_) => "PARTITION_KEY",
        ColumnKind::Clustering(..) => "CLUSTERING",
        ColumnKind::Static => "STATIC",
        ColumnKind::Regular => "REGULAR",
    }
}

/// The time up to which cells of the dropped columns are gone.
fn drop_time(written: Option<&str>, now_us: i64) -> Result<i64, QueryError> {
    let Some(text) = written else { return Ok(now_us) };
    text.parse().map_err(|_| QueryError::Syntax(format!("no timestamp: {text}")))
}

fn drop_columns(table: &Table, names: &[Ident], if_exists: bool, time_us: i64) -> Result<Table, QueryError> {
    type_size::check_count(names.len())?;
    let mut builder = table.to_builder();
    for name in names {
        let Some(column) = table.column(name) else {
            if if_exists {
                continue;
            }
            refuse!(
                "Column {} was not found in table '{}.{}'",
                name.as_str(),
                table.keyspace(),
                table.name()
            );
        };
        if column.is_primary_key() {
            refuse!("Cannot drop PRIMARY KEY column {}", name.as_str());
        }
        if let CqlType::UserDefined { frozen: false, .. } = column.cql_type {
            refuse!("Cannot drop non-frozen column {} of user type {}", name.as_str(), column.cql_type);
        }
        builder.columns.retain(|kept| kept.name != column.name);
        // The definition of a user type may change or go: what is left of the column spells it out.
        let left = Column { cql_type: expand(&column.cql_type), ..column.clone() };
        builder
            .dropped_columns
            .insert(column.name.clone(), DroppedColumn { column: left, dropped_time_us: time_us });
    }
    builder.build().map_err(|error| not_a_table(&error))
}

fn rename(table: &Table, pairs: &[(Ident, Ident)]) -> Result<Table, QueryError> {
    type_size::check_count(pairs.len())?;
    let mut builder = table.to_builder();
    for (from, to) in pairs {
        let (keyspace, name) = (table.keyspace(), table.name());
        let Some(column) = table.column(from) else {
            refuse!("Undefined column name {from} in table {keyspace}.{name}");
        };
        if !column.is_primary_key() {
            refuse!("Cannot rename non PRIMARY KEY column {}", from.as_str());
        }
        if table.column(to).is_some() {
            refuse!(
                "Cannot rename column {} to {} in table '{keyspace}.{name}'; another column with that name already exists",
                from.as_str(),
                to.as_str()
            );
        }
        for renamed in builder.columns.iter_mut().filter(|renamed| renamed.id == column.id) {
            to.as_str().clone_into(&mut renamed.name);
        }
    }
    builder.build().map_err(|error| not_a_table(&error))
}
