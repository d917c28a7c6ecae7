//! A keyspace: replication, its tables and its user types.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use types::UserType;

use crate::Table;

/// How a keyspace is replicated.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Replication {
    /// Full class name, e.g. `org.apache.cassandra.locator.SimpleStrategy`.
    pub class: String,
    /// Everything but the class: `replication_factor`, or a factor for each data centre.
    pub options: BTreeMap<String, String>,
}

impl Replication {
    /// How many replicas each partition has, over all data centres; 1 for local keyspaces.
    pub fn factor(&self) -> u32 {
        let number = |text: &String| text.split('/').next().and_then(|count| count.parse::<u32>().ok());
        self.options.values().filter_map(number).sum::<u32>().max(1)
    }
}

/// A keyspace. Tables and types are shared values, and so are most parts of the map of tables: of ten thousand a
/// changed schema copies some dozen pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    /// Its name, unquoted.
    pub name: String,
    /// How it is replicated.
    pub replication: Replication,
    /// Does the commit log keep its writes?
    pub durable_writes: bool,
    /// Tables by name.
    pub tables: OrdMap<String, Arc<Table>>,
    /// User types by name.
    pub types: BTreeMap<String, Arc<UserType>>,
}
