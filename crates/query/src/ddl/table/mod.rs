//! `CREATE`, `ALTER` and `DROP TABLE`.

mod alter;
mod columns;
mod compatible;
mod create;

use cql::ast::Drop;
use schema::{Table, Transformation};

use super::system::{Permission, Resource, check_permitted};
use super::{Context, Planned, check_statement_keyspace, is_word, object_change, type_size};
use crate::error::refuse;
use crate::{ChangeTarget, ChangeType, QueryError};

pub(super) use alter::alter;
pub(super) use create::create;
pub use create::create_table_from_cql;

/// Room for the id behind it in the name of a folder.
const NAME_LENGTH_MAX: usize = 222;

pub(super) fn drop(drop: &Drop, context: &Context<'_>) -> Result<Planned, QueryError> {
    let keyspace = context.keyspace_of(&drop.name)?;
    let name = drop.name.name.as_str();
    check_permitted(keyspace, Permission::Drop, Resource::Table(name))?;
    check_statement_keyspace(keyspace)?;
    let Some(table) = context.schema.table(keyspace, name) else {
        if drop.if_exists {
            return Ok(Planned::nothing());
        }
        refuse!("Table '{keyspace}.{name}' doesn't exist");
    };
    let change =
        Transformation::DropTable { keyspace: keyspace.to_owned(), name: name.to_owned(), id: table.id() };
    Ok(Planned::change(change, object_change(ChangeType::Dropped, ChangeTarget::Table, keyspace, name)))
}

/// What must hold of every table.
fn check_table(table: &Table) -> Result<(), QueryError> {
    let name = table.name();
    let refuse = |message: String| Err(QueryError::Config(format!("{}.{name}: {message}", table.keyspace())));
    if !is_word(name) {
        return refuse(format!(
            "Table name must not be empty or not contain non-alphanumeric-underscore characters (got \"{name}\")"
        ));
    }
    if name.len() > NAME_LENGTH_MAX {
        return refuse(format!(
            "Table name must not be more than {NAME_LENGTH_MAX} characters long (got {} characters for \"{name}\")",
            name.len()
        ));
    }
    type_size::check_table(table)
}

/// The refusal of columns that make no table.
fn not_a_table(error: &schema::TableError) -> QueryError {
    QueryError::invalid(error.to_string())
}
