//! Numbers, text, blobs, ids and addresses.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bigdecimal::BigDecimal;
use bytes::Bytes;
use num_bigint::BigInt;
use types::{CqlType, decimal, inet, varint};
use uuid::Uuid;

use super::{FromCql, ToCql, ValueError, Written, damaged, fixed, mismatch, required};

/// Appends an integer, if it is in the range of the type.
fn write_integer<T>(value: i64, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
    let range = |_| ValueError::Range { value: value.to_string(), target: cql_type.to_string() };
    match cql_type {
        CqlType::Tinyint => out.extend(i8::try_from(value).map_err(range)?.to_be_bytes()),
        CqlType::Smallint => out.extend(i16::try_from(value).map_err(range)?.to_be_bytes()),
        CqlType::Int => out.extend(i32::try_from(value).map_err(range)?.to_be_bytes()),
        CqlType::Bigint | CqlType::Counter => out.extend(value.to_be_bytes()),
        CqlType::Varint => out.extend(varint::encode(&value.into())),
        _ => return Err(mismatch::<T>(cql_type)),
    }
    Ok(Written::Value)
}

fn read_integer<T>(cql_type: &CqlType, value: &[u8]) -> Result<i64, ValueError> {
    Ok(match cql_type {
        CqlType::Tinyint => i8::from_be_bytes(fixed(cql_type, value)?).into(),
        CqlType::Smallint => i16::from_be_bytes(fixed(cql_type, value)?).into(),
        CqlType::Int => i32::from_be_bytes(fixed(cql_type, value)?).into(),
        CqlType::Bigint | CqlType::Counter => i64::from_be_bytes(fixed(cql_type, value)?),
        CqlType::Varint => {
            let number = varint::decode(value).ok_or_else(|| damaged(cql_type))?;
            i64::try_from(&number).map_err(|_| range::<T>(&number))?
        }
        _ => return Err(mismatch::<T>(cql_type)),
    })
}

fn range<T>(value: &impl ToString) -> ValueError {
    ValueError::Range { value: value.to_string(), target: std::any::type_name::<T>().to_owned() }
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(impl ToCql for $integer {
            fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
                write_integer::<$integer>(i64::from(*self), cql_type, out)
            }
        }

        impl FromCql<'_> for $integer {
            fn from_cql(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Self, ValueError> {
                let number = read_integer::<$integer>(cql_type, required::<$integer>(value)?)?;
                <$integer>::try_from(number).map_err(|_| range::<$integer>(&number))
            }
        })*
    };
}

integers!(i8, i16, i32);

/// Also the number of a `timestamp` (milliseconds since 1970) and of a `time` (nanoseconds since midnight).
impl ToCql for i64 {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match cql_type {
            CqlType::Timestamp | CqlType::Time => {
                out.extend(self.to_be_bytes());
                Ok(Written::Value)
            }
            _ => write_integer::<i64>(*self, cql_type, out),
        }
    }
}

impl FromCql<'_> for i64 {
    fn from_cql(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Self, ValueError> {
        let value = required::<i64>(value)?;
        match cql_type {
            CqlType::Timestamp | CqlType::Time => Ok(i64::from_be_bytes(fixed(cql_type, value)?)),
            _ => read_integer::<i64>(cql_type, value),
        }
    }
}

impl ToCql for BigInt {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match cql_type {
            CqlType::Varint => {
                out.extend(varint::encode(self));
                Ok(Written::Value)
            }
            _ => write_integer::<BigInt>(i64::try_from(self).map_err(|_| range::<i64>(self))?, cql_type, out),
        }
    }
}

impl FromCql<'_> for BigInt {
    fn from_cql(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Self, ValueError> {
        let value = required::<BigInt>(value)?;
        match cql_type {
            CqlType::Varint => varint::decode(value).ok_or_else(|| damaged(cql_type)),
            _ => Ok(read_integer::<BigInt>(cql_type, value)?.into()),
        }
    }
}

/// Declares a Rust type that goes with some CQL types, in both directions.
macro_rules! simple {
    ($rust:ty, $($cql:pat_param)|+, $write:expr, $read:expr) => {
        impl ToCql for $rust {
            fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
                let write: fn(&$rust, &mut Vec<u8>) = $write;
                match cql_type {
                    $($cql)|+ => write(self, out),
                    _ => return Err(mismatch::<$rust>(cql_type)),
                }
                Ok(Written::Value)
            }
        }

        impl FromCql<'_> for $rust {
            fn from_cql(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Self, ValueError> {
                let read: fn(&CqlType, &[u8]) -> Result<$rust, ValueError> = $read;
                match cql_type {
                    $($cql)|+ => read(cql_type, required::<$rust>(value)?),
                    _ => Err(mismatch::<$rust>(cql_type)),
                }
            }
        }
    };
}

simple!(bool, CqlType::Boolean, |value, out| out.push(u8::from(*value)), |cql_type, bytes| Ok(fixed::<1>(
    cql_type, bytes
)? != [0]));
simple!(
    String,
    CqlType::Text | CqlType::Ascii,
    |value, out| out.extend_from_slice(value.as_bytes()),
    |cql_type, bytes| text(cql_type, bytes).map(str::to_owned)
);
simple!(Vec<u8>, CqlType::Blob, |value, out| out.extend_from_slice(value), |_, bytes| Ok(bytes.to_vec()));
simple!(Bytes, CqlType::Blob, |value, out| out.extend_from_slice(value), |_, bytes| Ok(
    Bytes::copy_from_slice(bytes)
));
simple!(
    Uuid,
    CqlType::Uuid | CqlType::Timeuuid,
    |value, out| out.extend_from_slice(value.as_bytes()),
    |cql_type, bytes| Ok(Uuid::from_bytes(fixed(cql_type, bytes)?))
);
simple!(IpAddr, CqlType::Inet, |value, out| out.extend(inet::encode(*value)), |cql_type, bytes| {
    inet::decode(bytes).ok_or_else(|| damaged(cql_type))
});
simple!(Ipv4Addr, CqlType::Inet, |value, out| out.extend(value.octets()), |cql_type, bytes| fixed::<4>(
    cql_type, bytes
)
.map(Ipv4Addr::from));
simple!(
    Ipv6Addr,
    CqlType::Inet,
    |value, out| out.extend(inet::encode(IpAddr::V6(*value))),
    |cql_type, bytes| fixed::<16>(cql_type, bytes).map(Ipv6Addr::from)
);

