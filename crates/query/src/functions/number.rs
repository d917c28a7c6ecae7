//! The value of a number of any type, and what it becomes as one of another.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};
use types::{CqlType, float, varint};

use super::decimal::{ArithmeticError, Decimal, low_bits};

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
    Decimal(Decimal),
    Varint(BigInt),
}

impl Number {
    /// The number a value of a numeric type is; none when it is empty.
    ///
    /// # Errors
    /// It is longer than numbers may be, as only one can be that came in a file.
    pub(super) fn decode(cql_type: &CqlType, value: &[u8]) -> Result<Option<Number>, ArithmeticError> {
        if matches!(cql_type, CqlType::Decimal | CqlType::Varint) {
            cql_type.validate(value)?;
        }
        Ok(Number::decode_valid(cql_type, value))
    }

    fn decode_valid(cql_type: &CqlType, value: &[u8]) -> Option<Number> {
        Some(match cql_type {
            CqlType::Tinyint => Number::Integer(i8::from_be_bytes(value.try_into().ok()?).into()),
            CqlType::Smallint => Number::Integer(i16::from_be_bytes(value.try_into().ok()?).into()),
            CqlType::Int => Number::Integer(i32::from_be_bytes(value.try_into().ok()?).into()),
            CqlType::Bigint | CqlType::Counter => Number::Integer(i64::from_be_bytes(value.try_into().ok()?)),
            CqlType::Float => Number::Float(f32::from_be_bytes(value.try_into().ok()?)),
            CqlType::Double => Number::Double(f64::from_be_bytes(value.try_into().ok()?)),
            CqlType::Decimal => Number::Decimal(Decimal::decode(value)?),
            CqlType::Varint => Number::Varint(varint::decode(value)?),
            _ => return None,
        })
    }

    /// As Java's `longValue`.
    pub(super) fn as_i64(&self) -> Result<i64, ArithmeticError> {
        Ok(match self {
            Number::Integer(value) => *value,
            // `as` saturates and takes NaN for 0, as Java does.
            Number::Float(value) => *value as i64,
            Number::Double(value) => *value as i64,
            Number::Decimal(value) => value.low_bits()?,
            Number::Varint(value) => low_bits(value),
        })
    }

    pub(super) fn as_f64(&self) -> f64 {
        match self {
            Number::Integer(value) => *value as f64,
            Number::Float(value) => f64::from(*value),
            Number::Double(value) => *value,
            Number::Decimal(value) => value.as_f64(),
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

    /// As one of two operands where the other or the result is a decimal: integers and floats go by way of a double,
    /// whose shortest text it is (`DecimalType.toBigDecimal`), so that 2 is 2.0 here.
    ///
    /// # Errors
    /// It is NaN or infinite.
    pub(super) fn as_operand(&self) -> Result<Decimal, ArithmeticError> {
        match self {
            Number::Decimal(_) | Number::Varint(_) => self.as_decimal(),
            other => Number::Double(other.as_f64()).as_decimal(),
        }
    }

    /// The exact decimal; of a float that of its shortest text.
    ///
    /// # Errors
    /// It is NaN or infinite.
    fn as_decimal(&self) -> Result<Decimal, ArithmeticError> {
        match self {
            Number::Integer(value) => Ok(BigInt::from(*value).into()),
            Number::Float(value) if value.is_finite() => {
                Decimal::parse(&float::format_float(&value.to_be_bytes()))
            }
            Number::Double(value) if value.is_finite() => {
                Decimal::parse(&float::format_double(&value.to_be_bytes()))
            }
            Number::Float(_) | Number::Double(_) if self.as_f64().is_nan() => {
                Err(ArithmeticError::NotANumber)
            }
            Number::Float(_) | Number::Double(_) => Err(ArithmeticError::Infinite),
            Number::Decimal(value) => Ok(value.clone()),
            Number::Varint(value) => Ok(value.clone().into()),
        }
    }

    pub(super) fn as_varint(&self) -> Result<BigInt, ArithmeticError> {
        match self {
            Number::Varint(value) => Ok(value.clone()),
            other => other.as_i64().map(BigInt::from),
        }
    }

    /// Narrowed to a type as Java narrows: integers keep their low bits.
    ///
    /// # Errors
    /// There is no such value of the type, or it is too long.
    pub(super) fn encode(&self, cql_type: &CqlType) -> Result<Vec<u8>, ArithmeticError> {
        Ok(match cql_type {
            CqlType::Tinyint => (self.as_narrow_int()? as i8).to_be_bytes().to_vec(),
            CqlType::Smallint => (self.as_narrow_int()? as i16).to_be_bytes().to_vec(),
            CqlType::Int => self.as_narrow_int()?.to_be_bytes().to_vec(),
            CqlType::Bigint | CqlType::Counter => self.as_i64()?.to_be_bytes().to_vec(),
            CqlType::Float => self.as_f32().to_be_bytes().to_vec(),
            CqlType::Double => self.as_f64().to_be_bytes().to_vec(),
            CqlType::Decimal => checked(cql_type, self.as_decimal()?.encode())?,
            _ => checked(cql_type, varint::encode(&self.as_varint()?))?,
        })
    }

    /// As Java's `intValue`: floats saturate at 32 bits, integers wrap.
    fn as_narrow_int(&self) -> Result<i32, ArithmeticError> {
        Ok(match self {
            Number::Float(value) => *value as i32,
            Number::Double(value) => *value as i32,
            other => other.as_i64()? as i32,
        })
    }
}

/// A value that is not too long.
fn checked(cql_type: &CqlType, value: Vec<u8>) -> Result<Vec<u8>, ArithmeticError> {
    cql_type.validate(&value)?;
    Ok(value)
}

pub(super) fn negate(number: Number) -> Number {
    match number {
        Number::Integer(value) => Number::Integer(value.wrapping_neg()),
        Number::Float(value) => Number::Float(-value),
        Number::Double(value) => Number::Double(-value),
        Number::Decimal(value) => Number::Decimal(value.negated()),
        Number::Varint(value) => Number::Varint(-value),
    }
}

pub(super) fn abs(number: Number) -> Number {
    match number {
        Number::Integer(value) => Number::Integer(value.wrapping_abs()),
        Number::Float(value) => Number::Float(value.abs()),
        Number::Double(value) => Number::Double(value.abs()),
        Number::Decimal(value) => Number::Decimal(value.magnitude()),
        Number::Varint(value) => Number::Varint(value.abs()),
    }
}

/// To the nearest whole number; halves go up in magnitude for decimals and up for floats, as in Java.
///
/// # Errors
/// Its digits are too many.
pub(super) fn round(number: Number) -> Result<Number, ArithmeticError> {
    Ok(match number {
        Number::Float(value) => Number::Float((value + 0.5).floor()),
        Number::Double(value) => Number::Double((value + 0.5).floor()),
        Number::Decimal(value) => Number::Decimal(value.whole()?),
        whole => whole,
    })
}
