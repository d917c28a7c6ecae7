//! Rules of columns that CREATE and ALTER share.

use types::CqlType;

use crate::QueryError;
use crate::error::refuse;

/// Masks can be asked for when a node is configured so; ours are not.
pub(super) fn check_no_mask(is_masked: bool) -> Result<(), QueryError> {
    if is_masked {
        refuse!(
            "Cannot mask columns because dynamic data masking is not enabled. You can enable it with the \
             dynamic_data_masking_enabled property on cassandra.yaml"
        );
    }
    Ok(())
}

/// Does a user type that is kept field by field have a field that is kept cell by cell?
pub(super) fn has_multi_cell_field(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::UserDefined { definition, frozen: false } => {
            definition.fields.iter().any(|(_, field)| field.is_multi_cell())
        }
        _ => false,
    }
}

/// Refuses a table that counts and does something else too.
pub(super) fn check_no_mixture<'a>(
    is_counter: bool,
    columns: impl Iterator<Item = (&'a str, &'a CqlType)>,
) -> Result<(), String> {
    for (name, cql_type) in columns {
        match (is_counter, *cql_type == CqlType::Counter) {
            (true, false) => {
                return Err(format!("Cannot have a non counter column (\"{name}\") in a counter table"));
            }
            (false, true) => {
                return Err(format!("Cannot have a counter column (\"{name}\") in a non counter table"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Is there a `duration` anywhere in it?
pub(super) fn references_duration(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::Duration => true,
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            references_duration(element)
        }
        CqlType::Map { key, value, .. } => references_duration(key) || references_duration(value),
        CqlType::Tuple(parts) => parts.iter().any(references_duration),
        CqlType::UserDefined { definition, .. } => {
            definition.fields.iter().any(|(_, field)| references_duration(field))
        }
        _ => false,
    }
}
