//! What names mean: the schema's keyspaces and the virtual ones, seen as one.

use std::sync::Arc;

use schema::{Keyspace, Schema, Table};

use crate::error::refuse;
use crate::{QueryError, VirtualKeyspaces};

/// The keyspaces a statement can name, at one epoch.
pub(crate) struct Catalog<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) made_up: &'a dyn VirtualKeyspaces,
}

/// Where a table's rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Storage, through the coordinator.
    Stored,
    /// The server makes them up.
    MadeUp,
}

impl Catalog<'_> {
    pub(crate) fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.schema.keyspace(name).or_else(|| self.system_keyspace(name))
    }

    /// The keyspace, if it is one the server makes up.
    pub(crate) fn system_keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.made_up.keyspaces().iter().find(|keyspace| keyspace.name == name)
    }

    /// All keyspaces, in the order of their names.
    pub(crate) fn keyspaces(&self) -> Vec<&Arc<Keyspace>> {
        let mut all: Vec<_> = self.schema.keyspaces().values().chain(self.made_up.keyspaces()).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.dedup_by(|a, b| a.name == b.name);
        all
    }

    /// The table of that name.
    ///
    /// # Errors
    /// In Cassandra's words, when there is none.
    pub(crate) fn table(&self, keyspace: &str, name: &str) -> Result<(Arc<Table>, Home), QueryError> {
        let home = if self.made_up.makes_up(keyspace, name) { Home::MadeUp } else { Home::Stored };
        let Some(found) = self.keyspace(keyspace) else { refuse!("keyspace {keyspace} does not exist") };
        let made_up = || self.system_keyspace(keyspace).and_then(|other| other.tables.get(name));
        match found.tables.get(name).or_else(made_up) {
            Some(table) => Ok((Arc::clone(table), home)),
            None if name.is_empty() => refuse!("non-empty table is required"),
            None => refuse!("table {name} does not exist"),
        }
    }
}

/// The keyspace of a name: its own, else the session's.
///
/// # Errors
/// There is neither.
pub(crate) fn keyspace_of<'a>(
    written: Option<&'a str>,
    session: Option<&'a str>,
) -> Result<&'a str, QueryError> {
    written.or(session).ok_or_else(no_keyspace)
}

pub(crate) fn no_keyspace() -> QueryError {
    QueryError::invalid(
        "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
    )
}
