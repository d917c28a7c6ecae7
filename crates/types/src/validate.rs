//! Are these bytes a value of this type? Cassandra's rules, its laxities included, and a bound for the length of
//! numbers (see [`crate::digits`]).

use crate::encoding::{Elements, Parts};
use crate::{CqlType, TypeError, UserType, digits};
use stdx::cursor::Cursor;

impl CqlType {
    /// Checks that `value` (not null) is a value of this type, in the form a client binds it: a
    /// collection whole, whether frozen or not.
    ///
    /// # Errors
    /// It is not; the message is Cassandra's.
    pub fn validate(&self, value: &[u8]) -> Result<(), TypeError> {
        match self {
            CqlType::Ascii => validate_ascii(value),
            CqlType::Text => validate_text(value),
            CqlType::Blob => Ok(()),
            CqlType::Varint => digits::check_bytes(value),
            CqlType::Boolean => length_is(value, value.len() <= 1, "Expected 1 or 0 byte value"),
            CqlType::Tinyint => length_is(value, value.len() == 1, "Expected 1 byte for a tinyint"),
            CqlType::Smallint => length_is(value, value.len() == 2, "Expected 2 bytes for a smallint"),
            CqlType::Int => empty_or(value, 4, "Expected 4 or 0 byte int"),
            CqlType::Bigint | CqlType::Counter => empty_or(value, 8, "Expected 8 or 0 byte long"),
            CqlType::Float => empty_or(value, 4, "Expected 4 or 0 byte value for a float"),
            CqlType::Double => empty_or(value, 8, "Expected 8 or 0 byte value for a double"),
            CqlType::Timestamp => empty_or(value, 8, "Expected 8 or 0 byte long for date"),
            CqlType::Date => length_is(value, value.len() == 4, "Expected 4 byte long for date"),
            CqlType::Time => length_is(value, value.len() == 8, "Expected 8 byte long for time"),
            CqlType::Uuid => empty_or(value, 16, "UUID should be 16 or 0 bytes"),
            CqlType::Timeuuid => validate_timeuuid(value),
            CqlType::Inet => match value.len() {
                0 | 4 | 16 => Ok(()),
                _ => Err(TypeError::NotInet { hex: crate::blob::format(value) }),
            },
            CqlType::Decimal => validate_decimal(value),
            CqlType::Duration => validate_duration(value),
            CqlType::Empty if value.is_empty() => Ok(()),
            CqlType::Empty => Err(TypeError::NotEmpty),
            CqlType::List { element, .. } => validate_collection(value, "list", &[element]),
            CqlType::Set { element, .. } => validate_collection(value, "set", &[element]),
            CqlType::Map { key, value: held, .. } => validate_collection(value, "map", &[key, held]),
            CqlType::Tuple(types) => validate_tuple(value, types),
            CqlType::UserDefined { definition, .. } => validate_user_defined(value, definition),
            CqlType::Vector { element, dimension } => self.validate_vector(value, element, *dimension),
        }
    }

    fn validate_vector(&self, value: &[u8], element: &CqlType, dimension: u32) -> Result<(), TypeError> {
        if value.is_empty() {
            return Err(TypeError::EmptyVector);
        }
        let mut elements = Elements::new(element, dimension, value);
        for part in elements.by_ref() {
            element.validate(part.map_err(|_| TypeError::Short { what: self.to_string() })?)?;
        }
        match elements.rest().len() {
            0 => Ok(()),
            extra_bytes => Err(TypeError::VectorTrailing { extra_bytes, vector: self.to_string() }),
        }
    }
}

fn length_is(value: &[u8], right: bool, expected: &'static str) -> Result<(), TypeError> {
    if right { Ok(()) } else { Err(TypeError::Length { expected, got_bytes: value.len() }) }
}

fn empty_or(value: &[u8], length: usize, expected: &'static str) -> Result<(), TypeError> {
    length_is(value, value.is_empty() || value.len() == length, expected)
}

/// Of `[u8]::is_ascii` two instructions for each byte are made here (Rust 1.95); of this, two for sixteen.
fn is_ascii(value: &[u8]) -> bool {
    let (words, rest) = value.as_chunks::<8>();
    let of_words = words.iter().fold(0, |bits, word| bits | u64::from_ne_bytes(*word));
    let of_rest = rest.iter().fold(0, |bits, byte| bits | byte);
    (of_words & 0x8080_8080_8080_8080) == 0 && of_rest.is_ascii()
}

fn validate_ascii(value: &[u8]) -> Result<(), TypeError> {
    match value.iter().find(|byte| !byte.is_ascii()) {
        Some(&byte) => Err(TypeError::NotAscii { byte: byte as i8 }),
        None => Ok(()),
    }
}

