//! Can cells of one type be read as another? Cassandra's rules, for columns that come back after
//! having been dropped: table files may still hold their old cells.

use types::CqlType;

/// Can cells that were written as `old` be read as `new`, cell by cell and in files?
pub(super) fn is_serialization_compatible(new: &CqlType, old: &CqlType) -> bool {
    if is_collection(new) {
        return is_value_compatible(new, old)
            && match (cell_value(new), cell_value(old)) {
                (Some(new), Some(old)) => is_serialization_compatible(new, old),
                // The cells of a set hold nothing.
                (None, None) => true,
                _ => false,
            };
    }
    let is_opaque =
        *new != CqlType::Blob || !matches!(old, CqlType::UserDefined { .. }) && !is_collection(old);
    is_opaque
        && is_value_compatible(new, old)
        && fixed_length(new) == fixed_length(old)
        && new.is_multi_cell() == old.is_multi_cell()
}

fn is_collection(cql_type: &CqlType) -> bool {
    matches!(cql_type, CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. })
}

/// What a cell of a collection holds beside its path.
fn cell_value(cql_type: &CqlType) -> Option<&CqlType> {
    match cql_type {
        CqlType::List { element, .. } => Some(element),
        CqlType::Map { value, .. } => Some(value),
        _ => None,
    }
}

/// The length of every value, where files leave it out.
fn fixed_length(cql_type: &CqlType) -> Option<usize> {
    match cql_type {
        CqlType::Boolean => Some(1),
        CqlType::Int | CqlType::Float => Some(4),
        CqlType::Bigint | CqlType::Double | CqlType::Timestamp => Some(8),
        CqlType::Uuid | CqlType::Timeuuid => Some(16),
        CqlType::Empty => Some(0),
        CqlType::Vector { element, dimension } => {
            fixed_length(element)?.checked_mul(usize::try_from(*dimension).ok()?)
        }
        _ => None,
    }
}

/// Do values of `old` mean something as `new`?
fn is_value_compatible(new: &CqlType, old: &CqlType) -> bool {
    match new {
        CqlType::UserDefined { definition, frozen } => match old {
            CqlType::UserDefined { definition: before, frozen: was_frozen } => {
                frozen == was_frozen
                    && definition.keyspace == before.keyspace
                    && definition.fields.len() >= before.fields.len()
                    && definition
                        .fields
                        .iter()
                        .zip(&before.fields)
                        .all(|(new, old)| is_compatible(&new.1, &old.1))
            }
            _ => false,
        },
        _ => is_value_compatible_inside(new, old),
    }
}

fn is_value_compatible_inside(new: &CqlType, old: &CqlType) -> bool {
    if new.is_multi_cell() && is_collection(new) {
        return is_compatible(new, old);
    }
    match (new, old) {
        (CqlType::Blob, _)
        | (CqlType::Bigint | CqlType::Varint, CqlType::Timestamp)
        | (CqlType::Timestamp | CqlType::Time, CqlType::Bigint)
        | (CqlType::Varint, CqlType::Int | CqlType::Bigint)
        | (CqlType::Date, CqlType::Int)
        | (CqlType::Uuid, CqlType::Timeuuid) => true,
        (CqlType::List { element: new, .. }, CqlType::List { element: old, frozen: true }) => {
            is_value_compatible_inside(new, old)
        }
        (CqlType::Set { element: new, .. }, CqlType::Set { element: old, frozen: true }) => {
            is_compatible(new, old)
        }
        (
            CqlType::Map { key: new_key, value: new_value, .. },
            CqlType::Map { key: old_key, value: old_value, frozen: true },
        ) => is_compatible(new_key, old_key) && is_value_compatible(new_value, old_value),
        _ => match (parts(new), parts(old)) {
            (Some(new), Some(old)) => {
                new.len() >= old.len() && new.iter().zip(old).all(|(new, old)| is_value_compatible(new, old))
            }
            _ => is_compatible(new, old),
        },
    }
}

/// The components of a tuple or user type.
fn parts(cql_type: &CqlType) -> Option<Vec<&CqlType>> {
    match cql_type {
        CqlType::Tuple(parts) => Some(parts.iter().collect()),
        CqlType::UserDefined { definition, .. } => {
            Some(definition.fields.iter().map(|(_, field)| field).collect())
        }
        _ => None,
    }
}

/// Do values of `old` mean something as `new`, and in the same order?
fn is_compatible(new: &CqlType, old: &CqlType) -> bool {
    match (new, old) {
        (CqlType::Text, CqlType::Ascii) | (CqlType::Blob, CqlType::Ascii | CqlType::Text) => true,
        (CqlType::List { element: new, frozen: false }, CqlType::List { element: old, frozen: false }) => {
            is_serialization_compatible(new, old)
        }
        (CqlType::Set { element: new, frozen }, CqlType::Set { element: old, frozen: was_frozen })
        | (CqlType::List { element: new, frozen }, CqlType::List { element: old, frozen: was_frozen }) => {
            frozen == was_frozen && is_compatible(new, old)
        }
        (
            CqlType::Map { key: new_key, value: new_value, frozen },
            CqlType::Map { key: old_key, value: old_value, frozen: was_frozen },
        ) => {
            frozen == was_frozen
                && is_compatible(new_key, old_key)
                && if *frozen {
                    is_compatible(new_value, old_value)
                } else {
                    is_serialization_compatible(new_value, old_value)
                }
        }
        _ => match (parts(new), parts(old)) {
            (Some(new), Some(old)) => {
                new.len() >= old.len() && new.iter().zip(old).all(|(new, old)| is_compatible(new, old))
            }
            _ => new == old,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(element: CqlType, frozen: bool) -> CqlType {
        CqlType::List { element: element.into(), frozen }
    }

    #[test]
    fn types_that_read_each_others_cells_may_follow_each_other() {
        for (new, old) in [
            (CqlType::Int, CqlType::Int),
            (CqlType::Text, CqlType::Ascii),
            (CqlType::Blob, CqlType::Text),
            (CqlType::Blob, CqlType::Varint),
            (CqlType::Timestamp, CqlType::Bigint),
            (CqlType::Uuid, CqlType::Timeuuid),
            (list(CqlType::Text, true), list(CqlType::Ascii, true)),
            (CqlType::Tuple([CqlType::Int, CqlType::Int].into()), CqlType::Tuple([CqlType::Int].into())),
        ] {
            assert!(is_serialization_compatible(&new, &old), "{new} after {old}");
        }
    }

    #[test]
    fn others_may_not() {
        for (new, old) in [
            (CqlType::Text, CqlType::Int),
            (CqlType::Ascii, CqlType::Text),
            (CqlType::Blob, CqlType::Int),
            (CqlType::Varint, CqlType::Int),
            (CqlType::Timeuuid, CqlType::Uuid),
            (CqlType::Blob, list(CqlType::Int, true)),
            (list(CqlType::Int, false), list(CqlType::Int, true)),
            (CqlType::Tuple([CqlType::Int].into()), CqlType::Tuple([CqlType::Int, CqlType::Int].into())),
        ] {
            assert!(!is_serialization_compatible(&new, &old), "{new} after {old}");
        }
    }
}
