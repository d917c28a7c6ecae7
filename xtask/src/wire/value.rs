//! A value's bytes as the CQL literal that a reader knows.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use num_bigint::{BigInt, Sign};

use super::WireError;
use super::answer::Body;

/// A type as the wire describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    Native(u16),
    Custom(String),
    List(Box<Type>),
    Set(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Tuple(Vec<Type>),
    User(String, Vec<(String, Type)>),
}

const NATIVE_NAMES: [(u16, &str); 20] = [
    (0x01, "ascii"),
    (0x02, "bigint"),
    (0x03, "blob"),
    (0x04, "boolean"),
    (0x05, "counter"),
    (0x06, "decimal"),
    (0x07, "double"),
    (0x08, "float"),
    (0x09, "int"),
    (0x0b, "timestamp"),
    (0x0c, "uuid"),
    (0x0d, "text"),
    (0x0e, "varint"),
    (0x0f, "timeuuid"),
    (0x10, "inet"),
    (0x11, "date"),
    (0x12, "time"),
    (0x13, "smallint"),
    (0x14, "tinyint"),
    (0x15, "duration"),
];

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Native(code) => match NATIVE_NAMES.iter().find(|(known, _)| known == code) {
                Some((_, name)) => out.write_str(name),
                None => write!(out, "type {code:#x}"),
            },
            Type::Custom(class) => write!(out, "'{class}'"),
            Type::List(element) => write!(out, "list<{element}>"),
            Type::Set(element) => write!(out, "set<{element}>"),
            Type::Map(key, value) => write!(out, "map<{key}, {value}>"),
            Type::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(Type::to_string).collect();
                write!(out, "tuple<{}>", parts.join(", "))
            }
            Type::User(name, fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
                write!(out, "{name}{{{}}}", fields.join(", "))
            }
        }
    }
}

/// Prints a value as a literal; bytes that do not fit the type are printed as such.
pub(crate) fn literal(kind: &Type, value: Option<&[u8]>) -> String {
    let Some(bytes) = value else { return "null".to_owned() };
    if bytes.is_empty() && !is_text_or_blob(kind) {
        return "empty".to_owned();
    }
    match print(kind, bytes) {
        Ok(Some(text)) => text,
        Ok(None) | Err(_) => format!("bad {kind} {}", blob(bytes)),
    }
}

fn is_text_or_blob(kind: &Type) -> bool {
    matches!(kind, Type::Native(0x01 | 0x03 | 0x0d) | Type::Custom(_))
}

fn print(kind: &Type, bytes: &[u8]) -> Result<Option<String>, WireError> {
    Ok(match kind {
        Type::Native(code) => native(*code, bytes),
        Type::Custom(_) => Some(blob(bytes)),
        Type::List(element) => Some(format!("[{}]", elements(element, bytes)?.join(", "))),
        Type::Set(element) => Some(format!("{{{}}}", elements(element, bytes)?.join(", "))),
        Type::Map(key, value) => {
            let mut body = Body::new(bytes);
            let count = body.int()?;
            let mut pairs = Vec::new();
            for _ in 0..count {
                let (k, v) = (body.value()?, body.value()?);
                pairs.push(format!("{}: {}", literal(key, k.as_deref()), literal(value, v.as_deref())));
            }
            Some(format!("{{{}}}", pairs.join(", ")))
        }
        Type::Tuple(parts) => Some(format!("({})", fields(parts.iter(), bytes)?.join(", "))),
        Type::User(_, named) => {
            let values = fields(named.iter().map(|(_, kind)| kind), bytes)?;
            let pairs: Vec<String> =
                named.iter().zip(values).map(|((name, _), v)| format!("{name}: {v}")).collect();
            Some(format!("{{{}}}", pairs.join(", ")))
        }
    })
}

fn elements(element: &Type, bytes: &[u8]) -> Result<Vec<String>, WireError> {
    let mut body = Body::new(bytes);
    let count = body.int()?;
    (0..count).map(|_| Ok(literal(element, body.value()?.as_deref()))).collect()
}

fn fields<'a>(kinds: impl Iterator<Item = &'a Type>, bytes: &[u8]) -> Result<Vec<String>, WireError> {
    let mut body = Body::new(bytes);
    kinds.map(|kind| Ok(literal(kind, body.value()?.as_deref()))).collect()
}

