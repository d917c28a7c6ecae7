//! `CREATE`, `ALTER` and `DROP TYPE`.

use std::sync::Arc;

use cql::ast::{AlterType, AlterTypeAction, CqlTypeName, CreateType, Drop, Ident, NativeType};
use schema::{Keyspace, Transformation};
use types::{CqlType, UserType, quote_if_needed};

use super::system::{Permission, Resource, check_permitted};
use super::{Context, Planned, check_statement_keyspace, object_change, resolve_type, type_size};
use crate::catalog::Catalog;
use crate::error::refuse;
use crate::{ChangeTarget, ChangeType, NoVirtualTables, QueryError};

pub(super) fn create(create: &CreateType, context: &Context<'_>) -> Result<Planned, QueryError> {
    let keyspace = context.keyspace_of(&create.name)?;
    let name = create.name.name.as_str();
    type_size::check_count(create.fields.len())?;
    check_permitted(keyspace, Permission::Create, Resource::AllTables)?;
    check_statement_keyspace(keyspace)?;
    let Some(home) = context.schema.keyspace(keyspace) else {
        refuse!("Keyspace '{keyspace}' doesn't exist");
    };
    if home.types.contains_key(name) {
        if create.if_not_exists {
            return Ok(Planned::nothing());
        }
        refuse!("A user type with name '{name}' already exists");
    }
    for (index, (field, _)) in create.fields.iter().enumerate() {
        if create.fields[..index].iter().any(|(before, _)| before == field) {
            refuse!("Duplicate field name '{}' in type '{name}'", field.as_str());
        }
    }
    create.fields.iter().try_for_each(|(_, written)| check_field(written))?;
    let resolve = |(field, written): &(Ident, CqlTypeName)| {
        Ok((field.as_str().to_owned(), field_type(written, keyspace, context)?))
    };
    let fields = create.fields.iter().map(resolve).collect::<Result<Vec<_>, QueryError>>()?;
    put(
        ChangeType::Created,
        context,
        UserType { keyspace: keyspace.to_owned(), name: name.to_owned(), fields },
    )
}

/// The change to this definition, if all that uses it stays small enough.
fn put(change: ChangeType, context: &Context<'_>, definition: UserType) -> Result<Planned, QueryError> {
    let reported = object_change(change, ChangeTarget::Type, &definition.keyspace, &definition.name);
    let name = definition.name.clone();
    let cql_type = CqlType::UserDefined { definition: Arc::new(definition), frozen: false };
    type_size::check(&cql_type)?;
    let transformation = Transformation::PutType { cql_type };
    if change == ChangeType::Updated {
        check_users(&transformation, &reported.keyspace, &name, context)?;
    }
    Ok(Planned::change(transformation, reported))
}

/// Looks at the types and tables that use a definition as they will be.
fn check_users(
    change: &Transformation,
    keyspace: &str,
    name: &str,
    context: &Context<'_>,
) -> Result<(), QueryError> {
    let after = change.apply(context.schema).map_err(|error| QueryError::invalid(error.to_string()))?;
    let Some(home) = after.keyspace(keyspace) else { return Ok(()) };
    for definition in home.types.values().filter(|definition| definition.name != name) {
        type_size::check(&CqlType::UserDefined { definition: Arc::clone(definition), frozen: true })?;
    }
    home.tables.values().try_for_each(|table| type_size::check_table(table))
}

fn field_type(written: &CqlTypeName, keyspace: &str, context: &Context<'_>) -> Result<CqlType, QueryError> {
    resolve_type(written, keyspace, &Catalog { schema: context.schema, made_up: &NoVirtualTables })
}

fn check_field(written: &CqlTypeName) -> Result<(), QueryError> {
    match written {
        CqlTypeName::Native(NativeType::Counter) => refuse!("A user type cannot contain counters"),
        CqlTypeName::User { .. } => refuse!("A user type cannot contain non-frozen UDTs"),
        _ => Ok(()),
    }
}

