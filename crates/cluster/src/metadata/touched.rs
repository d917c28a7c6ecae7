//! Which changes of the schema contradict each other.
//!
//! A change is planned against the schema of some epoch. By the time it is agreed on others may have come first. It
//! holds as long as none of them touched what it was planned on: its table; or its keyspace itself, or a type of it. A
//! new type is in nobody's way, and tables that come are not in its.

use std::collections::BTreeMap;

use schema::{Schema, Transformation};
use types::CqlType;

/// At which epoch what was changed last.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched(BTreeMap<String, Keyspace>);

#[derive(Clone, Debug, Default)]
struct Keyspace {
    /// The keyspace's own options, or a type that was there: tables have those in them.
    itself: u64,
    /// A type that was not there before, so that nothing has it in it.
    new_type: u64,
    tables: BTreeMap<String, u64>,
}

/// What a change is about.
pub(super) enum Part<'c> {
    /// All of a keyspace.
    All(&'c str),
    /// A type that comes into a keyspace.
    NewType(&'c str),
    Table(&'c str, &'c str),
}

impl Part<'_> {
    /// Of a change that comes after this schema.
    pub(super) fn of<'c>(change: &'c Transformation, schema: &Schema) -> Part<'c> {
        match change {
            Transformation::CreateKeyspace { name, .. }
            | Transformation::AlterKeyspace { name, .. }
            | Transformation::DropKeyspace { name } => Part::All(name),
            Transformation::CreateTable { table } | Transformation::AlterTable { table } => {
                Part::Table(table.keyspace(), table.name())
            }
            Transformation::DropTable { keyspace, name, .. }
            | Transformation::TruncateTable { keyspace, name, .. } => Part::Table(keyspace, name),
            Transformation::PutType { cql_type: CqlType::UserDefined { definition, .. } } => {
                let home = schema.keyspace(&definition.keyspace);
                match home.is_some_and(|home| home.types.contains_key(&definition.name)) {
                    true => Part::All(&definition.keyspace),
                    false => Part::NewType(&definition.keyspace),
                }
            }
            // Such a change fits no schema, whatever came before.
            Transformation::PutType { .. } => Part::All(""),
            Transformation::DropType { keyspace, .. } => Part::All(keyspace),
        }
    }
}

impl Touched {
    /// Was what the change is about changed after the epoch that it was planned on?
    pub(super) fn contradicts(&self, part: &Part<'_>, based_on: u64) -> bool {
        let (Part::All(name) | Part::NewType(name) | Part::Table(name, _)) = part;
        let Some(keyspace) = self.0.get(*name) else { return false };
        let is_later = |epoch: &u64| *epoch > based_on;
        let is_moved = match part {
            Part::All(_) => is_later(&keyspace.new_type) || keyspace.tables.values().any(is_later),
            Part::NewType(_) => false,
            Part::Table(_, table) => keyspace.tables.get(*table).is_some_and(is_later),
        };
        is_moved || is_later(&keyspace.itself)
    }

    /// A change was made; its epoch.
    pub(super) fn note(&mut self, part: &Part<'_>, epoch: u64) {
        let (Part::All(name) | Part::NewType(name) | Part::Table(name, _)) = part;
        let keyspace = self.0.entry((*name).to_owned()).or_default();
        match part {
            Part::All(_) => keyspace.itself = epoch,
            Part::NewType(_) => keyspace.new_type = epoch,
            Part::Table(_, table) => _ = keyspace.tables.insert((*table).to_owned(), epoch),
        }
    }
}
