//! What an UPDATE, INSERT or DELETE does to one column.

use std::sync::Arc;

use cql::ast::{AssignmentAction, ColumnPart, DeletedColumn, Term as Written};
use schema::{Column, ColumnId};
use types::CqlType;

use crate::error::refuse;
use crate::functions::{ScalarFunction, addition};
use crate::scope::{Receiver, Scope, TableNames};
use crate::terms::{self, Term};
use crate::{QueryError, ddl};

/// What is done to a column.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// The whole value.
    Set(Term),
    /// Elements behind a list, into a set or map; to a counter.
    Add(Term),
    /// To a number or a text, by the function that adds what the term gives.
    Increase(Arc<ScalarFunction>, Term),
    /// Elements before a list.
    Prepend(Term),
    /// Elements out of a list or set, keys out of a map; from a counter.
    Subtract(Term),
    /// A list's element by its index.
    SetIndex(Term, Term),
    /// A map's entry.
    SetEntry(Term, Term),
    /// A user type's field.
    SetField(u16, Term),
    Delete,
    /// A list's element by its index.
    DeleteIndex(Term),
    /// An element of a set, an entry of a map.
    DeleteEntry(Term),
    DeleteField(u16),
}

impl Operation {
    fn bytes(&self) -> usize {
        match self {
            Operation::Set(term)
            | Operation::Add(term)
            | Operation::Increase(_, term)
            | Operation::Prepend(term)
            | Operation::Subtract(term)
            | Operation::SetField(_, term)
            | Operation::DeleteIndex(term)
            | Operation::DeleteEntry(term) => term.bytes(),
            Operation::SetIndex(place, value) | Operation::SetEntry(place, value) => {
                place.bytes() + value.bytes()
            }
            Operation::Delete | Operation::DeleteField(_) => 0,
        }
    }

    /// Must the column be read first?
    fn reads(&self, of: &CqlType) -> bool {
        match self {
            Operation::SetIndex(..) | Operation::DeleteIndex(_) | Operation::Increase(..) => true,
            Operation::Subtract(_) => matches!(of, CqlType::List { .. }),
            _ => false,
        }
    }
}

/// All that is done to one column.
#[derive(Clone, Debug)]
pub(crate) struct ColumnChange {
    pub(crate) id: ColumnId,
    pub(crate) cql_type: CqlType,
    pub(crate) operations: Vec<Operation>,
}

impl ColumnChange {
    /// Must the column be read first?
    pub(super) fn reads(&self) -> bool {
        self.operations.iter().any(|operation| operation.reads(&self.cql_type))
    }

    /// What is put together for it, in bytes, beside what markers are bound to; `None` of a value that is stored as it
    /// is written or sent.
    pub(super) fn made_bytes(&self) -> Option<usize> {
        let is_stored_so = |operation: &Operation| match operation {
            Operation::Set(term) => term.is_plain(),
            _ => false,
        };
        let is_made = self.cql_type.is_multi_cell() || !self.operations.iter().all(is_stored_so);
        is_made.then(|| self.operations.iter().map(Operation::bytes).sum())
    }
}

/// Plans an assignment to a column, under a condition or without.
///
/// # Errors
/// The column is not one that this can be done to, or the value does not fit it.
pub(super) fn plan_assignment(
    column: &Column,
    action: &AssignmentAction,
    is_conditional: bool,
    names: &TableNames,
    scope: &mut Scope<'_>,
) -> Result<Operation, QueryError> {
    let name = &column.name;
    let receiver = Receiver::column(names, column);
    match action {
        AssignmentAction::Set(value) => {
            let term = terms::plan(value, &receiver, scope)?;
            if column.cql_type == CqlType::Counter {
                refuse!(
                    "Cannot set the value of counter column {name} (counters can only be incremented/decremented, not set)"
                );
            }
            Ok(Operation::Set(term))
        }
        AssignmentAction::Add(value) => {
            let shown = format!("{name} = {name} + {value}");
            if is_conditional && let Some(adding) = plan_adding(column, &shown)? {
                return Ok(Operation::Increase(adding, terms::plan(value, &receiver, scope)?));
            }
            check_is_added_to(column, &shown)?;
            match terms::plan(value, &receiver, scope) {
                Err(_) if matches!(column.cql_type, CqlType::Map { .. }) => {
                    refuse!("Value for a map addition has to be a map, but was: '{value}'")
                }
                term => term.map(Operation::Add),
            }
        }
        AssignmentAction::Subtract(value) => {
            let shown = format!("{name} = {name} - {value}");
            check_is_added_to(column, &shown)?;
            let CqlType::Map { key, .. } = &column.cql_type else {
                return terms::plan(value, &receiver, scope).map(Operation::Subtract);
            };
            let keys = receiver.named(name, CqlType::Set { element: key.clone(), frozen: true });
            match terms::plan(value, &keys, scope) {
                Err(_) => refuse!("Value for a map substraction has to be a set, but was: '{value}'"),
                term => term.map(Operation::Subtract),
            }
        }
        AssignmentAction::Prepend(value) => {
            let term = terms::plan(value, &receiver, scope)?;
            // The minus is Cassandra's.
            let shown = format!("{name} = {value} - {name}");
            match &column.cql_type {
                CqlType::List { frozen: false, .. } => Ok(Operation::Prepend(term)),
                CqlType::List { .. } => refuse!("Invalid operation ({shown}) for frozen list column {name}"),
                _ => refuse!("Invalid operation ({shown}) for non list column {name}"),
            }
        }
        AssignmentAction::SetElement(key, value) => plan_set_element(column, key, value, &receiver, scope),
        AssignmentAction::SetField(field, value) => {
            let shown = format!("{name}.{} = {value}", field.as_str());
            let CqlType::UserDefined { definition, frozen } = &column.cql_type else {
                refuse!("Invalid operation ({shown}) for non-UDT column {name}");
            };
            if *frozen {
                refuse!("Invalid operation ({shown}) for frozen UDT column {name}");
            }
            let Some(index) = definition.fields.iter().position(|(of, _)| *of == **field) else {
                refuse!("UDT column {name} does not have a field named {}", field.as_str());
            };
            let part =
                receiver.named(&format!("{name}.{}", field.as_str()), definition.fields[index].1.clone());
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            Ok(Operation::SetField(index, terms::plan(value, &part, scope)?))
        }
    }
}

