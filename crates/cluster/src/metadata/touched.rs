//! Which changes of the schema contradict each other.
//!
//! A change is planned against the schema of some epoch. By the time it is agreed on others may have come first. It
//! holds as long as none of them touched what it was planned on: its table; or its keyspace itself, or a type of it.

use std::collections::BTreeMap;

use schema::Transformation;
use types::CqlType;

/// At which epoch what was changed last.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched(BTreeMap<String, Keyspace>);

#[derive(Clone, Debug, Default)]
struct Keyspace {
    /// The keyspace's own options, or a type: tables have those in them.
    itself: u64,
    tables: BTreeMap<String, u64>,
}

/// What a change is about.
enum Part<'c> {
    /// All of a keyspace.
    All(&'c str),
    Table(&'c str, &'c str),
}

fn part(change: &Transformation) -> Part<'_> {
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
            Part::All(&definition.keyspace)
        }
        // Such a change fits no schema, whatever came before.
        Transformation::PutType { .. } => Part::All(""),
        Transformation::DropType { keyspace, .. } => Part::All(keyspace),
    }
}

impl Touched {
    /// Was what the change is about changed after the epoch that it was planned on?
    pub(super) fn contradicts(&self, change: &Transformation, based_on: u64) -> bool {
        let is_later = |epoch: u64| epoch > based_on;
        match part(change) {
            Part::All(keyspace) => self.0.get(keyspace).is_some_and(|keyspace| {
                is_later(keyspace.itself) || keyspace.tables.values().copied().any(is_later)
            }),
            Part::Table(keyspace, table) => self.0.get(keyspace).is_some_and(|keyspace| {
                is_later(keyspace.itself) || keyspace.tables.get(table).copied().is_some_and(is_later)
            }),
        }
    }

    /// A change was made; its epoch.
    pub(super) fn note(&mut self, change: &Transformation, epoch: u64) {
        match part(change) {
            Part::All(keyspace) => self.0.entry(keyspace.to_owned()).or_default().itself = epoch,
            Part::Table(keyspace, table) => {
                let tables = &mut self.0.entry(keyspace.to_owned()).or_default().tables;
                tables.insert(table.to_owned(), epoch);
            }
        }
    }
}
