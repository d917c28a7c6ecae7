//! Text to a cell: what `COPY FROM` and the demo's CSV files hold, in the forms `COPY TO` writes.

use types::{CqlType, TypeError, encoding};

/// A text that is no value of its column's type.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ParseError {
    /// A simple value is malformed.
    #[error("{0}")]
    Type(#[from] TypeError),
    /// A number is none, or out of range.
    #[error("'{text}' is no {expected}")]
    Scalar { text: String, expected: &'static str },
    /// Brackets or quotes do not match.
    #[error("'{text}' is no {expected}: brackets or quotes do not match")]
    Brackets { text: String, expected: &'static str },
    /// A field that the type does not have.
    #[error("the type has no field '{name}'")]
    Field { name: String },
    /// A type that cannot be read from text.
    #[error("values of this type cannot be copied yet")]
    Unsupported,
}

/// How texts are written.
#[derive(Clone, Debug)]
pub(crate) struct ParseOptions {
    /// The words for true and false.
    pub(crate) booleans: (String, String),
}

impl Default for ParseOptions {
    fn default() -> ParseOptions {
        ParseOptions { booleans: ("True".into(), "False".into()) }
    }
}

/// Reads a cell.
///
/// # Errors
/// The text is no value of the type.
pub(crate) fn parse(cql_type: &CqlType, text: &str, options: &ParseOptions) -> Result<Vec<u8>, ParseError> {
    let trimmed = text.trim();
    Ok(match cql_type {
        CqlType::Text => text.as_bytes().to_vec(),
        CqlType::Ascii if text.is_ascii() => text.as_bytes().to_vec(),
        CqlType::Ascii => return Err(scalar(text, "ascii text")),
        CqlType::Bigint | CqlType::Counter => number::<i64>(trimmed, "bigint")?.to_be_bytes().to_vec(),
        CqlType::Int => number::<i32>(trimmed, "int")?.to_be_bytes().to_vec(),
        CqlType::Smallint => number::<i16>(trimmed, "smallint")?.to_be_bytes().to_vec(),
        CqlType::Tinyint => number::<i8>(trimmed, "tinyint")?.to_be_bytes().to_vec(),
        CqlType::Float => number::<f32>(trimmed, "float")?.to_be_bytes().to_vec(),
        CqlType::Double => number::<f64>(trimmed, "double")?.to_be_bytes().to_vec(),
        CqlType::Boolean => vec![u8::from(boolean(trimmed, options)?)],
        CqlType::Blob => types::blob::parse(trimmed.strip_prefix("0x").unwrap_or(trimmed))?,
        CqlType::Varint => types::varint::parse(trimmed)?,
        CqlType::Decimal => types::decimal::parse(trimmed)?,
        CqlType::Date => types::date::parse(trimmed)?.to_vec(),
        CqlType::Time => types::time::parse(trimmed)?.to_vec(),
        CqlType::Timestamp => types::timestamp::parse(trimmed, 0)?.to_be_bytes().to_vec(),
        CqlType::Duration => types::duration::Duration::parse(trimmed)?.encode(),
        CqlType::Inet => types::inet::parse(trimmed)?,
        CqlType::Uuid => types::uuid::parse(trimmed)?.to_vec(),
        CqlType::Timeuuid => types::uuid::parse_timeuuid(trimmed)?.to_vec(),
        CqlType::List { element, .. } => sequence(element, trimmed, ('[', ']'), options)?,
        CqlType::Set { element, .. } => sequence(element, trimmed, ('{', '}'), options)?,
        CqlType::Map { key, value, .. } => map(key, value, trimmed, options)?,
        CqlType::Tuple(elements) => tuple(elements, trimmed, options)?,
        CqlType::UserDefined { definition, .. } => user_type(&definition.fields, trimmed, options)?,
        CqlType::Vector { element, .. } => {
            let elements = parts(element, trimmed, ('[', ']'), options)?;
            encoding::vector(element, elements.iter().map(Vec::as_slice))
        }
        CqlType::Empty => return Err(ParseError::Unsupported),
    })
}

fn number<T: std::str::FromStr>(text: &str, expected: &'static str) -> Result<T, ParseError> {
    text.parse().map_err(|_| scalar(text, expected))
}

fn scalar(text: &str, expected: &'static str) -> ParseError {
    ParseError::Scalar { text: text.to_owned(), expected }
}

fn boolean(text: &str, options: &ParseOptions) -> Result<bool, ParseError> {
    let (yes, no) = &options.booleans;
    match text {
        text if text.eq_ignore_ascii_case(yes) => Ok(true),
        text if text.eq_ignore_ascii_case(no) => Ok(false),
        _ => Err(scalar(text, "boolean")),
    }
}

/// The elements between brackets, each as a cell.
fn parts(
    element: &CqlType,
    text: &str,
    brackets: (char, char),
    options: &ParseOptions,
) -> Result<Vec<Vec<u8>>, ParseError> {
    let texts = split(inside(text, brackets)?, ',')?;
    texts.into_iter().map(|text| parse(element, &unquoted(text), options)).collect()
}

fn sequence(
    element: &CqlType,
    text: &str,
    brackets: (char, char),
    options: &ParseOptions,
) -> Result<Vec<u8>, ParseError> {
    let elements = parts(element, text, brackets, options)?;
    Ok(encoding::collection(elements.len(), elements.iter().map(|element| Some(element.as_slice()))))
}

fn map(key: &CqlType, value: &CqlType, text: &str, options: &ParseOptions) -> Result<Vec<u8>, ParseError> {
    let mut cells = Vec::new();
    for entry in split(inside(text, ('{', '}'))?, ',')? {
        let (name, element) = colon(entry)?;
        cells.push(parse(key, &unquoted(name), options)?);
        cells.push(parse(value, &unquoted(element), options)?);
    }
    Ok(encoding::collection(cells.len() / 2, cells.iter().map(|cell| Some(cell.as_slice()))))
}

fn tuple(elements: &[CqlType], text: &str, options: &ParseOptions) -> Result<Vec<u8>, ParseError> {
    let texts = split(inside(text, ('(', ')'))?, ',')?;
    if texts.len() > elements.len() {
        return Err(scalar(text, "tuple of this type"));
    }
    let fields: Result<Vec<Option<Vec<u8>>>, ParseError> =
        elements.iter().zip(texts).map(|(element, text)| field(element, text, options)).collect();
    let fields = fields?;
    Ok(encoding::tuple(fields.iter().map(|field| field.as_deref())))
}

fn user_type(
    definition: &[(String, CqlType)],
    text: &str,
    options: &ParseOptions,
) -> Result<Vec<u8>, ParseError> {
    let mut fields = vec![None; definition.len()];
    for entry in split(inside(text, ('{', '}'))?, ',')? {
        let (name, value) = colon(entry)?;
        let name = name.trim().trim_matches('"');
        let Some(index) = definition.iter().position(|(field, _)| field == name) else {
            return Err(ParseError::Field { name: name.to_owned() });
        };
        fields[index] = field(&definition[index].1, value, options)?;
    }
    Ok(encoding::tuple(fields.iter().map(|field| field.as_deref())))
}

/// A field of a tuple or user type, which may be null.
fn field(cql_type: &CqlType, text: &str, options: &ParseOptions) -> Result<Option<Vec<u8>>, ParseError> {
    match text.trim() {
        "null" => Ok(None),
        text => parse(cql_type, &unquoted(text), options).map(Some),
    }
}

fn inside(text: &str, brackets: (char, char)) -> Result<&str, ParseError> {
    let inner = text.strip_prefix(brackets.0).and_then(|rest| rest.strip_suffix(brackets.1));
    inner.ok_or_else(|| ParseError::Brackets { text: text.to_owned(), expected: "collection" })
}

fn colon(entry: &str) -> Result<(&str, &str), ParseError> {
    let malformed = || ParseError::Brackets { text: entry.to_owned(), expected: "entry of a map" };
    let first = split(entry, ':')?.first().map(|key| key.len()).ok_or_else(malformed)?;
    let rest = entry.get(first + 1..).ok_or_else(malformed)?;
    Ok((&entry[..first], rest))
}

/// Cuts at a separator that stands in no quotes and in no inner brackets.
fn split(text: &str, separator: char) -> Result<Vec<&str>, ParseError> {
    let mut pieces = Vec::new();
    let (mut depth, mut quoted, mut start) = (0i32, None, 0);
    for (index, character) in text.char_indices() {
        match (quoted, character) {
            // A doubled quote closes and opens again, which comes to the same.
            (Some(quote), character) if quote == character => quoted = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quoted = Some(character),
            (None, '[' | '{' | '(') => depth += 1,
            (None, ']' | '}' | ')') => depth -= 1,
            (None, character) if character == separator && depth == 0 => {
                pieces.push(&text[start..index]);
                start = index + character.len_utf8();
            }
            (None, _) => {}
        }
    }
    if depth != 0 || quoted.is_some() {
        return Err(ParseError::Brackets { text: text.to_owned(), expected: "collection" });
    }
    if !text[start..].trim().is_empty() || !pieces.is_empty() {
        pieces.push(&text[start..]);
    }
    Ok(pieces)
}

/// An element without the quotes around it.
fn unquoted(text: &str) -> String {
    let text = text.trim();
    match text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(inner) => inner.replace("''", "'"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::values::{Style, format};

    #[track_caller]
    fn check_round_trip(cql_type: &CqlType, text: &str) {
        let value = parse(cql_type, text, &ParseOptions::default()).unwrap();
        assert_eq!(format(cql_type, &value, Style::Csv), text);
    }

    fn list(element: CqlType) -> CqlType {
        CqlType::List { element: Arc::new(element), frozen: false }
    }

    fn map_of(key: CqlType, value: CqlType) -> CqlType {
        CqlType::Map { key: Arc::new(key), value: Arc::new(value), frozen: false }
    }

    #[test]
    fn what_is_written_is_read() {
        check_round_trip(&CqlType::Int, "-17");
        check_round_trip(&CqlType::Boolean, "True");
        check_round_trip(&CqlType::Timestamp, "2013-01-01 10:00:00.123+0000");
        check_round_trip(&CqlType::Date, "2013-01-01");
        check_round_trip(&CqlType::Time, "05:17:00.000000001");
        check_round_trip(&CqlType::Duration, "1y2mo3d4h5m6s7ms8us9ns");
        check_round_trip(&CqlType::Decimal, "12.340");
        check_round_trip(&CqlType::Varint, "123456789012345678901234567890");
        check_round_trip(&CqlType::Inet, "::1");
        check_round_trip(&CqlType::Blob, "0xcafe");
        check_round_trip(&CqlType::Uuid, "1292eed1-7956-4942-b19a-81b9af083eb5");
        check_round_trip(&list(CqlType::Text), "['a', 'it''s, {x}', '']");
        check_round_trip(&list(CqlType::Int), "[]");
        check_round_trip(&map_of(CqlType::Text, list(CqlType::Int)), "{'a:b': [1, 2], 'c': []}");
        check_round_trip(
            &map_of(CqlType::Timestamp, CqlType::Inet),
            "{'2013-01-01 10:00:00.000+0000': '10.0.0.1'}",
        );
        check_round_trip(&CqlType::Tuple(vec![CqlType::Int, CqlType::Text].into()), "(1, null)");
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for (cql_type, text) in [
            (CqlType::Int, "NA"),
            (CqlType::Tinyint, "300"),
            (list(CqlType::Int), "[1, 2"),
            (list(CqlType::Int), "1, 2"),
            (map_of(CqlType::Int, CqlType::Int), "{1}"),
            (CqlType::Boolean, "maybe"),
        ] {
            assert!(parse(&cql_type, text, &ParseOptions::default()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_in_a_list_reads_back(texts in prop::collection::vec(".*", 0..5)) {
            let cql_type = list(CqlType::Text);
            let value = encoding::collection(texts.len(), texts.iter().map(|text| Some(text.as_bytes())));
            let written = format(&cql_type, &value, Style::Csv);
            prop_assert_eq!(parse(&cql_type, &written, &ParseOptions::default()).unwrap(), value);
        }

        #[test]
        fn any_double_reads_back(number in any::<f64>().prop_filter("NaNs differ in their bits", |x| !x.is_nan())) {
            let value = number.to_be_bytes();
            let written = format(&CqlType::Double, &value, Style::Csv);
            prop_assert_eq!(parse(&CqlType::Double, &written, &ParseOptions::default()).unwrap(), value);
        }
    }
}