/// The function that adds to a number or a text, which a change with a condition has read; `None` of collections.
fn plan_adding(column: &Column, shown: &str) -> Result<Option<Arc<ScalarFunction>>, QueryError> {
    let name = &column.name;
    match &column.cql_type {
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } | CqlType::Counter => Ok(None),
        CqlType::Tuple(_) | CqlType::UserDefined { .. } => {
            refuse!("Invalid operation ({shown}) for tuple column {name}")
        }
        of => match addition(of) {
            Some(adding) => Ok(Some(Arc::new(adding))),
            None => refuse!("Invalid operation ({shown}) for non-numeric and non-text type {name}"),
        },
    }
}

fn check_is_added_to(column: &Column, shown: &str) -> Result<(), QueryError> {
    let name = &column.name;
    match &column.cql_type {
        CqlType::List { frozen, .. } | CqlType::Set { frozen, .. } | CqlType::Map { frozen, .. } => {
            match frozen {
                true => refuse!("Invalid operation ({shown}) for frozen collection column {name}"),
                false => Ok(()),
            }
        }
        CqlType::Counter => Ok(()),
        CqlType::Tuple(_) => refuse!("Invalid operation ({shown}) for tuple column {name}"),
        _ => refuse!("Invalid operation ({shown}) for non counter column {name}"),
    }
}

fn plan_set_element(
    column: &Column,
    key: &Written,
    value: &Written,
    receiver: &Receiver,
    scope: &mut Scope<'_>,
) -> Result<Operation, QueryError> {
    let name = &column.name;
    let shown = format!("{name}[{key}] = {value}");
    match &column.cql_type {
        CqlType::List { frozen: true, .. }
        | CqlType::Set { frozen: true, .. }
        | CqlType::Map { frozen: true, .. } => {
            refuse!("Invalid operation ({shown}) for frozen collection column {name}")
        }
        CqlType::List { element, .. } => {
            let index = terms::plan(key, &receiver.part("idx", CqlType::Int), scope)?;
            Ok(Operation::SetIndex(
                index,
                terms::plan(value, &receiver.part("value", (**element).clone()), scope)?,
            ))
        }
        CqlType::Map { key: key_type, value: value_type, .. } => {
            let key = terms::plan(key, &receiver.part("key", (**key_type).clone()), scope)?;
            let value = terms::plan(value, &receiver.part("value", (**value_type).clone()), scope)?;
            Ok(Operation::SetEntry(key, value))
        }
        CqlType::Set { .. } => refuse!("Invalid operation ({shown}) for set column {name}"),
        _ => refuse!("Invalid operation ({shown}) for non collection column {name}"),
    }
}

/// Plans the deletion of a column or a part of one.
///
/// # Errors
/// The column has no such parts.
pub(super) fn plan_deletion(
    column: &Column,
    deleted: &DeletedColumn,
    names: &TableNames,
    scope: &mut Scope<'_>,
) -> Result<Operation, QueryError> {
    let name = &column.name;
    let receiver = Receiver::column(names, column);
    match &deleted.part {
        ColumnPart::Whole => Ok(Operation::Delete),
        ColumnPart::Element(key) => match &column.cql_type {
            CqlType::List { frozen: true, .. }
            | CqlType::Set { frozen: true, .. }
            | CqlType::Map { frozen: true, .. } => {
                refuse!("Invalid deletion operation for frozen collection column {name}")
            }
            CqlType::List { .. } => {
                let index = receiver.part("idx", ddl::native_type_named("int"));
                Ok(Operation::DeleteIndex(terms::plan(key, &index, scope)?))
            }
            CqlType::Set { element, .. } => {
                let part = receiver.part("value", (**element).clone());
                Ok(Operation::DeleteEntry(terms::plan(key, &part, scope)?))
            }
            CqlType::Map { key: key_type, .. } => {
                let part = receiver.part("key", (**key_type).clone());
                Ok(Operation::DeleteEntry(terms::plan(key, &part, scope)?))
            }
            _ => refuse!("Invalid deletion operation for non collection column {name}"),
        },
        ColumnPart::Field(field) => {
            let CqlType::UserDefined { definition, frozen } = &column.cql_type else {
                refuse!("Invalid field deletion operation for non-UDT column {name}");
            };
            if *frozen {
                refuse!("Frozen UDT column {name} does not support field deletions");
            }
            match definition.fields.iter().position(|(of, _)| *of == **field) {
                Some(index) => Ok(Operation::DeleteField(u16::try_from(index).unwrap_or(u16::MAX))),
                None => refuse!("UDT column {name} does not have a field named {}", field.as_str()),
            }
        }
    }
}
