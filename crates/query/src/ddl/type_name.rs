//! From a written type to a type: user types looked up, nesting checked.

use std::sync::Arc;

use cql::ast::{CqlTypeName, NativeType};
use types::{CqlType, marshal};

use crate::QueryError;
use crate::catalog::Catalog;
use crate::error::refuse;

/// The type a name means in a statement on `keyspace`.
///
/// # Errors
/// It nests what must not be nested, or names a user type that does not exist.
pub(crate) fn resolve_type(
    name: &CqlTypeName,
    keyspace: &str,
    catalog: &Catalog<'_>,
) -> Result<CqlType, QueryError> {
    resolve(name, false, keyspace, catalog)
}

fn resolve(
    name: &CqlTypeName,
    frozen: bool,
    keyspace: &str,
    catalog: &Catalog<'_>,
) -> Result<CqlType, QueryError> {
    let inner = |part: &CqlTypeName| -> Result<Arc<CqlType>, QueryError> {
        resolve(part, frozen || is_frozen(part), keyspace, catalog).map(|of| Arc::new(of.freeze()))
    };
    match name {
        CqlTypeName::Native(native) => Ok(native_type(*native)),
        CqlTypeName::Frozen(part) => match &**part {
            CqlTypeName::Native(native) => Err(QueryError::Syntax(format!(
                "frozen<> is only allowed on collections, tuples, and user-defined types (got {})",
                native.name()
            ))),
            _ => Ok(resolve(part, true, keyspace, catalog)?.freeze()),
        },
        CqlTypeName::List(element) => {
            check_nested(name, element, frozen)?;
            check_counter(name, element)?;
            Ok(CqlType::List { element: inner(element)?, frozen })
        }
        CqlTypeName::Set(element) => {
            check_nested(name, element, frozen)?;
            check_counter(name, element)?;
            if is_native(element, NativeType::Duration) {
                refuse!("Durations are not allowed inside sets: {name}");
            }
            Ok(CqlType::Set { element: inner(element)?, frozen })
        }
        CqlTypeName::Map(key, value) => {
            check_nested(name, value, frozen)?;
            check_counter(name, value)?;
            check_counter(name, key)?;
            if is_native(key, NativeType::Duration) {
                refuse!("Durations are not allowed as map keys: {name}");
            }
            check_nested(name, key, frozen)?;
            Ok(CqlType::Map { key: inner(key)?, value: inner(value)?, frozen })
        }
        CqlTypeName::Tuple(parts) => {
            if parts.iter().any(|part| is_native(part, NativeType::Counter)) {
                refuse!("Counters are not allowed inside tuples");
            }
            let parts = parts.iter().map(|part| Ok(inner(part)?.as_ref().clone()));
            Ok(CqlType::Tuple(parts.collect::<Result<Vec<_>, QueryError>>()?.into()))
        }
        CqlTypeName::Vector(element, dimension) => {
            let element = inner(element)?;
            match u32::try_from(*dimension) {
                Ok(dimension) if dimension > 0 => Ok(CqlType::Vector { element, dimension }),
                _ => refuse!("vectors may only have positive dimensions; given {dimension}"),
            }
        }
        CqlTypeName::Custom(class) => custom(class),
        CqlTypeName::User { keyspace: written, name: short } => {
            if let Some(other) = written.as_ref().filter(|other| ***other != *keyspace) {
                refuse!(
                    "Statement on keyspace {keyspace} cannot refer to a user type in keyspace {}; user types can only be used in the keyspace they are defined in",
                    other.as_str()
                );
            }
            let Some(home) = catalog.keyspace(keyspace) else {
                refuse!("Unknown type {keyspace}.{}", short.as_str())
            };
            let Some(definition) = home.types.get(short.as_str()) else {
                refuse!("Unknown type {keyspace}.{}", short.as_str())
            };
            Ok(CqlType::UserDefined { definition: Arc::clone(definition), frozen })
        }
    }
}

fn is_frozen(name: &CqlTypeName) -> bool {
    matches!(name, CqlTypeName::Frozen(_))
}

fn is_native(name: &CqlTypeName, native: NativeType) -> bool {
    *name == CqlTypeName::Native(native)
}

fn check_nested(whole: &CqlTypeName, part: &CqlTypeName, frozen: bool) -> Result<(), QueryError> {
    match part {
        _ if frozen => Ok(()),
        CqlTypeName::List(_) | CqlTypeName::Set(_) | CqlTypeName::Map(..) => {
            refuse!("Non-frozen collections are not allowed inside collections: {whole}")
        }
        CqlTypeName::User { .. } => refuse!("Non-frozen UDTs are not allowed inside collections: {whole}"),
        _ => Ok(()),
    }
}

fn check_counter(whole: &CqlTypeName, part: &CqlTypeName) -> Result<(), QueryError> {
    if is_native(part, NativeType::Counter) {
        refuse!("Counters are not allowed inside collections: {whole}");
    }
    Ok(())
}

/// A type named by its class.
fn custom(class: &str) -> Result<CqlType, QueryError> {
    let full = if class.contains('.') || class.contains('(') {
        class.to_owned()
    } else {
        format!("org.apache.cassandra.db.marshal.{class}")
    };
    marshal::parse(&full)?;
    CqlType::from_marshal(&full).map_err(QueryError::from)
}

pub(crate) fn native_type(native: NativeType) -> CqlType {
    match native {
        NativeType::Ascii => CqlType::Ascii,
        NativeType::Bigint => CqlType::Bigint,
        NativeType::Blob => CqlType::Blob,
        NativeType::Boolean => CqlType::Boolean,
        NativeType::Counter => CqlType::Counter,
        NativeType::Date => CqlType::Date,
        NativeType::Decimal => CqlType::Decimal,
        NativeType::Double => CqlType::Double,
        NativeType::Duration => CqlType::Duration,
        NativeType::Float => CqlType::Float,
        NativeType::Inet => CqlType::Inet,
        NativeType::Int => CqlType::Int,
        NativeType::Smallint => CqlType::Smallint,
        NativeType::Text | NativeType::Varchar => CqlType::Text,
        NativeType::Time => CqlType::Time,
        NativeType::Timestamp => CqlType::Timestamp,
        NativeType::Timeuuid => CqlType::Timeuuid,
        NativeType::Tinyint => CqlType::Tinyint,
        NativeType::Uuid => CqlType::Uuid,
        NativeType::Varint => CqlType::Varint,
    }
}

/// The type of that name, which takes no parameters.
pub(crate) fn native_type_named(name: &str) -> CqlType {
    CqlType::from_native_name(name).unwrap_or(CqlType::Blob)
}
