//! Values to text and back, for every type: what error messages, tracing, `cast(… as text)`,
//! partition key listings and string constants use.

use crate::encoding::Fields;
use crate::{CqlType, TypeError, blob, date, decimal, duration, float, inet, time, timestamp, uuid, varint};

impl CqlType {
    /// The value as Cassandra's tools print it, without quotes: collections and vectors as
    /// hexadecimal digits, tuples and user-defined types as fields with colons between. A value
    /// that is not of this type gives some text too.
    pub fn to_text(&self, value: &[u8]) -> String {
        match self {
            CqlType::Ascii | CqlType::Text => String::from_utf8_lossy(value).into_owned(),
            CqlType::Boolean => match value.first() {
                Some(byte) => (*byte != 0).to_string(),
                None => String::new(),
            },
            CqlType::Tinyint
            | CqlType::Smallint
            | CqlType::Int
            | CqlType::Bigint
            | CqlType::Counter
            | CqlType::Varint => varint::format(value),
            CqlType::Float => float::format_float(value),
            CqlType::Double => float::format_double(value),
            CqlType::Decimal => decimal::format(value),
            CqlType::Date => date::format(value),
            CqlType::Time => time::format(value),
            CqlType::Timestamp => timestamp::format(value),
            CqlType::Duration => duration::format(value),
            CqlType::Inet => inet::format(value),
            CqlType::Uuid | CqlType::Timeuuid => uuid::format(value),
            CqlType::Empty => String::new(),
            CqlType::Tuple(types) => fields_to_text(types.iter(), value),
            CqlType::UserDefined { definition, .. } => {
                fields_to_text(definition.fields.iter().map(|(_, of)| of), value)
            }
            CqlType::Blob
            | CqlType::List { .. }
            | CqlType::Set { .. }
            | CqlType::Map { .. }
            | CqlType::Vector { .. } => blob::format(value),
        }
    }

    /// Reads the text of a string constant of this type, or what [`to_text`](Self::to_text) gave
    /// for it. `now` is what the timestamp `now` means, in milliseconds from 1970. Empty text is
    /// the empty value of the types that have one.
    ///
    /// # Errors
    /// The text is no value of this type; the message is Cassandra's.
    pub fn from_text(&self, text: &str, now: i64) -> Result<Vec<u8>, TypeError> {
        let has_empty = !matches!(
            self,
            CqlType::Boolean
                | CqlType::Date
                | CqlType::Time
                | CqlType::Tuple(_)
                | CqlType::UserDefined { .. }
        );
        if text.is_empty() && has_empty {
            return Ok(Vec::new());
        }
        match self {
            CqlType::Text => Ok(text.as_bytes().to_vec()),
            CqlType::Ascii => ascii_from_text(text),
            CqlType::Boolean => boolean_from_text(text),
            CqlType::Tinyint => integer(text, "byte", i8::to_be_bytes),
            CqlType::Smallint => integer(text, "short", i16::to_be_bytes),
            CqlType::Int => integer(text, "int", i32::to_be_bytes),
            CqlType::Bigint => integer(text, "long", i64::to_be_bytes),
            CqlType::Varint => varint::parse(text),
            CqlType::Float => float::parse_float(text).map(Vec::from),
            CqlType::Double => float::parse_double(text).map(Vec::from),
            CqlType::Decimal => decimal::parse(text),
            CqlType::Date => date::parse(text).map(Vec::from),
            CqlType::Time => time::parse(text).map(Vec::from),
            CqlType::Timestamp => timestamp::parse(text, now).map(|millis| millis.to_be_bytes().to_vec()),
            CqlType::Duration => duration::Duration::parse(text).map(duration::Duration::encode),
            CqlType::Inet => inet::parse(text),
            CqlType::Uuid => uuid::parse(text).map(Vec::from),
            CqlType::Timeuuid => uuid::parse_timeuuid(text).map(Vec::from),
            CqlType::Empty => Err(TypeError::text(stdx::brief!("'{text}' is not empty"))),
            CqlType::Counter
            | CqlType::Blob
            | CqlType::List { .. }
            | CqlType::Set { .. }
            | CqlType::Map { .. }
            | CqlType::Vector { .. } => blob::parse(text),
            CqlType::Tuple(types) => fields_from_text(self, &types.iter().collect::<Vec<_>>(), text, now),
            CqlType::UserDefined { definition, .. } => {
                let types: Vec<&CqlType> = definition.fields.iter().map(|(_, of)| of).collect();
                fields_from_text(self, &types, text, now)
            }
        }
    }
}

fn integer<T: std::str::FromStr, const N: usize>(
    text: &str,
    name: &str,
    encode: fn(T) -> [u8; N],
) -> Result<Vec<u8>, TypeError> {
    match text.parse::<T>() {
        Ok(number) => Ok(encode(number).to_vec()),
        Err(_) => Err(TypeError::text(stdx::brief!("Unable to make {name} from '{text}'"))),
    }
}

fn boolean_from_text(text: &str) -> Result<Vec<u8>, TypeError> {
    if text.is_empty() || text.eq_ignore_ascii_case("false") {
        Ok(vec![0])
    } else if text.eq_ignore_ascii_case("true") {
        Ok(vec![1])
    } else {
        Err(TypeError::text(stdx::brief!("Unable to make boolean from '{text}'")))
    }
}

fn ascii_from_text(text: &str) -> Result<Vec<u8>, TypeError> {
    match text.chars().find(|c| !c.is_ascii()) {
        None => Ok(text.as_bytes().to_vec()),
        Some(c) => Err(TypeError::text(stdx::brief!(
            "Invalid ASCII character in string literal: \
             java.nio.charset.UnmappableCharacterException: Input length = {}",
            c.len_utf16()
        ))),
    }
}

/// Colons between fields, `@` for null; both escaped inside.
fn fields_to_text<'a>(types: impl Iterator<Item = &'a CqlType>, value: &[u8]) -> String {
    let fields = Fields::new(value).map_while(Result::ok).zip(types).map(|(field, of)| match field {
        Some(field) => of.to_text(field).replace(':', "\\:").replace('@', "\\@"),
        None => "@".to_owned(),
    });
    fields.collect::<Vec<_>>().join(":")
}

fn fields_from_text(tuple: &CqlType, types: &[&CqlType], text: &str, now: i64) -> Result<Vec<u8>, TypeError> {
    let parts = split_at_colons(text);
    if parts.len() > types.len() {
        let (expected, got) = (types.len(), parts.len());
        return Err(TypeError::text(stdx::brief!(
            "Invalid tuple literal: too many elements. Type {tuple} expects {expected} but got {got}"
        )));
    }
    let mut out = Vec::new();
    for (part, of) in parts.iter().zip(types) {
        if *part == "@" {
            crate::encoding::write_bytes(None, &mut out);
        } else {
            let plain = part.replace("\\:", ":").replace("\\@", "@");
            crate::encoding::write_bytes(Some(&of.from_text(&plain, now)?), &mut out);
        }
    }
    Ok(out)
}

/// At colons without a backslash before them.
fn split_at_colons(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let mut start = 0;
    let mut before = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte == b':' && before != b'\\' {
            parts.push(&text[start..at]);
            start = at + 1;
        }
        before = byte;
    }
    parts.push(&text[start..]);
    parts
}