pub(super) fn alter(alter: &AlterType, context: &Context<'_>) -> Result<Planned, QueryError> {
    let keyspace = context.keyspace_of(&alter.name)?;
    let name = alter.name.name.as_str();
    check_permitted(keyspace, Permission::Alter, Resource::AllTables)?;
    check_statement_keyspace(keyspace)?;
    let found = context.schema.keyspace(keyspace).and_then(|home| Some((home, home.types.get(name)?)));
    let Some((home, before)) = found else {
        if alter.if_exists {
            return Ok(Planned::nothing());
        }
        refuse!("Type {keyspace}.{name} doesn't exist");
    };
    let after = match &alter.action {
        AlterTypeAction::AlterField { .. } => refuse!("Altering field types is no longer supported"),
        AlterTypeAction::AddField { if_not_exists, field, type_name } => {
            add_field(home, before, field, type_name, *if_not_exists, context)?
        }
        AlterTypeAction::RenameFields { if_exists, fields } => rename_fields(before, fields, *if_exists)?,
    };
    if after == **before {
        return Ok(Planned::nothing());
    }
    put(ChangeType::Updated, context, after)
}

fn cql_name(definition: &UserType) -> String {
    format!("{}.{}", quote_if_needed(&definition.keyspace), quote_if_needed(&definition.name))
}

fn add_field(
    home: &Keyspace,
    before: &UserType,
    field: &Ident,
    written: &CqlTypeName,
    if_not_exists: bool,
    context: &Context<'_>,
) -> Result<UserType, QueryError> {
    check_field(written)?;
    let shown = with_keyspace(written, &before.keyspace);
    let (field, whole) = (field.as_str(), cql_name(before));
    if before.fields.iter().any(|(name, _)| name == field) {
        if if_not_exists {
            return Ok(before.clone());
        }
        refuse!("Cannot add field {field} to type {whole}: a field with name {field} already exists");
    }
    let cql_type = field_type(written, &before.keyspace, context)?;
    if references(&cql_type, &before.name) {
        refuse!(
            "Cannot add new field {field} of type {shown} to user type {whole} as it would create a circular reference"
        );
    }
    let in_key = |table: &schema::Table| {
        table.partition_key().iter().any(|column| references(&column.cql_type, &before.name))
    };
    let tables: Vec<String> = home
        .tables
        .values()
        .filter(|table| in_key(table))
        .map(|table| format!("{}.{}", quote_if_needed(table.keyspace()), quote_if_needed(table.name())))
        .collect();
    if !tables.is_empty() {
        refuse!(
            "Cannot add new field {field} of type {shown} to user type {whole} as the type is being used in partition key by the following tables: {}",
            tables.join(", ")
        );
    }
    let mut after = before.clone();
    after.fields.push((field.to_owned(), cql_type));
    Ok(after)
}

/// The type as written, with the keyspace of its user types.
fn with_keyspace(written: &CqlTypeName, keyspace: &str) -> CqlTypeName {
    let part = |of: &CqlTypeName| Box::new(with_keyspace(of, keyspace));
    match written {
        CqlTypeName::User { name, .. } => {
            CqlTypeName::User { keyspace: Some(Ident::new(keyspace)), name: name.clone() }
        }
        CqlTypeName::List(element) => CqlTypeName::List(part(element)),
        CqlTypeName::Set(element) => CqlTypeName::Set(part(element)),
        CqlTypeName::Map(key, value) => CqlTypeName::Map(part(key), part(value)),
        CqlTypeName::Tuple(parts) => {
            CqlTypeName::Tuple(parts.iter().map(|part| with_keyspace(part, keyspace)).collect())
        }
        CqlTypeName::Vector(element, dimension) => CqlTypeName::Vector(part(element), *dimension),
        CqlTypeName::Frozen(of) => CqlTypeName::Frozen(part(of)),
        CqlTypeName::Native(_) | CqlTypeName::Custom(_) => written.clone(),
    }
}