fn native(code: u16, bytes: &[u8]) -> Option<String> {
    Some(match code {
        0x01 | 0x0d => format!("'{}'", std::str::from_utf8(bytes).ok()?.replace('\'', "''")),
        0x02 | 0x05 => i64::from_be_bytes(bytes.try_into().ok()?).to_string(),
        0x03 => blob(bytes),
        0x04 => (*bytes.first()? != 0).to_string(),
        0x06 => decimal(bytes)?,
        0x07 => number(
            f64::from_be_bytes(bytes.try_into().ok()?),
            format!("{:?}", f64::from_be_bytes(bytes.try_into().ok()?)),
        ),
        0x08 => {
            let value = f32::from_be_bytes(bytes.try_into().ok()?);
            number(f64::from(value), format!("{value:?}"))
        }
        0x09 => i32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        0x0b => timestamp(i64::from_be_bytes(bytes.try_into().ok()?)),
        0x0c | 0x0f => uuid(bytes)?,
        0x0e => BigInt::from_signed_bytes_be(bytes).to_string(),
        0x10 => match bytes.len() {
            4 => format!("'{}'", Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
            _ => format!("'{}'", Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        },
        0x11 => format!("'{}'", date(i64::from(u32::from_be_bytes(bytes.try_into().ok()?)) - (1 << 31))),
        0x12 => {
            let nanos = i64::from_be_bytes(bytes.try_into().ok()?);
            let seconds = nanos / 1_000_000_000;
            let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            format!("'{hour:02}:{minute:02}:{second:02}.{:09}'", nanos % 1_000_000_000)
        }
        0x13 => i16::from_be_bytes(bytes.try_into().ok()?).to_string(),
        0x14 => i8::from_be_bytes(bytes.try_into().ok()?).to_string(),
        0x15 => duration(bytes)?,
        _ => return None,
    })
}

fn number(value: f64, shortest: String) -> String {
    match value {
        v if v.is_nan() => "NaN".to_owned(),
        v if v.is_infinite() && v > 0.0 => "Infinity".to_owned(),
        v if v.is_infinite() => "-Infinity".to_owned(),
        _ => shortest,
    }
}

pub(crate) fn blob(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    let hex = blob(&bytes);
    let hex = &hex[2..];
    Some(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// Digits and scale apart, so that `1.0` and `1.00` stay different: `-123e-2`.
fn decimal(bytes: &[u8]) -> Option<String> {
    let scale = i32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
    let unscaled = BigInt::from_signed_bytes_be(&bytes[4..]);
    let digits = unscaled.magnitude().to_string();
    let sign = if unscaled.sign() == Sign::Minus { "-" } else { "" };
    let places = match usize::try_from(scale) {
        Ok(0) => return Some(format!("{sign}{digits}")),
        Ok(places) if places <= 60 => places,
        _ => return Some(format!("{sign}{digits}e{}", -i64::from(scale))),
    };
    let digits = format!("{digits:0>width$}", width = places + 1);
    let point = digits.len() - places;
    Some(format!("{sign}{}.{}", &digits[..point], &digits[point..]))
}

fn timestamp(millis: i64) -> String {
    let (days, of_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    if days.abs() > 3_000_000 {
        return millis.to_string();
    }
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    format!("'{}T{hour:02}:{minute:02}:{second:02}.{:03}Z'", date(days), of_day % 1000)
}

/// Days since 1970-01-01 in the Gregorian calendar, by eras of 400 years.
fn date(days: i64) -> String {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn duration(bytes: &[u8]) -> Option<String> {
    let mut offset = 0;
    let months = signed_vint(bytes, &mut offset)?;
    let days = signed_vint(bytes, &mut offset)?;
    let nanos = signed_vint(bytes, &mut offset)?;
    Some(format!("{months}mo{days}d{nanos}ns"))
}

fn signed_vint(bytes: &[u8], offset: &mut usize) -> Option<i64> {
    let first = *bytes.get(*offset)?;
    let extra = first.leading_ones() as usize;
    let mut value = if extra >= 8 { 0 } else { u64::from(first) & (0xffu64 >> extra) };
    for byte in bytes.get(*offset + 1..*offset + 1 + extra)? {
        value = value << 8 | u64::from(*byte);
    }
    *offset += 1 + extra;
    Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_before_and_after_the_epoch_print_in_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(-1), "1969-12-31");
        assert_eq!(date(19_782), "2024-02-29");
    }

    #[test]
    fn decimal_keeps_its_scale() {
        assert_eq!(decimal(&[0, 0, 0, 2, 100]), Some("1.00".to_owned()));
        assert_eq!(decimal(&[0, 0, 0, 1, 10]), Some("1.0".to_owned()));
        assert_eq!(decimal(&[0, 0, 0, 1, 0xfb]), Some("-0.5".to_owned()));
    }

    #[test]
    fn duration_reads_three_vints() {
        assert_eq!(duration(&[2, 4, 6]), Some("1mo2d3ns".to_owned()));
    }
}
