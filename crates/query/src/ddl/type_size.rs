//! How large a type may be, and all the types of a table.
//!
//! User types are spelled out whole wherever they are used: in table files, in the log of the
//! schema, on the wire. A few dozen of them, each made of two of the one before, would fill any
//! memory, and names nested deeper than their reader follows could not be read back. Cassandra has
//! neither limit.

use schema::Table;
use types::CqlType;

use crate::QueryError;
use crate::error::refuse;

/// Types nest no deeper, user types spelled out. Written to the log each level is up to two levels
/// of class names, of which a reader follows 64.
const DEPTH_MAX: u32 = 24;
/// Types inside a type, user types spelled out, itself among them.
const PART_COUNT_MAX: u32 = 10_000;

/// The same of all columns of a table together.
const TABLE_PART_COUNT_MAX: u32 = 100_000;
/// Columns of a table, and fields of a user type.
const COLUMN_COUNT_MAX: usize = 5_000;

/// Refuses a type that is too large to be spelled out.
pub(super) fn check(cql_type: &CqlType) -> Result<(), QueryError> {
    weigh(cql_type, DEPTH_MAX, PART_COUNT_MAX).map(|_| ())
}

/// Refuses columns that are too many, or too large together.
pub(super) fn check_table(table: &Table) -> Result<(), QueryError> {
    check_count(table.columns().len())?;
    let mut parts = 0u32;
    for column in table.columns() {
        let left = weigh(&column.cql_type, DEPTH_MAX, PART_COUNT_MAX)?;
        parts = parts.saturating_add(PART_COUNT_MAX - left);
    }
    if parts > TABLE_PART_COUNT_MAX {
        refuse!(
            "The columns of a table have at most {TABLE_PART_COUNT_MAX} parts, fields of user types included"
        );
    }
    Ok(())
}

/// Refuses too many columns or fields, before anything is done for each of them.
pub(super) fn check_count(count: usize) -> Result<(), QueryError> {
    if count > COLUMN_COUNT_MAX {
        refuse!("A table has at most {COLUMN_COUNT_MAX} columns, a type as many fields");
    }
    Ok(())
}

/// What is left of the parts that may be, after these.
fn weigh(cql_type: &CqlType, depth_left: u32, parts_left: u32) -> Result<u32, QueryError> {
    let Some(depth_left) = depth_left.checked_sub(1) else {
        refuse!("Types nest at most {DEPTH_MAX} levels deep, fields of user types included");
    };
    let Some(mut parts_left) = parts_left.checked_sub(1) else {
        refuse!("A type has at most {PART_COUNT_MAX} parts, fields of user types included");
    };
    let mut add = |part: &CqlType| -> Result<(), QueryError> {
        parts_left = weigh(part, depth_left, parts_left)?;
        Ok(())
    };
    match cql_type {
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            add(element)?;
        }
        CqlType::Map { key, value, .. } => {
            add(key)?;
            add(value)?;
        }
        CqlType::Tuple(parts) => parts.iter().try_for_each(&mut add)?,
        CqlType::UserDefined { definition, .. } => {
            definition.fields.iter().try_for_each(|(_, field)| add(field))?;
        }
        _ => {}
    }
    Ok(parts_left)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use types::UserType;

    use super::*;

    #[test]
    fn types_that_double_are_refused_soon() {
        let mut cql_type = CqlType::Int;
        let mut levels = 0;
        while check(&cql_type).is_ok() {
            let fields = vec![("a".to_owned(), cql_type.clone()), ("b".to_owned(), cql_type)];
            let definition = Arc::new(UserType { keyspace: "k".into(), name: format!("t{levels}"), fields });
            cql_type = CqlType::UserDefined { definition, frozen: true };
            levels += 1;
        }
        assert_eq!(levels, 13);
    }

    #[test]
    fn deep_types_are_refused() {
        let mut cql_type = CqlType::Int;
        for _ in 1..DEPTH_MAX {
            cql_type = CqlType::List { element: cql_type.into(), frozen: true };
        }
        assert_eq!(check(&cql_type), Ok(()));
        assert!(check(&CqlType::Set { element: cql_type.into(), frozen: true }).is_err());
    }
}
