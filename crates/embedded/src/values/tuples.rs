//! Tuples, and user-defined types as tuples of their fields.

use types::CqlType;
use types::encoding::Fields;

use super::collections::write_field;
use super::{FromCql, ToCql, ValueError, Written, damaged, mismatch, required};

/// The types of the fields; `None` when the type has none.
pub(super) fn field_types(cql_type: &CqlType) -> Option<Vec<&CqlType>> {
    match cql_type {
        CqlType::Tuple(fields) => Some(fields.iter().collect()),
        CqlType::UserDefined { definition, .. } => {
            Some(definition.fields.iter().map(|(_, field)| field).collect())
        }
        _ => None,
    }
}

/// Appends fields, of which trailing ones may be missing. A field that is not set is null.
pub(super) fn write_fields<Rust>(
    fields: &[&dyn ToCql],
    cql_type: &CqlType,
    out: &mut Vec<u8>,
) -> Result<Written, ValueError> {
    let types = field_types(cql_type).ok_or_else(|| mismatch::<Rust>(cql_type))?;
    if fields.len() != types.len() {
        return Err(ValueError::Count {
            cql_type: cql_type.to_string(),
            expected: types.len(),
            got: fields.len(),
        });
    }
    for (field, field_type) in fields.iter().zip(types) {
        write_field(*field, field_type, out)?;
    }
    Ok(Written::Value)
}

/// As many fields as the type has, of which those that are missing at the end are null.
pub(super) fn read_fields<'a, Rust>(
    cql_type: &CqlType,
    value: Option<&'a [u8]>,
) -> Result<Vec<Option<&'a [u8]>>, ValueError> {
    let types = field_types(cql_type).ok_or_else(|| mismatch::<Rust>(cql_type))?;
    let mut fields = Vec::with_capacity(types.len());
    for field in Fields::new(required::<Rust>(value)?).take(types.len()) {
        fields.push(field.map_err(|_| damaged(cql_type))?);
    }
    fields.resize(types.len(), None);
    Ok(fields)
}

macro_rules! tuple {
    ($count:literal: $($name:ident $index:tt),*) => {
        impl<$($name: ToCql),*> ToCql for ($($name,)*) {
            fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
                write_fields::<Self>(&[$(&self.$index),*], cql_type, out)
            }
        }

        impl<'a, $($name: FromCql<'a>),*> FromCql<'a> for ($($name,)*) {
            fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
                let types = field_types(cql_type).ok_or_else(|| mismatch::<Self>(cql_type))?;
                let fields = read_fields::<Self>(cql_type, value)?;
                if fields.len() != $count {
                    return Err(ValueError::Count {
                        cql_type: cql_type.to_string(),
                        expected: fields.len(),
                        got: $count,
                    });
                }
                Ok(($($name::from_cql(types[$index], fields[$index])?,)*))
            }
        }
    };
}

tuple!(1: A 0);
tuple!(2: A 0, B 1);
tuple!(3: A 0, B 1, C 2);
tuple!(4: A 0, B 1, C 2, D 3);
tuple!(5: A 0, B 1, C 2, D 3, E 4);
tuple!(6: A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuple!(9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuple!(10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuple!(11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuple!(12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
