//! Changes of the schema, as pure functions from one [`Schema`] to the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};
use types::CqlType;

use crate::{Keyspace, Replication, Schema, Table, TableId, user_type};

/// One change of the schema, as the metadata log keeps it. What it may do was decided by the
/// language layer; [`Transformation::apply`] checks again, because the log is linear and another
/// change may have come first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "named as the statements are")]
pub enum Transformation {
    CreateKeyspace {
        name: String,
        replication: Replication,
        durable_writes: bool,
    },
    AlterKeyspace {
        name: String,
        replication: Replication,
        durable_writes: bool,
    },
    DropKeyspace {
        name: String,
    },
    CreateTable {
        table: Box<Table>,
    },
    /// Replaces the definition; the id must be the same.
    AlterTable {
        table: Box<Table>,
    },
    DropTable {
        keyspace: String,
        name: String,
        id: TableId,
    },
    /// Takes all that was planned on an earlier epoch out of a table.
    TruncateTable {
        keyspace: String,
        name: String,
        id: TableId,
    },
    /// The type must be [`CqlType::UserDefined`]. Creates it, or replaces its
    /// definition, there and in every type and table of the keyspace that uses it.
    PutType {
        #[serde(with = "crate::serde_type")]
        cql_type: CqlType,
    },
    DropType {
        keyspace: String,
        name: String,
    },
}

/// Why a transformation does not fit the schema it meets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum SchemaError {
    #[error("keyspace {keyspace} exists already")]
    KeyspaceExists { keyspace: String },
    #[error("keyspace {keyspace} does not exist")]
    NoKeyspace { keyspace: String },
    #[error("table {keyspace}.{table} exists already")]
    TableExists { keyspace: String, table: String },
    #[error("table {keyspace}.{table} does not exist")]
    NoTable { keyspace: String, table: String },
    #[error("type {keyspace}.{name} does not exist")]
    NoType { keyspace: String, name: String },
    #[error("not a user-defined type: {cql_type}")]
    NotUserDefined { cql_type: String },
}

impl Transformation {
    /// Does it make something that the schema before it does not have?
    pub fn creates(&self, before: &Schema) -> bool {
        match self {
            Transformation::CreateKeyspace { .. } | Transformation::CreateTable { .. } => true,
            Transformation::PutType { cql_type: CqlType::UserDefined { definition, .. } } => {
                let keyspace = before.keyspace(&definition.keyspace);
                !keyspace.is_some_and(|keyspace| keyspace.types.contains_key(&definition.name))
            }
            _ => false,
        }
    }

    /// The schema after this change, its epoch one higher.
    ///
    /// # Errors
    /// [`SchemaError`] when what it names exists already or no longer.
    pub fn apply(&self, schema: &Schema) -> Result<Schema, SchemaError> {
        let mut keyspaces = schema.keyspaces().clone();
        let mut truncated = schema.truncated().clone();
        match self {
            Transformation::CreateKeyspace { name, replication, durable_writes } => {
                if keyspaces.contains_key(name) {
                    return Err(SchemaError::KeyspaceExists { keyspace: name.clone() });
                }
                let keyspace = Keyspace {
                    name: name.clone(),
                    replication: replication.clone(),
                    durable_writes: *durable_writes,
                    tables: OrdMap::new(),
                    types: BTreeMap::new(),
                };
                keyspaces.insert(name.clone(), Arc::new(keyspace));
            }
            Transformation::AlterKeyspace { name, replication, durable_writes } => {
                let keyspace = keyspace_mut(&mut keyspaces, name)?;
                keyspace.replication = replication.clone();
                keyspace.durable_writes = *durable_writes;
            }
            Transformation::DropKeyspace { name } => {
                keyspaces.remove(name).ok_or_else(|| SchemaError::NoKeyspace { keyspace: name.clone() })?;
            }
            Transformation::CreateTable { table } => {
                let keyspace = keyspace_mut(&mut keyspaces, table.keyspace())?;
                if keyspace.tables.contains_key(table.name()) {
                    let (keyspace, table) = (table.keyspace().into(), table.name().into());
                    return Err(SchemaError::TableExists { keyspace, table });
                }
                keyspace.tables.insert(table.name().into(), Arc::new((**table).clone()));
            }
            Transformation::AlterTable { table } => {
                *table_mut(&mut keyspaces, table.keyspace(), table.name(), table.id())? =
                    Arc::new((**table).clone());
            }
            Transformation::DropTable { keyspace, name, id } => {
                table_mut(&mut keyspaces, keyspace, name, *id)?;
                keyspace_mut(&mut keyspaces, keyspace)?.tables.remove(name);
            }
            Transformation::TruncateTable { keyspace, name, id } => {
                table_mut(&mut keyspaces, keyspace, name, *id)?;
                truncated.insert(*id, schema.epoch() + 1);
            }
            Transformation::PutType { cql_type } => {
                let CqlType::UserDefined { definition, .. } = cql_type else {
                    return Err(SchemaError::NotUserDefined { cql_type: cql_type.to_string() });
                };
                user_type::put(keyspace_mut(&mut keyspaces, &definition.keyspace)?, definition);
            }
            Transformation::DropType { keyspace, name } => {
                let missing = || SchemaError::NoType { keyspace: keyspace.clone(), name: name.clone() };
                keyspace_mut(&mut keyspaces, keyspace)?.types.remove(name).ok_or_else(missing)?;
            }
        }
        Ok(schema.next(keyspaces, truncated))
    }
}

fn keyspace_mut<'a>(
    keyspaces: &'a mut BTreeMap<String, Arc<Keyspace>>,
    name: &str,
) -> Result<&'a mut Keyspace, SchemaError> {
    let keyspace =
        keyspaces.get_mut(name).ok_or_else(|| SchemaError::NoKeyspace { keyspace: name.into() })?;
    Ok(Arc::make_mut(keyspace))
}

fn table_mut<'a>(
    keyspaces: &'a mut BTreeMap<String, Arc<Keyspace>>,
    keyspace: &str,
    name: &str,
    id: TableId,
) -> Result<&'a mut Arc<Table>, SchemaError> {
    let tables = &mut keyspace_mut(keyspaces, keyspace)?.tables;
    let missing = || SchemaError::NoTable { keyspace: keyspace.into(), table: name.into() };
    tables.get_mut(name).filter(|table| table.id() == id).ok_or_else(missing)
}
