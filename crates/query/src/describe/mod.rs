//! `DESCRIBE`: the schema as the statements that would make it again.
//!
//! ```text
//!   statement ── what it names ──► elements ──► rows of system.describe, one page of them
//!                                  keyspace, type, table, …
//! ```
//!
//! Texts are Cassandra's to the blank, since tools compare and replay them.

mod cluster;
mod element;
mod page;
mod table_text;
mod text;

use std::sync::Arc;

use cql::ast::{Describe, DescribeTarget, Ident, QualifiedName};
use schema::Keyspace;
use types::CqlType;

use crate::catalog::Catalog;
use crate::ddl::is_system_keyspace;
use crate::error::refuse;
use crate::request::QueryOptions;
use crate::response::{ColumnSpec, RowSink, RowsBody, RowsResult, metadata_id};
use crate::select::ComputedRows;
use crate::{QueryError, VirtualTables};
use element::{Element, Kind};

/// The columns of what only lists names.
const LISTED: [&str; 3] = ["keyspace_name", "type", "name"];
/// The columns of what gives statements.
const CREATED: [&str; 4] = ["keyspace_name", "type", "name", "create_statement"];

/// Answers a DESCRIBE in a session that is in `session` (a keyspace) if in any.
///
/// # Errors
/// In Cassandra's words, when what it names does not exist, or when the schema has changed since
/// the page before.
pub(crate) fn describe(
    statement: &Describe,
    catalog: &Catalog<'_>,
    virtual_tables: &dyn VirtualTables,
    session: Option<&str>,
    options: &QueryOptions,
) -> Result<RowsResult, QueryError> {
    if statement.target == DescribeTarget::Cluster {
        return Ok(cluster::describe(virtual_tables, catalog.schema, session));
    }
    let elements = elements(&statement.target, catalog, session)?;
    let names: &[&str] = if is_listing(&statement.target) { &LISTED } else { &CREATED };
    let (page, paging_state) = page::cut(&elements, catalog.schema.epoch(), options)?;
    let mut rows = ComputedRows::default();
    for element in page {
        rows.cell(Some(types::quote_if_needed(element.keyspace()).as_bytes()));
        rows.cell(Some(element.kind().name().as_bytes()));
        rows.cell(Some(types::quote_if_needed(element.name()).as_bytes()));
        if names.len() == CREATED.len() {
            rows.cell(Some(element.create_statement(catalog, statement.with_internals).as_bytes()));
        }
        rows.end_row();
    }
    let columns = names.iter().map(|name| column(name, CqlType::Text)).collect();
    Ok(result(columns, rows, paging_state))
}

/// The statement that makes a table again, with its id: for the `schema.cql` of snapshots.
pub fn table_to_cql(table: &schema::Table) -> String {
    table_text::table(table, false, true) + "\n"
}

fn column(name: &str, cql_type: CqlType) -> ColumnSpec {
    ColumnSpec { keyspace: "system".into(), table: "describe".into(), name: name.into(), cql_type }
}

fn result(columns: Arc<[ColumnSpec]>, rows: ComputedRows, paging_state: Option<bytes::Bytes>) -> RowsResult {
    let metadata_id = metadata_id(&columns);
    RowsResult { columns, metadata_id, paging_state, varies: false, body: RowsBody::Computed(rows) }
}

/// Does it give names without statements?
fn is_listing(target: &DescribeTarget) -> bool {
    matches!(
        target,
        DescribeTarget::Keyspaces
            | DescribeTarget::Tables
            | DescribeTarget::Types
            | DescribeTarget::Functions
            | DescribeTarget::Aggregates
    )
}