fn rename_fields(
    before: &UserType,
    pairs: &[(Ident, Ident)],
    if_exists: bool,
) -> Result<UserType, QueryError> {
    let mut after = before.clone();
    for (from, to) in pairs {
        match before.fields.iter().position(|(name, _)| name == from.as_str()) {
            Some(index) => to.as_str().clone_into(&mut after.fields[index].0),
            None if if_exists => {}
            None => refuse!("Unkown field {} in user type {}", from.as_str(), cql_name(before)),
        }
    }
    for (index, (field, _)) in after.fields.iter().enumerate() {
        if after.fields[..index].iter().any(|(other, _)| other == field) {
            // The keyspace where the type should be is Cassandra's.
            refuse!("Duplicate field name {field} in type {}", before.keyspace);
        }
    }
    Ok(after)
}

pub(super) fn drop(drop: &Drop, context: &Context<'_>) -> Result<Planned, QueryError> {
    let keyspace = context.keyspace_of(&drop.name)?;
    let name = drop.name.name.as_str();
    check_permitted(keyspace, Permission::Drop, Resource::AllTables)?;
    check_statement_keyspace(keyspace)?;
    let home = context.schema.keyspace(keyspace).filter(|home| home.types.contains_key(name));
    let Some(home) = home else {
        if drop.if_exists {
            return Ok(Planned::nothing());
        }
        refuse!("Type '{keyspace}.{name}' doesn't exist");
    };
    let is_user = |definition: &UserType| definition.fields.iter().any(|(_, field)| references(field, name));
    let types: Vec<&str> =
        home.types.values().filter(|other| is_user(other)).map(|other| other.name.as_str()).collect();
    if !types.is_empty() {
        refuse!(
            "Cannot drop user type '{keyspace}.{name}' as it is still used by user types {}",
            types.join(", ")
        );
    }
    let is_user =
        |table: &schema::Table| table.columns().iter().any(|column| references(&column.cql_type, name));
    let tables: Vec<&str> =
        home.tables.values().filter(|table| is_user(table)).map(|table| table.name()).collect();
    if !tables.is_empty() {
        refuse!(
            "Cannot drop user type '{keyspace}.{name}' as it is still used by tables {}",
            tables.join(", ")
        );
    }
    let change = Transformation::DropType { keyspace: keyspace.to_owned(), name: name.to_owned() };
    Ok(Planned::change(change, object_change(ChangeType::Dropped, ChangeTarget::Type, keyspace, name)))
}

/// Does a type of a keyspace have that user type of the same keyspace anywhere in it?
pub(crate) fn references(cql_type: &CqlType, name: &str) -> bool {
    match cql_type {
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            references(element, name)
        }
        CqlType::Map { key, value, .. } => references(key, name) || references(value, name),
        CqlType::Tuple(parts) => parts.iter().any(|part| references(part, name)),
        CqlType::UserDefined { definition, .. } => {
            definition.name == name || definition.fields.iter().any(|(_, field)| references(field, name))
        }
        _ => false,
    }
}

/// The type with tuples in place of user types.
pub(super) fn expand(cql_type: &CqlType) -> CqlType {
    match cql_type {
        CqlType::List { element, frozen } => {
            CqlType::List { element: expand(element).into(), frozen: *frozen }
        }
        CqlType::Set { element, frozen } => CqlType::Set { element: expand(element).into(), frozen: *frozen },
        CqlType::Map { key, value, frozen } => {
            CqlType::Map { key: expand(key).into(), value: expand(value).into(), frozen: *frozen }
        }
        CqlType::Vector { element, dimension } => {
            CqlType::Vector { element: expand(element).into(), dimension: *dimension }
        }
        CqlType::Tuple(parts) => CqlType::Tuple(parts.iter().map(expand).collect()),
        CqlType::UserDefined { definition, .. } => {
            CqlType::Tuple(definition.fields.iter().map(|(_, field)| expand(&field.freeze())).collect())
        }
        other => other.clone(),
    }
}
