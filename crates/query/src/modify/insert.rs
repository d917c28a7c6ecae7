//! The plan of an INSERT: its key columns are equalities, its other columns are set.

use std::sync::Arc;

use cql::ast::{Insert, InsertSource};
use schema::{Column, ColumnKind, Table};

use super::json;
use super::operation::Operation;
use super::plan::{ColumnChanges, ModifyPlan, Using};
use crate::QueryError;
use crate::error::refuse;
use crate::restrictions::{Context, Restrictions, StatementType, existing_column};
use crate::scope::{Receiver, Scope, TableNames};
use crate::terms::{self, Term};

pub(super) fn plan(
    insert: &Insert,
    table: &Arc<Table>,
    using: Using,
    scope: &mut Scope<'_>,
) -> Result<ModifyPlan, QueryError> {
    if table.is_counter() {
        refuse!("INSERT statements are not allowed on counter tables, use UPDATE instead");
    }
    let (columns, values) = match &insert.source {
        InsertSource::Values { columns, values } => (columns, values),
        InsertSource::Json { value, default } => return json::plan(value, *default, table, using, scope),
    };
    if columns.is_empty() {
        refuse!("No columns provided to INSERT");
    }
    if columns.len() != values.len() {
        refuse!("Unmatched column names/values");
    }
    let is_double = |(index, name): (usize, &cql::ast::Ident)| columns[..index].contains(name);
    if columns.iter().enumerate().any(is_double) {
        refuse!("The column names contains duplicates");
    }
    let names = TableNames::of(table);
    let mut values_of = Vec::with_capacity(columns.len());
    for (name, value) in columns.iter().zip(values) {
        let column = existing_column(table, name)?;
        values_of.push((column, plan_value(value, column, &names, scope)?));
    }
    plan_values(values_of, table, using)
}

/// A value for a column. Most are constants that fit, which need no names for messages.
fn plan_value(
    value: &cql::ast::Term,
    column: &Column,
    names: &TableNames,
    scope: &mut Scope<'_>,
) -> Result<Term, QueryError> {
    if let cql::ast::Term::Literal(literal) = value
        && let Some(fitting) = terms::plan_fitting(literal, &column.cql_type, scope.now_millis)
    {
        return fitting.map(Term::Constant);
    }
    terms::plan(value, &Receiver::column(names, column), scope)
}

/// An INSERT of these values.
pub(super) fn plan_values(
    values: Vec<(&Column, Term)>,
    table: &Arc<Table>,
    using: Using,
) -> Result<ModifyPlan, QueryError> {
    let mut changes = ColumnChanges::default();
    let mut key = Vec::with_capacity(table.partition_key().len() + table.clustering().len());
    let mut names_clustering = false;
    for (column, term) in values {
        if column.is_primary_key() {
            names_clustering |= matches!(column.kind, ColumnKind::Clustering(..));
            key.push((column, term));
        } else {
            changes.add(column, Operation::Set(term));
        }
    }
    let context = Context {
        statement: StatementType::Insert,
        only_static_columns: changes.only_static() && !names_clustering,
        allow_filtering: false,
        filters_freely: false,
    };
    let restrictions = Restrictions::equalities(key, table, context)?;
    Ok(changes.finish(StatementType::Insert, table, restrictions, using))
}
