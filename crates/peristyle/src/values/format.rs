//! A cell as text, in the words of Python's cqlsh.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use stdx::cursor::Cursor;
use types::{CqlType, encoding};
use uuid::Uuid;

use super::{calendar, float};

/// Where the text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A screen: floats are rounded, control characters are shown, timestamps have microseconds.
    Screen,
    /// A CSV file: every value reads back as the same; text is as it is.
    Csv,
}

/// A value that does not fit its type is shown as the bytes it is.
pub(crate) fn format(cql_type: &CqlType, value: &[u8], style: Style) -> String {
    top_level(cql_type, value, style).unwrap_or_else(|| blob(value))
}

/// A cell: text bare.
fn top_level(cql_type: &CqlType, value: &[u8], style: Style) -> Option<String> {
    match cql_type {
        CqlType::Text | CqlType::Ascii => {
            let text = std::str::from_utf8(value).ok()?;
            Some(if style == Style::Screen { shown(&text.replace('\\', "\\\\")) } else { text.to_owned() })
        }
        CqlType::Inet => inet(value),
        CqlType::Timestamp => timestamp(value, style),
        _ => inner(cql_type, value, style),
    }
}

/// A cell or an element: text, addresses and timestamps stand in quotes.
fn inner(cql_type: &CqlType, value: &[u8], style: Style) -> Option<String> {
    match cql_type {
        CqlType::Blob => Some(blob(value)),
        CqlType::Text | CqlType::Ascii => {
            let text = std::str::from_utf8(value).ok()?.replace('\'', "''");
            let text = if style == Style::Screen { shown(&text.replace('\\', "\\\\")) } else { text };
            Some(format!("'{text}'"))
        }
        CqlType::Inet => inet(value).map(|text| format!("'{text}'")),
        CqlType::Timestamp => timestamp(value, style).map(|text| format!("'{text}'")),
        CqlType::List { element, .. } => sequence(('[', ']'), element, value, style),
        CqlType::Set { element, .. } => sequence(('{', '}'), element, value, style),
        CqlType::Map { key, value: element, .. } => map(key, element, value, style),
        CqlType::Tuple(elements) => tuple(elements, value, style),
        CqlType::UserDefined { definition, .. } => user_type(&definition.fields, value, style),
        CqlType::Vector { element, dimension } => {
            let elements = encoding::Elements::new(element, *dimension, value);
            let texts: Option<Vec<String>> = elements.map(|part| inner(element, part.ok()?, style)).collect();
            Some(format!("[{}]", texts?.join(", ")))
        }
        _ => scalar(cql_type, value, style),
    }
}

/// Types that look the same inside and outside of a collection.
fn scalar(cql_type: &CqlType, value: &[u8], style: Style) -> Option<String> {
    Some(match cql_type {
        CqlType::Bigint | CqlType::Counter => i64::from_be_bytes(value.try_into().ok()?).to_string(),
        CqlType::Int => i32::from_be_bytes(value.try_into().ok()?).to_string(),
        CqlType::Smallint => i16::from_be_bytes(value.try_into().ok()?).to_string(),
        CqlType::Tinyint => i8::from_be_bytes(value.try_into().ok()?).to_string(),
        CqlType::Boolean => match value {
            [0] => "False".to_owned(),
            [_] => "True".to_owned(),
            _ => return None,
        },
        CqlType::Float => {
            let number = f64::from(f32::from_be_bytes(value.try_into().ok()?));
            if style == Style::Screen {
                float::display(number, float::FLOAT_PRECISION)
            } else {
                float::exact(number, true)
            }
        }
        CqlType::Double => {
            let number = f64::from_be_bytes(value.try_into().ok()?);
            if style == Style::Screen {
                float::display(number, float::DOUBLE_PRECISION)
            } else {
                float::exact(number, false)
            }
        }
        CqlType::Varint => types::varint::format(value),
        CqlType::Decimal => types::decimal::format(value),
        CqlType::Uuid | CqlType::Timeuuid => Uuid::from_slice(value).ok()?.to_string(),
        CqlType::Date => date(value)?,
        CqlType::Time => time(value)?,
        CqlType::Duration => duration(value)?,
        CqlType::Empty => String::new(),
        _ => return None,
    })
}

pub(super) fn blob(value: &[u8]) -> String {
    format!("0x{}", types::blob::format(value))
}

/// Control characters as Python's `repr` spells them.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' | '\x7f'..='\u{a0}' => {
                let _ = write!(out, "\\x{:02x}", u32::from(character));
            }
            character => out.push(character),
        }
    }
    out
}

fn inet(value: &[u8]) -> Option<String> {
    match value.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).to_string()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).to_string()),
        _ => None,
    }
}

/// Of a year that Python's calendar lacks, the milliseconds.
fn timestamp(value: &[u8], style: Style) -> Option<String> {
    let millis = i64::from_be_bytes(value.try_into().ok()?);
    let (days, of_day) = calendar::split_millis(millis);
    let Some(date) = calendar::date(days) else { return Some(millis.to_string()) };
    let clock = calendar::clock(of_day);
    let millis = of_day % 1000;
    Some(match style {
        Style::Screen => format!("{date} {clock}.{millis:03}000+0000"),
        Style::Csv => format!("{date} {clock}.{millis:03}+0000"),
    })
}

/// Of a year that Python's calendar lacks, the days since 1970.
fn date(value: &[u8]) -> Option<String> {
    let days = i64::from(u32::from_be_bytes(value.try_into().ok()?)) - (1 << 31);
    Some(calendar::date(days).unwrap_or_else(|| days.to_string()))
}

