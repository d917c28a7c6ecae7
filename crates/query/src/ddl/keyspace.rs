//! `CREATE`, `ALTER` and `DROP KEYSPACE`.

use std::collections::BTreeMap;

use cql::ast::{AlterKeyspace, CreateKeyspace, DropKeyspace};
use schema::{Keyspace, Replication, Transformation};

use super::properties::Properties;
use super::system::{Permission, Resource, check_permitted};
use super::{Context, Planned, check_statement_keyspace, keyspace_change, replication};
use crate::error::refuse;
use crate::{ChangeType, QueryError};

const KNOWN: [&str; 2] = ["durable_writes", "replication"];

pub(super) fn create(create: &CreateKeyspace, context: &Context<'_>) -> Result<Planned, QueryError> {
    let name = create.name.as_str();
    let properties = Properties(&create.properties);
    check_statement_keyspace(name)?;
    let written = check(properties)?;
    if !properties.has("replication") {
        refuse!("Missing mandatory option 'replication'");
    }
    if written.is_empty() {
        return Err(no_class());
    }
    if context.schema.keyspace(name).is_some() {
        if create.if_not_exists {
            return Ok(Planned::nothing());
        }
        return Err(QueryError::AlreadyExists {
            message: format!("Cannot add existing keyspace \"{name}\""),
            keyspace: name.to_owned(),
            table: String::new(),
        });
    }
    let durable_writes = properties.boolean("durable_writes")?.unwrap_or(true);
    let replication = replication::read(&written, &BTreeMap::new(), context.facts)?;
    check_not_local(&replication)?;
    let warnings = replication::validate(name, &replication, context.facts)?;
    let change = Transformation::CreateKeyspace { name: name.to_owned(), replication, durable_writes };
    Ok(Planned { warnings, ..Planned::change(change, keyspace_change(ChangeType::Created, name)) })
}

pub(super) fn alter(alter: &AlterKeyspace, context: &Context<'_>) -> Result<Planned, QueryError> {
    let name = alter.name.as_str();
    let properties = Properties(&alter.properties);
    check_permitted(name, Permission::Alter, Resource::Keyspace)?;
    check_statement_keyspace(name)?;
    let written = check(properties)?;
    let Some(before) = context.schema.keyspace(name) else {
        if alter.if_exists {
            return Ok(Planned::nothing());
        }
        refuse!("Keyspace '{name}' doesn't exist");
    };
    let durable_writes = properties.boolean("durable_writes")?.unwrap_or(before.durable_writes);
    let replication = if written.is_empty() {
        before.replication.clone()
    } else {
        replication::read(&written, &before.replication.options, context.facts)?
    };
    check_not_local(&replication)?;
    let mut warnings = replication::validate(name, &replication, context.facts)?;
    if replication == before.replication && durable_writes == before.durable_writes {
        return Ok(Planned { warnings, ..Planned::nothing() });
    }
    if factor_grows(before, &replication) {
        warnings.push(
            "When increasing replication factor you need to run a full (-full) repair to distribute the data."
                .to_owned(),
        );
    }
    let change = Transformation::AlterKeyspace { name: name.to_owned(), replication, durable_writes };
    Ok(Planned { warnings, ..Planned::change(change, keyspace_change(ChangeType::Updated, name)) })
}

pub(super) fn drop(drop: &DropKeyspace, context: &Context<'_>) -> Result<Planned, QueryError> {
    let name = drop.name.as_str();
    check_permitted(name, Permission::Drop, Resource::Keyspace)?;
    check_statement_keyspace(name)?;
    if context.schema.keyspace(name).is_none() {
        if drop.if_exists {
            return Ok(Planned::nothing());
        }
        refuse!("Keyspace '{name}' doesn't exist");
    }
    let change = Transformation::DropKeyspace { name: name.to_owned() };
    Ok(Planned::change(change, keyspace_change(ChangeType::Dropped, name)))
}

/// The names of the options, and the class of the strategy; gives `replication` as it was written.
fn check(properties: Properties<'_>) -> Result<Vec<(&str, &str)>, QueryError> {
    properties.check_known(&KNOWN)?;
    let replication = properties.map("replication")?.unwrap_or_default();
    if !replication.is_empty() && !replication.iter().any(|(key, _)| *key == "class") {
        return Err(no_class());
    }
    Ok(replication)
}

fn no_class() -> QueryError {
    QueryError::config("Missing replication strategy class")
}

fn check_not_local(replication: &Replication) -> Result<(), QueryError> {
    if replication.class.ends_with(".LocalStrategy") {
        refuse!("Unable to use given strategy class: LocalStrategy is reserved for internal use.");
    }
    Ok(())
}

fn factor_grows(before: &Keyspace, after: &Replication) -> bool {
    let sum = |replication: &Replication| -> u64 {
        replication.options.values().filter_map(|factor| factor.parse::<u64>().ok()).sum()
    };
    sum(&before.replication) < sum(after)
}
