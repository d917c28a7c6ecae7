//! Any CQL value, for code that does not know the types beforehand.

use std::net::IpAddr;

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use types::{CqlType, UserType};
use uuid::Uuid;

use super::collections::read_elements;
use super::tuples::{field_types, read_fields, write_fields};
use super::{Date, Duration, FromCql, Time, Timestamp, ToCql, ValueError, Written, mismatch};

/// Any CQL value. Read from a column, it is of the variant of the column's type, or `Null`; bound to a
/// marker, it goes where the Rust type of its variant goes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// No value.
    Null,
    /// `boolean`.
    Boolean(bool),
    /// `tinyint`.
    Tinyint(i8),
    /// `smallint`.
    Smallint(i16),
    /// `int`.
    Int(i32),
    /// `bigint` and `counter`.
    Bigint(i64),
    /// `varint`.
    Varint(BigInt),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `decimal`.
    Decimal(BigDecimal),
    /// `text` and `ascii`.
    Text(String),
    /// `blob`.
    Blob(Vec<u8>),
    /// `uuid` and `timeuuid`.
    Uuid(Uuid),
    /// `inet`.
    Inet(IpAddr),
    /// `timestamp`.
    Timestamp(Timestamp),
    /// `date`.
    Date(Date),
    /// `time`.
    Time(Time),
    /// `duration`.
    Duration(Duration),
    /// `list`.
    List(Vec<Value>),
    /// `set`, in the order of its type.
    Set(Vec<Value>),
    /// `map`, in the order of its keys.
    Map(Vec<(Value, Value)>),
    /// `vector`.
    Vector(Vec<Value>),
    /// `tuple`.
    Tuple(Vec<Value>),
    /// A user-defined type: names and values of fields. Bound, fields may come in any order, and those
    /// left out are null.
    UserDefined(Vec<(String, Value)>),
}

impl ToCql for Value {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match self {
            Value::Null => Ok(Written::Null),
            Value::Boolean(value) => value.to_cql(cql_type, out),
            Value::Tinyint(value) => value.to_cql(cql_type, out),
            Value::Smallint(value) => value.to_cql(cql_type, out),
            Value::Int(value) => value.to_cql(cql_type, out),
            Value::Bigint(value) => value.to_cql(cql_type, out),
            Value::Varint(value) => value.to_cql(cql_type, out),
            Value::Float(value) => value.to_cql(cql_type, out),
            Value::Double(value) => value.to_cql(cql_type, out),
            Value::Decimal(value) => value.to_cql(cql_type, out),
            Value::Text(value) => value.to_cql(cql_type, out),
            Value::Blob(value) => value.to_cql(cql_type, out),
            Value::Uuid(value) => value.to_cql(cql_type, out),
            Value::Inet(value) => value.to_cql(cql_type, out),
            Value::Timestamp(value) => value.to_cql(cql_type, out),
            Value::Date(value) => value.to_cql(cql_type, out),
            Value::Time(value) => value.to_cql(cql_type, out),
            Value::Duration(value) => value.to_cql(cql_type, out),
            Value::List(values) | Value::Set(values) | Value::Vector(values) => values.to_cql(cql_type, out),
            Value::Map(entries) => write_entries(entries, cql_type, out),
            Value::Tuple(fields) => {
                let fields: Vec<&dyn ToCql> = fields.iter().map(|field| field as &dyn ToCql).collect();
                write_fields::<Value>(&fields, cql_type, out)
            }
            Value::UserDefined(fields) => write_user_defined(fields, cql_type, out),
        }
    }
}

fn write_entries(
    entries: &[(Value, Value)],
    cql_type: &CqlType,
    out: &mut Vec<u8>,
) -> Result<Written, ValueError> {
    let entries = entries.iter().map(|(key, value)| (key as &dyn ToCql, value as &dyn ToCql));
    super::collections::write_map::<Value>(entries, cql_type, out)
}