fn validate_text(value: &[u8]) -> Result<(), TypeError> {
    // Most texts are ASCII, which is seen in a third of the instructions that `from_utf8` takes.
    let is_text = is_ascii(value) || std::str::from_utf8(value).is_ok() || is_lax_utf8(value);
    if is_text { Ok(()) } else { Err(TypeError::NotUtf8) }
}

/// What Cassandra takes for UTF-8 beyond the standard: Java's two-byte NUL, lone surrogates, code
/// points past the last, and a second byte below 0x80 behind 0xe0.
fn is_lax_utf8(value: &[u8]) -> bool {
    let mut bytes = value.iter().copied();
    let continues = |byte: Option<u8>| byte.is_some_and(|byte| byte & 0xc0 == 0x80);
    while let Some(lead) = bytes.next() {
        let rest = match lead {
            0..=0x7f => continue,
            0xc0 if bytes.next() == Some(0x80) => continue,
            0xc2..=0xdf => 1,
            0xe0 if bytes.next().is_some_and(|byte| byte & 0xe0 != 0x80) => 1,
            0xe1..=0xef => 2,
            0xf0 if bytes.next().is_some_and(|byte| byte & 0x30 != 0) => 2,
            0xf1..=0xf7 => 3,
            _ => return false,
        };
        if !(0..rest).all(|_| continues(bytes.next())) {
            return false;
        }
    }
    true
}

fn validate_timeuuid(value: &[u8]) -> Result<(), TypeError> {
    empty_or(value, 16, "UUID should be 16 or 0 bytes")?;
    match value {
        // The digit in the message is the first of the UUID, not its version: kept as it is.
        [first, _, _, _, _, _, version, ..] if version & 0xf0 != 0x10 => {
            Err(TypeError::NotTimeUuid { version: first >> 4 })
        }
        _ => Ok(()),
    }
}

fn validate_decimal(value: &[u8]) -> Result<(), TypeError> {
    length_is(value, !(1..4).contains(&value.len()), "Expected 0 or at least 4 bytes")?;
    digits::check_bytes(value.get(4..).unwrap_or_default())
}

fn validate_duration(value: &[u8]) -> Result<(), TypeError> {
    length_is(value, value.len() >= 3, "Expected at least 3 bytes for a duration")?;
    let mut input = Cursor::new(value);
    let mut part = || input.vint_signed().map_err(|_| TypeError::Short { what: "duration".to_owned() });
    let (months, days, nanoseconds) = (part()?, part()?, part()?);
    for (part, value) in [("months", months), ("days", days)] {
        if i32::try_from(value).is_err() {
            return Err(TypeError::DurationRange { part, value });
        }
    }
    let parts = [months, days, nanoseconds];
    if parts.iter().all(|part| *part >= 0) || parts.iter().all(|part| *part <= 0) {
        Ok(())
    } else {
        Err(TypeError::DurationSigns { months, days, nanoseconds })
    }
}

fn validate_collection(value: &[u8], what: &'static str, types: &[&CqlType]) -> Result<(), TypeError> {
    let short = |_| TypeError::Short { what: what.to_owned() };
    let mut parts = Parts::new(value, types.len() as u64).map_err(short)?;
    let mut types = types.iter().cycle();
    for part in parts.by_ref() {
        let part = part.map_err(short)?.ok_or(TypeError::NullElement)?;
        if let Some(of) = types.next() {
            of.validate(part)?;
        }
    }
    if parts.rest().is_empty() { Ok(()) } else { Err(TypeError::Trailing { what }) }
}

fn validate_tuple(value: &[u8], types: &[CqlType]) -> Result<(), TypeError> {
    let mut input = Cursor::new(value);
    for (index, of) in types.iter().enumerate() {
        if input.is_empty() {
            return Ok(());
        }
        let inside_length = input.remaining() < 4;
        let field = input.cql_bytes().map_err(|_| TypeError::ShortComponent { index, inside_length })?;
        field.map_or(Ok(()), |field| of.validate(field))?;
    }
    if input.is_empty() { Ok(()) } else { Err(TypeError::TupleTrailing { what: "tuple" }) }
}

fn validate_user_defined(value: &[u8], definition: &UserType) -> Result<(), TypeError> {
    let mut input = Cursor::new(value);
    for (index, (name, of)) in definition.fields.iter().enumerate() {
        if input.is_empty() {
            return Ok(());
        }
        let inside_length = input.remaining() < 4;
        let field = input.cql_bytes().map_err(|_| TypeError::ShortField {
            index,
            field: name.clone(),
            inside_length,
        })?;
        field.map_or(Ok(()), |field| of.validate(field)).map_err(|source| TypeError::Field {
            index,
            field: name.clone(),
            source: Box::new(source),
        })?;
    }
    if input.is_empty() { Ok(()) } else { Err(TypeError::TupleTrailing { what: "UDT" }) }
}