/// What it is about, in the order of the answer.
fn elements<'a>(
    target: &DescribeTarget,
    catalog: &'a Catalog<'_>,
    session: Option<&str>,
) -> Result<Vec<Element<'a>>, QueryError> {
    let of_keyspace = |written: Option<&Ident>| -> Result<&'a Keyspace, QueryError> {
        match written.map(Ident::as_str).or(session) {
            Some(name) => keyspace(catalog, name),
            None => refuse!("No keyspace specified and no current keyspace"),
        }
    };
    let of_name = |name: &QualifiedName| of_keyspace(name.keyspace.as_ref());
    match target {
        DescribeTarget::Cluster => Ok(Vec::new()),
        DescribeTarget::Schema { is_full } => Ok(keyspaces(catalog)
            .into_iter()
            .filter(|keyspace| *is_full || !is_system_keyspace(&keyspace.name))
            .flat_map(element::of_keyspace)
            .collect()),
        DescribeTarget::Keyspaces => Ok(keyspaces(catalog).into_iter().map(Element::Keyspace).collect()),
        DescribeTarget::Tables => listing(catalog, session, element::tables),
        DescribeTarget::Types => listing(catalog, session, element::types),
        // There are none yet, but the keyspace is looked for.
        DescribeTarget::Functions | DescribeTarget::Aggregates => listing(catalog, session, |_| Vec::new()),
        DescribeTarget::Keyspace { is_only: true, name } => {
            Ok(vec![Element::Keyspace(of_keyspace(name.as_ref())?)])
        }
        DescribeTarget::Keyspace { is_only: false, name } => {
            Ok(element::of_keyspace(of_keyspace(name.as_ref())?))
        }
        DescribeTarget::Table(name) => single(of_name(name)?, &name.name, Kind::Table),
        DescribeTarget::Type(name) => single(of_name(name)?, &name.name, Kind::Type),
        DescribeTarget::Index(name) => single(of_name(name)?, &name.name, Kind::Index),
        DescribeTarget::View(name) => single(of_name(name)?, &name.name, Kind::View),
        DescribeTarget::Function(name) => single(of_name(name)?, &name.name, Kind::Function),
        DescribeTarget::Aggregate(name) => single(of_name(name)?, &name.name, Kind::Aggregate),
        DescribeTarget::Generic(name) => generic(name, catalog, session),
    }
}

fn keyspace<'a>(catalog: &'a Catalog<'_>, name: &str) -> Result<&'a Keyspace, QueryError> {
    match catalog.keyspace(name) {
        Some(found) => Ok(found),
        None => refuse!("'{name}' not found in keyspaces"),
    }
}

/// All keyspaces, by name.
fn keyspaces<'a>(catalog: &'a Catalog<'_>) -> Vec<&'a Keyspace> {
    let mut all: Vec<&Keyspace> = catalog.keyspaces().into_iter().map(AsRef::as_ref).collect();
    element::sort_by_name(&mut all, |keyspace| &keyspace.name);
    all
}

/// The elements of the session's keyspace, or of all.
fn listing<'a>(
    catalog: &'a Catalog<'_>,
    session: Option<&str>,
    elements: impl Fn(&'a Keyspace) -> Vec<Element<'a>>,
) -> Result<Vec<Element<'a>>, QueryError> {
    match session {
        Some(name) => Ok(elements(keyspace(catalog, name)?)),
        None => Ok(keyspaces(catalog).into_iter().flat_map(elements).collect()),
    }
}

/// One element of a keyspace.
fn single<'a>(keyspace: &'a Keyspace, name: &str, kind: Kind) -> Result<Vec<Element<'a>>, QueryError> {
    let home = &keyspace.name;
    let found = match kind {
        Kind::Table => keyspace.tables.get(name).map(|table| Element::Table(table)),
        Kind::Type => keyspace.types.get(name).map(|definition| Element::Type(definition)),
        _ => None,
    };
    if let Some(element) = found {
        return Ok(vec![element]);
    }
    match kind {
        Kind::Table => refuse!("Table '{name}' not found in keyspace '{home}'"),
        Kind::Type => refuse!("User defined type '{name}' not found in '{home}'"),
        Kind::Index => refuse!("Table for existing index '{name}' not found in '{home}'"),
        Kind::View => refuse!("Materialized view '{name}' not found in '{home}'"),
        Kind::Function => refuse!("User defined function '{name}' not found in '{home}'"),
        Kind::Aggregate => refuse!("User defined aggregate '{name}' not found in '{home}'"),
        Kind::Keyspace => refuse!("'{name}' not found in keyspaces"),
    }
}

/// A bare name: a keyspace before anything else, then what the keyspace has of that name.
fn generic<'a>(
    name: &QualifiedName,
    catalog: &'a Catalog<'_>,
    session: Option<&str>,
) -> Result<Vec<Element<'a>>, QueryError> {
    let short = name.name.as_str();
    if name.keyspace.is_none()
        && let Some(found) = catalog.keyspace(short)
    {
        return Ok(element::of_keyspace(found));
    }
    let home = name.keyspace.as_deref().or(session).unwrap_or(short);
    match keyspace(catalog, home)?.tables.get(short) {
        Some(table) => Ok(vec![Element::Table(table)]),
        None => refuse!("'{short}' not found in keyspace '{home}'"),
    }
}