impl ToCql for BigDecimal {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match cql_type {
            CqlType::Decimal => out.extend(decimal::encode(self)?),
            _ => return Err(mismatch::<BigDecimal>(cql_type)),
        }
        Ok(Written::Value)
    }
}

impl FromCql<'_> for BigDecimal {
    fn from_cql(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Self, ValueError> {
        match cql_type {
            CqlType::Decimal => {
                decimal::decode(required::<BigDecimal>(value)?).ok_or_else(|| damaged(cql_type))
            }
            _ => Err(mismatch::<BigDecimal>(cql_type)),
        }
    }
}

impl ToCql for f32 {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match cql_type {
            CqlType::Float => out.extend(self.to_be_bytes()),
            CqlType::Double => out.extend(f64::from(*self).to_be_bytes()),
            _ => return Err(mismatch::<f32>(cql_type)),
        }
        Ok(Written::Value)
    }
}

impl FromCql<'_> for f32 {
    fn from_cql(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Self, ValueError> {
        match cql_type {
            CqlType::Float => Ok(f32::from_be_bytes(fixed(cql_type, required::<f32>(value)?)?)),
            _ => Err(mismatch::<f32>(cql_type)),
        }
    }
}

impl ToCql for f64 {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match cql_type {
            CqlType::Double => out.extend(self.to_be_bytes()),
            _ => return Err(mismatch::<f64>(cql_type)),
        }
        Ok(Written::Value)
    }
}

impl FromCql<'_> for f64 {
    fn from_cql(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Self, ValueError> {
        match cql_type {
            CqlType::Float => f32::from_cql(cql_type, value).map(f64::from),
            CqlType::Double => Ok(f64::from_be_bytes(fixed(cql_type, required::<f64>(value)?)?)),
            _ => Err(mismatch::<f64>(cql_type)),
        }
    }
}

impl ToCql for str {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match cql_type {
            CqlType::Text | CqlType::Ascii => out.extend_from_slice(self.as_bytes()),
            _ => return Err(mismatch::<str>(cql_type)),
        }
        Ok(Written::Value)
    }
}

impl ToCql for [u8] {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match cql_type {
            CqlType::Blob => out.extend_from_slice(self),
            _ => return Err(mismatch::<[u8]>(cql_type)),
        }
        Ok(Written::Value)
    }
}

impl<const N: usize> ToCql for [u8; N] {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        self.as_slice().to_cql(cql_type, out)
    }
}

impl<'a> FromCql<'a> for &'a str {
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
        match cql_type {
            CqlType::Text | CqlType::Ascii => text(cql_type, required::<&str>(value)?),
            _ => Err(mismatch::<&str>(cql_type)),
        }
    }
}

impl<'a> FromCql<'a> for Cow<'a, str> {
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
        <&str>::from_cql(cql_type, value).map(Cow::Borrowed)
    }
}

impl<'a> FromCql<'a> for &'a [u8] {
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
        match cql_type {
            CqlType::Blob => required::<&[u8]>(value),
            _ => Err(mismatch::<&[u8]>(cql_type)),
        }
    }
}

fn text<'a>(cql_type: &CqlType, bytes: &'a [u8]) -> Result<&'a str, ValueError> {
    std::str::from_utf8(bytes).map_err(|_| damaged(cql_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_into_every_type_that_holds_them() {
        let check = |value: i64, cql_type: &CqlType, bytes: &[u8]| {
            let mut out = Vec::new();
            assert_eq!(value.to_cql(cql_type, &mut out), Ok(Written::Value));
            assert_eq!(out, bytes, "{cql_type}");
            assert_eq!(i64::from_cql(cql_type, Some(&out)), Ok(value), "{cql_type}");
        };
        check(-2, &CqlType::Tinyint, &[0xfe]);
        check(-2, &CqlType::Smallint, &[0xff, 0xfe]);
        check(258, &CqlType::Int, &[0, 0, 1, 2]);
        check(258, &CqlType::Counter, &[0, 0, 0, 0, 0, 0, 1, 2]);
        check(-129, &CqlType::Varint, &[0xff, 0x7f]);
        check(1, &CqlType::Timestamp, &[0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn bytes_of_another_length_are_damage_and_nothing_is_null_to_an_option() {
        assert!(matches!(i32::from_cql(&CqlType::Int, Some(&[0; 3])), Err(ValueError::Damaged { .. })));
        assert!(matches!(i32::from_cql(&CqlType::Int, Some(&[])), Err(ValueError::Damaged { .. })));
        assert_eq!(Option::<i32>::from_cql(&CqlType::Int, Some(&[])), Ok(None));
        assert_eq!(Option::<String>::from_cql(&CqlType::Text, Some(&[])), Ok(Some(String::new())));
        assert!(<&str>::from_cql(&CqlType::Text, Some(&[0xff])).is_err());
        let list = CqlType::List { element: CqlType::Int.into(), frozen: true };
        assert!(Vec::<i32>::from_cql(&list, Some(&[0x7f, 0xff, 0xff, 0xff])).is_err());
    }
}
