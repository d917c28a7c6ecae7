//! Statements that change the schema: planned as pure transformations, checked in Cassandra's words.
//!
//! Nothing is changed here: [`plan`] looks at a schema and says which [`Transformation`] the
//! statement asks for, what the client is to be told, and what it should be warned of. Checks come
//! in Cassandra's order, so that a statement with two faults is refused for the same one.

mod absent;
mod keyspace;
mod options;
mod properties;
mod replication;
mod system;
mod table;
mod type_name;
mod type_size;
mod user_type;

use cql::ast::{QualifiedName, StatementKind};
use schema::{Schema, Transformation};
use uuid::Uuid;

use crate::error::refuse;
use crate::{ChangeTarget, ChangeType, ClusterFacts, QueryError, ResponseKind, SchemaChange};

pub(crate) use properties::double_text;
use system::is_local_system_keyspace;
pub(crate) use system::is_system_keyspace;
pub use table::create_table_from_cql;
pub(crate) use type_name::{native_type_named, resolve_type};

const KEYSPACE_NAME_LENGTH_MAX: usize = 48;

/// What a statement does to the schema.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The change; none when there is nothing to do (`IF NOT EXISTS` of what exists, say).
    pub(crate) change: Option<Transformation>,
    /// What the client is told once the change is made.
    pub(crate) response: ResponseKind,
    /// What the client should know although nothing failed.
    pub(crate) warnings: Vec<String>,
}

/// What all planning of one statement looks at.
pub(crate) struct Context<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) session_keyspace: Option<&'a str>,
    pub(crate) facts: &'a ClusterFacts,
    /// Now, for the time a column is dropped at.
    pub(crate) now_us: i64,
}

/// What the statement does to this schema. `make_table_id` gives a time UUID.
///
/// # Errors
/// [`QueryError`], as Cassandra would answer.
pub(crate) fn plan(
    statement: &StatementKind,
    schema: &Schema,
    session_keyspace: Option<&str>,
    facts: &ClusterFacts,
    make_table_id: impl FnOnce() -> Uuid,
    now_us: i64,
) -> Result<Planned, QueryError> {
    let context = Context { schema, session_keyspace, facts, now_us };
    match statement {
        StatementKind::CreateKeyspace(create) => keyspace::create(create, &context),
        StatementKind::AlterKeyspace(alter) => keyspace::alter(alter, &context),
        StatementKind::DropKeyspace(drop) => keyspace::drop(drop, &context),
        StatementKind::CreateTable(create) => table::create(create, &context, make_table_id),
        StatementKind::AlterTable(alter) => table::alter(alter, &context),
        StatementKind::DropTable(drop) => table::drop(drop, &context),
        StatementKind::CreateType(create) => user_type::create(create, &context),
        StatementKind::AlterType(alter) => user_type::alter(alter, &context),
        StatementKind::DropType(drop) => user_type::drop(drop, &context),
        StatementKind::DropIndex(drop) => absent::drop_index(drop, &context),
        StatementKind::DropView(drop) => absent::drop_view(drop, &context),
        StatementKind::DropFunction(drop) => absent::drop_function("Function", drop, &context),
        StatementKind::DropAggregate(drop) => absent::drop_function("Aggregate", drop, &context),
        StatementKind::DropTrigger(drop) => absent::drop_trigger(drop, &context),
        other => Err(QueryError::unsupported(other.label())),
    }
}

impl Planned {
    /// Nothing to do.
    fn nothing() -> Self {
        Planned { change: None, response: ResponseKind::Void, warnings: Vec::new() }
    }

    fn change(change: Transformation, reported: SchemaChange) -> Self {
        Planned { change: Some(change), response: ResponseKind::SchemaChange(reported), warnings: Vec::new() }
    }
}

impl Context<'_> {
    /// The keyspace a name is in.
    ///
    /// # Errors
    /// None was written, and the session has none.
    fn keyspace_of<'n>(&'n self, name: &'n QualifiedName) -> Result<&'n str, QueryError> {
        crate::catalog::keyspace_of(name.keyspace.as_deref(), self.session_keyspace)
    }
}

/// Refuses a statement on a keyspace that no statement changes, or that can not be.
fn check_statement_keyspace(keyspace: &str) -> Result<(), QueryError> {
    if is_local_system_keyspace(keyspace) {
        refuse!("System keyspace '{keyspace}' is not user-modifiable");
    }
    if !is_word(keyspace) {
        refuse!(
            "Keyspace name must not be empty and must contain alphanumeric or underscore characters only (got \"{keyspace}\")"
        );
    }
    let length = keyspace.len();
    if length > KEYSPACE_NAME_LENGTH_MAX {
        refuse!(
            "Keyspace name must not be more than {KEYSPACE_NAME_LENGTH_MAX} characters long (got {length} characters for \"{keyspace}\")"
        );
    }
    Ok(())
}

/// Letters, digits and underscores, at least one.
fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// What the client is told of a change of a keyspace.
fn keyspace_change(change: ChangeType, keyspace: &str) -> SchemaChange {
    let (keyspace, name, arguments) = (keyspace.to_owned(), String::new(), Vec::new());
    SchemaChange { change, target: ChangeTarget::Keyspace, keyspace, name, arguments }
}

/// What the client is told of a change of a table or type.
fn object_change(change: ChangeType, target: ChangeTarget, keyspace: &str, name: &str) -> SchemaChange {
    SchemaChange {
        change,
        target,
        keyspace: keyspace.to_owned(),
        name: name.to_owned(),
        arguments: Vec::new(),
    }
}
