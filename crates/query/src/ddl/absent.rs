//! `DROP` of what Cassandra has and there can be none of here: indexes, views, functions, aggregates, triggers.
//!
//! Programs drop such things `IF EXISTS` before they make a schema of their own, which is then done with nothing to do.

use cql::ast::{CqlTypeName, Drop, DropFunction, DropTrigger};

use super::{Context, Planned, check_statement_keyspace};
use crate::catalog::Catalog;
use crate::error::refuse;
use crate::{NoVirtualTables, QueryError};

pub(super) fn drop_index(drop: &Drop, context: &Context<'_>) -> Result<Planned, QueryError> {
    let (keyspace, name) = (context.keyspace_of(&drop.name)?, &drop.name.name);
    // The stray quote is Cassandra's.
    drop_absent(keyspace, drop.if_exists, || format!("Index '{keyspace}.{}' doesn't exist'", name.as_str()))
}

pub(super) fn drop_view(drop: &Drop, context: &Context<'_>) -> Result<Planned, QueryError> {
    let (keyspace, name) = (context.keyspace_of(&drop.name)?, &drop.name.name);
    let message = || format!("Materialized view '{keyspace}.{}' doesn't exist", name.as_str());
    drop_absent(keyspace, drop.if_exists, message)
}

pub(super) fn drop_trigger(drop: &DropTrigger, context: &Context<'_>) -> Result<Planned, QueryError> {
    let (keyspace, table) = (context.keyspace_of(&drop.table)?, &drop.table.name);
    let message =
        || format!("Trigger '{}' on '{keyspace}.{}' doesn't exist", drop.name.as_str(), table.as_str());
    drop_absent(keyspace, drop.if_exists, message)
}

/// `kind` is `Function` or `Aggregate`.
pub(super) fn drop_function(
    kind: &str,
    drop: &DropFunction,
    context: &Context<'_>,
) -> Result<Planned, QueryError> {
    let keyspace = context.keyspace_of(&drop.name)?;
    check_statement_keyspace(keyspace)?;
    let arguments: Option<Vec<CqlTypeName>> =
        drop.arguments.as_ref().map(|arguments| arguments.iter().map(without_implied_frozen).collect());
    if context.schema.keyspace(keyspace).is_some() {
        check_arguments(keyspace, arguments.as_deref().unwrap_or_default(), context)?;
    }
    drop_absent(keyspace, drop.if_exists, || {
        let types = arguments.map_or_else(String::new, |arguments| {
            let types: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            format!("({})", types.join(", "))
        });
        format!("{kind} '{keyspace}.{}{types}' doesn't exist", drop.name.name.as_str())
    })
}

/// What is wrong with the types is said before whether there is such a function.
fn check_arguments(
    keyspace: &str,
    arguments: &[CqlTypeName],
    context: &Context<'_>,
) -> Result<(), QueryError> {
    for argument in arguments {
        if let CqlTypeName::Frozen(_) = argument {
            refuse!("Argument '{argument}' cannot be frozen; remove frozen<> modifier from '{argument}'");
        }
    }
    let catalog = Catalog { schema: context.schema, made_up: &NoVirtualTables };
    arguments.iter().try_for_each(|argument| super::resolve_type(argument, keyspace, &catalog).map(|_| ()))
}

/// As Cassandra shows a type: tuples and vectors are frozen whether it is written or not, and nothing is twice.
fn without_implied_frozen(name: &CqlTypeName) -> CqlTypeName {
    let part = |part: &CqlTypeName| Box::new(without_implied_frozen(part));
    match name {
        CqlTypeName::Frozen(of) => match without_implied_frozen(of) {
            bare @ (CqlTypeName::Tuple(_) | CqlTypeName::Vector(..) | CqlTypeName::Frozen(_)) => bare,
            other => CqlTypeName::Frozen(Box::new(other)),
        },
        CqlTypeName::List(element) => CqlTypeName::List(part(element)),
        CqlTypeName::Set(element) => CqlTypeName::Set(part(element)),
        CqlTypeName::Map(key, value) => CqlTypeName::Map(part(key), part(value)),
        CqlTypeName::Tuple(parts) => CqlTypeName::Tuple(parts.iter().map(without_implied_frozen).collect()),
        CqlTypeName::Vector(element, dimension) => CqlTypeName::Vector(part(element), *dimension),
        CqlTypeName::Native(_) | CqlTypeName::Custom(_) | CqlTypeName::User { .. } => name.clone(),
    }
}

fn drop_absent(
    keyspace: &str,
    if_exists: bool,
    message: impl FnOnce() -> String,
) -> Result<Planned, QueryError> {
    check_statement_keyspace(keyspace)?;
    if if_exists { Ok(Planned::nothing()) } else { Err(QueryError::Invalid(message())) }
}
