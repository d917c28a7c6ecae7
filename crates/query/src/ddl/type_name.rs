//! From a written type to a type: user types looked up, nesting checked.

use std::sync::Arc;

use cql::ast::{CqlTypeName, NativeType};
use types::CqlType;

use super::type_size;
use crate::QueryError;
use crate::catalog::Catalog;
use crate::error::refuse;

const MARSHAL: &str = "org.apache.cassandra.db.marshal.";

/// Classes that Cassandra has and that are no types of CQL.
const WITHOUT_CQL_TYPE: [&str; 8] = [
    "CompositeType",
    "DateType",
    "DynamicCompositeType",
    "LexicalUUIDType",
    "LocalByPartionerType",
    "PartitionerDefinedOrder",
    "ReversedType",
    "UserType",
];

/// The type a name means in a statement on `keyspace`.
///
/// # Errors
/// It nests what must not be nested, is too large, or names a user type that does not exist.
pub(crate) fn resolve_type(
    name: &CqlTypeName,
    keyspace: &str,
    catalog: &Catalog<'_>,
) -> Result<CqlType, QueryError> {
    let cql_type = resolve(name, false, keyspace, catalog)?;
    type_size::check(&cql_type)?;
    Ok(cql_type)
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
            check_counter(&shown(name, frozen), element)?;
            Ok(CqlType::List { element: inner(element)?, frozen })
        }
        CqlTypeName::Set(element) => {
            check_nested(name, element, frozen)?;
            check_counter(&shown(name, frozen), element)?;
            if is_native(element, NativeType::Duration) {
                refuse!("Durations are not allowed inside sets: {}", shown(name, frozen));
            }
            Ok(CqlType::Set { element: inner(element)?, frozen })
        }
        CqlTypeName::Map(key, value) => {
            check_nested(name, value, frozen)?;
            check_counter(&shown(name, frozen), value)?;
            check_counter(&shown(name, frozen), key)?;
            if is_native(key, NativeType::Duration) {
                refuse!("Durations are not allowed as map keys: {}", shown(name, frozen));
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
            // Unlike all else that nests, an element is frozen only if it is written so.
            let element = Arc::new(resolve(element, frozen, keyspace, catalog)?);
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

/// The type as Cassandra names it in messages: inside a frozen one all that can be is frozen.
fn shown(name: &CqlTypeName, frozen: bool) -> CqlTypeName {
    let part = |of: &CqlTypeName| Box::new(shown(of, true));
    let inside = match name {
        _ if !frozen => return name.clone(),
        CqlTypeName::Frozen(of) => return shown(of, true),
        CqlTypeName::List(element) => CqlTypeName::List(part(element)),
        CqlTypeName::Set(element) => CqlTypeName::Set(part(element)),
        CqlTypeName::Map(key, value) => CqlTypeName::Map(part(key), part(value)),
        CqlTypeName::Tuple(parts) => CqlTypeName::Tuple(parts.iter().map(|part| shown(part, true)).collect()),
        CqlTypeName::User { .. } => name.clone(),
        CqlTypeName::Native(_) | CqlTypeName::Vector(..) | CqlTypeName::Custom(_) => return name.clone(),
    };
    CqlTypeName::Frozen(Box::new(inside))
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
///
/// # Errors
/// There is no such class, or it is one that has no type of CQL.
fn custom(class: &str) -> Result<CqlType, QueryError> {
    if class.trim().is_empty() {
        return Ok(CqlType::Blob);
    }
    let outer = class.split('(').next().unwrap_or(class);
    let full_outer = if outer.contains('.') { outer.to_owned() } else { format!("{MARSHAL}{outer}") };
    let full = format!("{full_outer}{}", &class[outer.len()..]);
    if let Ok(found) = CqlType::from_marshal(&full) {
        return Ok(found);
    }
    if full_outer.strip_prefix(MARSHAL).is_some_and(|short| WITHOUT_CQL_TYPE.contains(&short)) {
        return Err(QueryError::unsupported(&format!("type class '{full_outer}'")));
    }
    Err(QueryError::Syntax(match class.contains('(') {
        true => format!("Error setting type {class}: Invalid definition for comparator {full_outer}."),
        false => format!("Error setting type {class}: Unable to find abstract-type class '{full}'"),
    }))
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
