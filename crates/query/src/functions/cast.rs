//! `CAST(a AS type)` and the arithmetic value of numbers that it shares with the operators.

use bigdecimal::{BigDecimal, FromPrimitive, RoundingMode};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};
use types::{CqlType, date, decimal, timestamp, uuid, varint};

use super::ScalarFunction;
use crate::QueryError;

/// The numeric types in the order of their width.
pub(super) const NUMERIC: &[CqlType] = &[
    CqlType::Tinyint,
    CqlType::Smallint,
    CqlType::Int,
    CqlType::Bigint,
    CqlType::Float,
    CqlType::Double,
    CqlType::Decimal,
    CqlType::Counter,
    CqlType::Varint,
];

/// A number out of a row.
#[derive(Clone, Debug)]
pub(super) enum Number {
    Integer(i64),
    Float(f32),
    Double(f64),
    Decimal(BigDecimal),
    Varint(BigInt),
}

impl Number {
    /// The number a value of a numeric type is; none when it is empty.
    pub(super) fn decode(cql_type: &CqlType, value: &[u8]) -> Option<Number> {
        Some(match cql_type {
            CqlType::Tinyint => Number::Integer(i8::from_be_bytes(value.try_into().ok()?).into()),
            CqlType::Smallint => Number::Integer(i16::from_be_bytes(value.try_into().ok()?).into()),
            CqlType::Int => Number::Integer(i32::from_be_bytes(value.try_into().ok()?).into()),
            CqlType::Bigint | CqlType::Counter => Number::Integer(i64::from_be_bytes(value.try_into().ok()?)),
            CqlType::Float => Number::Float(f32::from_be_bytes(value.try_into().ok()?)),
            CqlType::Double => Number::Double(f64::from_be_bytes(value.try_into().ok()?)),
            CqlType::Decimal => Number::Decimal(decimal::decode(value)?),
            CqlType::Varint => Number::Varint(varint::decode(value)?),
            _ => return None,
        })
    }

    /// As Java's `longValue`.
    pub(super) fn as_i64(&self) -> i64 {
        match self {
            Number::Integer(value) => *value,
            // `as` saturates and takes NaN for 0, as Java does.
            Number::Float(value) => *value as i64,
            Number::Double(value) => *value as i64,
            Number::Decimal(value) => low_bits(&value.with_scale(0).into_bigint_and_exponent().0),
            Number::Varint(value) => low_bits(value),
        }
    }

    pub(super) fn as_f64(&self) -> f64 {
        match self {
            Number::Integer(value) => *value as f64,
            Number::Float(value) => f64::from(*value),
            Number::Double(value) => *value,
            Number::Decimal(value) => value.to_f64().unwrap_or(f64::NAN),
            Number::Varint(value) => value.to_f64().unwrap_or(f64::NAN),
        }
    }

    fn as_f32(&self) -> f32 {
        match self {
            Number::Integer(value) => *value as f32,
            Number::Float(value) => *value,
            other => other.as_f64() as f32,
        }
    }

    /// The exact decimal; NaN and infinities have none.
    pub(super) fn as_decimal(&self) -> Option<BigDecimal> {
        match self {
            Number::Integer(value) => BigDecimal::from_i64(*value),
            Number::Float(value) => types::float::format_float(&value.to_be_bytes()).parse().ok(),
            Number::Double(value) => types::float::format_double(&value.to_be_bytes()).parse().ok(),
            Number::Decimal(value) => Some(value.clone()),
            Number::Varint(value) => Some(BigDecimal::from(value.clone())),
        }
    }

    pub(super) fn as_varint(&self) -> BigInt {
        match self {
            Number::Varint(value) => value.clone(),
            other => BigInt::from(other.as_i64()),
        }
    }

    /// Narrowed to a type as Java narrows: integers keep their low bits.
    pub(super) fn encode(&self, cql_type: &CqlType) -> Result<Vec<u8>, QueryError> {
        Ok(match cql_type {
            CqlType::Tinyint => (self.as_narrow_int() as i8).to_be_bytes().to_vec(),
            CqlType::Smallint => (self.as_narrow_int() as i16).to_be_bytes().to_vec(),
            CqlType::Int => self.as_narrow_int().to_be_bytes().to_vec(),
            CqlType::Bigint | CqlType::Counter => self.as_i64().to_be_bytes().to_vec(),
            CqlType::Float => self.as_f32().to_be_bytes().to_vec(),
            CqlType::Double => self.as_f64().to_be_bytes().to_vec(),
            CqlType::Decimal => {
                let value = self.as_decimal().ok_or_else(|| {
                    QueryError::invalid("Infinite or NaN can not be converted to a decimal")
                })?;
                decimal::encode(&value)?
            }
            _ => varint::encode(&self.as_varint()),
        })
    }

