//! Rust values into CQL values and back.
//!
//! | file | what |
//! |---|---|
//! | `simple.rs` | numbers, text, blobs, ids, addresses |
//! | `time.rs` | dates, times, durations |
//! | `collections.rs` | lists, sets, maps, vectors |
//! | `tuples.rs` | tuples and user-defined types |
//! | `dynamic.rs` | any value, its type not known beforehand |

mod collections;
mod dynamic;
mod simple;
mod time;
mod tuples;

use types::{CqlType, TypeError};

pub use dynamic::Value;
pub use time::{Date, Duration, Time, Timestamp};

/// Why a Rust value and a CQL value do not go into each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are the facts the message tells")]
pub enum ValueError {
    /// The types have nothing to do with each other.
    #[error("CQL type {cql_type} does not go with Rust type {rust_type}")]
    Type { cql_type: String, rust_type: &'static str },
    /// A null where the Rust type has no room for it.
    #[error("null does not go into Rust type {rust_type}; Option takes it")]
    Null { rust_type: &'static str },
    /// A number that is too large for the other side.
    #[error("{value} is out of the range of {target}")]
    Range { value: String, target: String },
    /// Another number of elements or fields.
    #[error("{cql_type} has {expected} elements, not {got}")]
    Count { cql_type: String, expected: usize, got: usize },
    /// A null, or no value at all, inside a collection.
    #[error("an element of {cql_type} can not be null")]
    NullElement { cql_type: String },
    /// More bytes than a value can have.
    #[error("a value of {value_bytes} bytes is too long")]
    TooLong { value_bytes: usize },
    /// The bytes are no value of their type.
    #[error("the bytes are no value of type {cql_type}")]
    Damaged { cql_type: String },
    /// A field that the user-defined type does not have.
    #[error("type {cql_type} has no field {field}")]
    NoField { cql_type: String, field: String },
    /// The value is not one of the type.
    #[error(transparent)]
    Other(#[from] TypeError),
}

/// What a marker was bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The bytes that were appended, perhaps none.
    Value,
    /// `null`.
    Null,
    /// Nothing: a column is left as it is.
    Unset,
}

/// A Rust value that can be bound to a marker of a CQL type.
///
/// | CQL | Rust |
/// |---|---|
/// | `tinyint`, `smallint`, `int`, `bigint`, `counter`, `varint` | `i8`, `i16`, `i32`, `i64` (checked), [`BigInt`](crate::BigInt) for `varint` |
/// | `float`, `double`, `decimal` | `f32` (both), `f64`, [`BigDecimal`](crate::BigDecimal) |
/// | `boolean` | `bool` |
/// | `text`, `ascii` | `str`, `String` |
/// | `blob` | `[u8]`, `Vec<u8>`, [`Bytes`](crate::Bytes) |
/// | `uuid`, `timeuuid` | [`Uuid`](crate::Uuid) |
/// | `inet` | `IpAddr`, `Ipv4Addr`, `Ipv6Addr` |
/// | `timestamp`, `time` | [`Timestamp`], [`Time`], or `i64` |
/// | `date`, `duration` | [`Date`], [`Duration`] |
/// | `list`, `set`, `vector` | `Vec<T>`, `[T]`, `HashSet<T>`, `BTreeSet<T>` |
/// | `map` | `HashMap<K, V>`, `BTreeMap<K, V>` |
/// | `tuple`, user-defined types | tuples of up to 12, in the order of the fields; [`Value`] |
/// | any | [`Value`], `Option<T>`, [`Unset`], references |
pub trait ToCql {
    /// Appends the value in the native encoding of that type.
    ///
    /// # Errors
    /// It does not go into the type; what was appended means nothing then.
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError>;
}

/// A Rust type that a CQL value can be read into: those of [`ToCql`], and `&str` and `&[u8]` that borrow
/// from their row.
///
/// A null needs `Option<T>`, or a collection, which is empty then: Cassandra does not tell an empty list,
/// set or map that is not frozen from none.
pub trait FromCql<'a>: Sized {
    /// Reads a value of that type; `None` is null.
    ///
    /// # Errors
    /// It does not go into the Rust type.
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError>;
}

/// Bound to a marker, leaves its column as it is: neither a value nor a deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unset;

impl ToCql for Unset {
    fn to_cql(&self, _: &CqlType, _: &mut Vec<u8>) -> Result<Written, ValueError> {
        Ok(Written::Unset)
    }
}

impl<T: ToCql> ToCql for Option<T> {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match self {
            Some(value) => value.to_cql(cql_type, out),
            None => Ok(Written::Null),
        }
    }
}

impl<'a, T: FromCql<'a>> FromCql<'a> for Option<T> {
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
        match value {
            None => Ok(None),
            // A value of no bytes, which Cassandra allows and which is no number.
            Some([]) if cql_type.empty_is_meaningless() => Ok(None),
            Some(_) => T::from_cql(cql_type, value).map(Some),
        }
    }
}

macro_rules! to_cql_through {
    ($($pointer:ty),*) => {
        $(impl<T: ToCql + ?Sized> ToCql for $pointer {
            fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
                (**self).to_cql(cql_type, out)
            }
        })*
    };
}

to_cql_through!(&T, &mut T, Box<T>, std::rc::Rc<T>, std::sync::Arc<T>);

impl<T: ToCql + ToOwned + ?Sized> ToCql for std::borrow::Cow<'_, T> {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        (**self).to_cql(cql_type, out)
    }
}

fn mismatch<T: ?Sized>(cql_type: &CqlType) -> ValueError {
    ValueError::Type { cql_type: cql_type.to_string(), rust_type: std::any::type_name::<T>() }
}

fn damaged(cql_type: &CqlType) -> ValueError {
    ValueError::Damaged { cql_type: cql_type.to_string() }
}

/// The bytes of a value that must be there.
fn required<T>(value: Option<&[u8]>) -> Result<&[u8], ValueError> {
    value.ok_or(ValueError::Null { rust_type: std::any::type_name::<T>() })
}

/// The bytes of a value of a fixed length.
fn fixed<const N: usize>(cql_type: &CqlType, value: &[u8]) -> Result<[u8; N], ValueError> {
    value.try_into().map_err(|_| damaged(cql_type))
}