fn write_user_defined(
    fields: &[(String, Value)],
    cql_type: &CqlType,
    out: &mut Vec<u8>,
) -> Result<Written, ValueError> {
    let CqlType::UserDefined { definition, .. } = cql_type else {
        return Err(mismatch::<Value>(cql_type));
    };
    let is_known = |name: &String| definition.fields.iter().any(|(known, _)| known == name);
    if let Some((field, _)) = fields.iter().find(|(name, _)| !is_known(name)) {
        return Err(ValueError::NoField { cql_type: cql_type.to_string(), field: field.clone() });
    }
    let value_of = |name: &String| -> &dyn ToCql {
        fields.iter().find(|(field, _)| field == name).map_or(&Value::Null, |(_, value)| value)
    };
    let values: Vec<&dyn ToCql> = definition.fields.iter().map(|(name, _)| value_of(name)).collect();
    write_fields::<Value>(&values, cql_type, out)
}

impl<'a> FromCql<'a> for Value {
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
        // What has no bytes and would mean something else in them is as good as null.
        let is_meaningless = |bytes: &[u8]| bytes.is_empty() && cql_type.empty_is_meaningless();
        if value.is_none_or(is_meaningless) {
            return Ok(Value::Null);
        }
        Ok(match cql_type {
            CqlType::Boolean => Value::Boolean(FromCql::from_cql(cql_type, value)?),
            CqlType::Tinyint => Value::Tinyint(FromCql::from_cql(cql_type, value)?),
            CqlType::Smallint => Value::Smallint(FromCql::from_cql(cql_type, value)?),
            CqlType::Int => Value::Int(FromCql::from_cql(cql_type, value)?),
            CqlType::Bigint | CqlType::Counter => Value::Bigint(FromCql::from_cql(cql_type, value)?),
            CqlType::Varint => Value::Varint(FromCql::from_cql(cql_type, value)?),
            CqlType::Float => Value::Float(FromCql::from_cql(cql_type, value)?),
            CqlType::Double => Value::Double(FromCql::from_cql(cql_type, value)?),
            CqlType::Decimal => Value::Decimal(FromCql::from_cql(cql_type, value)?),
            CqlType::Text | CqlType::Ascii => Value::Text(FromCql::from_cql(cql_type, value)?),
            CqlType::Blob => Value::Blob(FromCql::from_cql(cql_type, value)?),
            CqlType::Uuid | CqlType::Timeuuid => Value::Uuid(FromCql::from_cql(cql_type, value)?),
            CqlType::Inet => Value::Inet(FromCql::from_cql(cql_type, value)?),
            CqlType::Timestamp => Value::Timestamp(FromCql::from_cql(cql_type, value)?),
            CqlType::Date => Value::Date(FromCql::from_cql(cql_type, value)?),
            CqlType::Time => Value::Time(FromCql::from_cql(cql_type, value)?),
            CqlType::Duration => Value::Duration(FromCql::from_cql(cql_type, value)?),
            CqlType::Empty => Value::Null,
            CqlType::List { .. } => Value::List(elements(cql_type, value)?),
            CqlType::Set { .. } => Value::Set(elements(cql_type, value)?),
            CqlType::Vector { .. } => Value::Vector(elements(cql_type, value)?),
            CqlType::Map { .. } => Value::Map(super::collections::entries(cql_type, value)?),
            CqlType::Tuple(_) => Value::Tuple(fields(cql_type, value)?),
            CqlType::UserDefined { definition, .. } => {
                Value::UserDefined(named(definition, fields(cql_type, value)?))
            }
        })
    }
}

fn elements(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Vec<Value>, ValueError> {
    let mut elements = Vec::new();
    read_elements::<Value>(cql_type, value, |of, part| {
        elements.push(Value::from_cql(of, part)?);
        Ok(())
    })?;
    Ok(elements)
}

fn fields(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Vec<Value>, ValueError> {
    let types = field_types(cql_type).ok_or_else(|| mismatch::<Value>(cql_type))?;
    let fields = read_fields::<Value>(cql_type, value)?;
    types.into_iter().zip(fields).map(|(of, field)| Value::from_cql(of, field)).collect()
}

fn named(definition: &UserType, fields: Vec<Value>) -> Vec<(String, Value)> {
    definition.fields.iter().map(|(name, _)| name.clone()).zip(fields).collect()
}