    /// As Java's `intValue`: floats saturate at 32 bits, integers wrap.
    fn as_narrow_int(&self) -> i32 {
        match self {
            Number::Float(value) => *value as i32,
            Number::Double(value) => *value as i32,
            other => other.as_i64() as i32,
        }
    }
}

pub(super) fn abs(number: Number) -> Number {
    match number {
        Number::Integer(value) => Number::Integer(value.wrapping_abs()),
        Number::Float(value) => Number::Float(value.abs()),
        Number::Double(value) => Number::Double(value.abs()),
        Number::Decimal(value) => Number::Decimal(value.abs()),
        Number::Varint(value) => Number::Varint(value.abs()),
    }
}

/// To the nearest whole number; halves go up in magnitude for decimals and up for floats, as in Java.
pub(super) fn round(number: Number) -> Number {
    match number {
        Number::Float(value) => Number::Float((value + 0.5).floor()),
        Number::Double(value) => Number::Double((value + 0.5).floor()),
        Number::Decimal(value) => Number::Decimal(value.with_scale_round(0, RoundingMode::HalfUp)),
        whole => whole,
    }
}

fn low_bits(value: &BigInt) -> i64 {
    let bytes = value.to_signed_bytes_be();
    let sign = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
    let tail = &bytes[bytes.len().saturating_sub(8)..];
    tail.iter().fold(sign, |bits, byte| bits << 8 | i64::from(*byte))
}

/// The casts to a type: `cast_as_int`, also as `castasint` (`CAST(a AS int)`).
pub(super) fn named(name: &str) -> Vec<ScalarFunction> {
    let Some(to) = name.strip_prefix("cast_as_").or_else(|| name.strip_prefix("castas")) else {
        return Vec::new();
    };
    let Some(to) = CqlType::from_native_name(to) else { return Vec::new() };
    sources(&to).into_iter().map(|from| cast(name, from, to.clone())).collect()
}

fn sources(to: &CqlType) -> Vec<CqlType> {
    match to {
        CqlType::Text | CqlType::Ascii => {
            let mut all = NUMERIC.to_vec();
            if *to == CqlType::Text {
                all.push(CqlType::Ascii);
            }
            all.extend([
                CqlType::Inet,
                CqlType::Boolean,
                CqlType::Timeuuid,
                CqlType::Timestamp,
                CqlType::Date,
                CqlType::Time,
                CqlType::Uuid,
            ]);
            all
        }
        CqlType::Date => vec![CqlType::Timeuuid, CqlType::Timestamp],
        CqlType::Timestamp => vec![CqlType::Timeuuid, CqlType::Date],
        CqlType::Counter => Vec::new(),
        _ if NUMERIC.contains(to) => NUMERIC.iter().filter(|from| *from != to).cloned().collect(),
        _ => Vec::new(),
    }
}

fn cast(name: &str, from: CqlType, to: CqlType) -> ScalarFunction {
    let (source, target) = (from.clone(), to.clone());
    ScalarFunction::native(name, vec![from], to, move |arguments, _| {
        let Some(value) = arguments[0] else { return Ok(None) };
        if value.is_empty() && source.empty_is_meaningless() {
            return Ok(None);
        }
        match target {
            CqlType::Text | CqlType::Ascii => Ok(Some(source.to_text(value).into_bytes())),
            CqlType::Date => Ok(millis_of(&source, value).map(|ms| date::from_millis(ms).to_vec())),
            CqlType::Timestamp => Ok(millis_of(&source, value).map(|ms| ms.to_be_bytes().to_vec())),
            _ => Number::decode(&source, value).map(|number| number.encode(&target)).transpose(),
        }
    })
}

/// Milliseconds since 1970 of a value of a temporal type.
pub(super) fn millis_of(cql_type: &CqlType, value: &[u8]) -> Option<i64> {
    match cql_type {
        CqlType::Timestamp => timestamp::decode(value),
        CqlType::Date => date::to_millis(value),
        CqlType::Timeuuid => uuid::unix_millis(value),
        _ => None,
    }
}