pub(super) fn time(value: &[u8]) -> Option<String> {
    let nanos = i64::from_be_bytes(value.try_into().ok()?);
    let seconds = nanos / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    Some(format!("{hours:02}:{minutes:02}:{:02}.{:09}", seconds % 60, nanos % 1_000_000_000))
}

pub(super) fn duration(value: &[u8]) -> Option<String> {
    let mut input = Cursor::new(value);
    let parts = [input.vint_signed().ok()?, input.vint_signed().ok()?, input.vint_signed().ok()?];
    let mut out = String::new();
    if parts.iter().any(|part| *part < 0) {
        out.push('-');
    }
    let units: [&[(u64, &str)]; 3] = [
        &[(12, "y"), (1, "mo")],
        &[(1, "d")],
        &[
            (3_600_000_000_000, "h"),
            (60_000_000_000, "m"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1000, "us"),
            (1, "ns"),
        ],
    ];
    for (part, units) in parts.into_iter().zip(units) {
        let mut rest = part.unsigned_abs();
        for (size, unit) in units.iter().filter(|_| part != 0) {
            if rest >= *size {
                let _ = write!(out, "{}{unit}", rest / size);
                rest %= size;
            }
        }
    }
    Some(out)
}

fn sequence(brackets: (char, char), element: &CqlType, value: &[u8], style: Style) -> Option<String> {
    let parts = encoding::Parts::new(value, 1).ok()?;
    let texts: Option<Vec<String>> = parts.map(|part| nullable(element, part.ok()?, style)).collect();
    Some(format!("{}{}{}", brackets.0, texts?.join(", "), brackets.1))
}

fn map(key: &CqlType, element: &CqlType, value: &[u8], style: Style) -> Option<String> {
    let mut parts = encoding::Parts::new(value, 2).ok()?;
    let mut texts = Vec::new();
    while let Some(part) = parts.next() {
        let key = nullable(key, part.ok()?, style)?;
        let value = nullable(element, parts.next()?.ok()?, style)?;
        texts.push(format!("{key}: {value}"));
    }
    Some(format!("{{{}}}", texts.join(", ")))
}

/// Fields that the value does not have are null.
fn tuple(elements: &[CqlType], value: &[u8], style: Style) -> Option<String> {
    let mut fields = encoding::Fields::new(value);
    let mut texts = Vec::new();
    for element in elements {
        let field = fields.next().transpose().ok()?.flatten();
        texts.push(nullable(element, field, style)?);
    }
    Some(format!("({})", texts.join(", ")))
}

fn user_type(definition: &[(String, CqlType)], value: &[u8], style: Style) -> Option<String> {
    let mut fields = encoding::Fields::new(value);
    let mut texts = Vec::new();
    for (name, element) in definition {
        let field = fields.next().transpose().ok()?.flatten();
        texts.push(format!("{name}: {}", nullable(element, field, style)?));
    }
    Some(format!("{{{}}}", texts.join(", ")))
}

fn nullable(element: &CqlType, value: Option<&[u8]>, style: Style) -> Option<String> {
    match value {
        None => Some("null".to_owned()),
        Some(value) => inner(element, value, style),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[track_caller]
    fn check(cql_type: &CqlType, value: &[u8], screen: &str, csv: &str) {
        assert_eq!(format(cql_type, value, Style::Screen), screen);
        assert_eq!(format(cql_type, value, Style::Csv), csv);
    }

    #[test]
    fn scalars_look_as_in_cqlsh() {
        check(&CqlType::Int, &(-5i32).to_be_bytes(), "-5", "-5");
        check(&CqlType::Boolean, &[1], "True", "True");
        check(&CqlType::Text, b"a'b\\c\n", "a'b\\\\c\\n", "a'b\\c\n");
        check(&CqlType::Blob, &[0xca, 0xfe], "0xcafe", "0xcafe");
        check(&CqlType::Inet, &[127, 0, 0, 1], "127.0.0.1", "127.0.0.1");
        check(&CqlType::Date, &0x8000_3d5au32.to_be_bytes(), "2013-01-01", "2013-01-01");
        check(
            &CqlType::Time,
            &19_020_000_000_001i64.to_be_bytes(),
            "05:17:00.000000001",
            "05:17:00.000000001",
        );
        let moment = 1_357_034_400_123i64.to_be_bytes();
        check(
            &CqlType::Timestamp,
            &moment,
            "2013-01-01 10:00:00.123000+0000",
            "2013-01-01 10:00:00.123+0000",
        );
        check(&CqlType::Double, &10.357_019_999_999_999f64.to_be_bytes(), "10.35702", "10.357019999999999");
        check(&CqlType::Duration, &[2, 4, 6], "1mo2d3ns", "1mo2d3ns");
    }

    #[test]
    fn elements_stand_in_quotes() {
        let set = CqlType::Set { element: Arc::new(CqlType::Text), frozen: false };
        let value = encoding::collection(2, [Some(b"a".as_slice()), Some(b"it's".as_slice())]);
        check(&set, &value, "{'a', 'it''s'}", "{'a', 'it''s'}");
        let map =
            CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(CqlType::Boolean), frozen: true };
        let value = encoding::collection(1, [Some([0, 0, 0, 1].as_slice()), Some([0].as_slice())]);
        check(&map, &value, "{1: False}", "{1: False}");
    }

    #[test]
    fn bytes_that_do_not_fit_the_type_are_shown_as_they_are() {
        check(&CqlType::Int, &[1, 2], "0x0102", "0x0102");
    }
}
