//! Values out of JSON texts.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use runtime::Io;
pub(crate) use serde_json::Value as Json;
use types::{CqlType, blob, encoding};

use super::{Bindings, JsonMarker, Value};
use crate::QueryError;
use crate::error::refuse;
use crate::request::BindValue;

/// Most values in one JSON text: a tree of more takes dozens of milliseconds, and dozens of bytes for each.
const VALUES_MAX: usize = 250_000;

/// What the marker of INSERT JSON is called.
pub(crate) const MARKER_NAME: &str = "[json]";

/// The members of a JSON object, by the columns they name.
pub(crate) type Members = BTreeMap<String, Json>;

/// About how many values there are: what follows a comma or an opening bracket outside of strings.
fn count_values(text: &str) -> usize {
    let (mut count, mut is_string, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            b',' | b'[' | b'{' if !is_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Reads a text on another thread.
pub(crate) async fn read(text: Bytes, io: &Io) -> Result<Json, QueryError> {
    io.run(move || document(valid(&text)?)).await
}

fn valid(text: &[u8]) -> Result<&str, QueryError> {
    let Ok(text) = std::str::from_utf8(text) else { refuse!("String didn't validate.") };
    Ok(text)
}

fn document(text: &str) -> Result<Json, QueryError> {
    let value_count = count_values(text);
    if value_count > VALUES_MAX {
        refuse!("The JSON string has {value_count} values: more than the {VALUES_MAX} that it may have");
    }
    serde_json::from_str(text).map_err(|error| {
        QueryError::invalid(stdx::brief!(
            "Could not decode JSON string as a map: {error}. (String was: {text})"
        ))
    })
}

/// The members of the JSON object of a text, which names columns; `read` is what was read of it before.
///
/// # Errors
/// The text is no JSON object, or it names something else.
pub(crate) fn parse(
    text: &str,
    read: Option<Result<Json, QueryError>>,
    columns: &[String],
) -> Result<Members, QueryError> {
    let members = match read.unwrap_or_else(|| document(text))? {
        Json::Object(members) => members,
        Json::Null => refuse!("Got null for INSERT JSON values"),
        _ => refuse!("Could not decode JSON string as a map: it is none. (String was: {text})"),
    };
    let known: HashSet<&str> = columns.iter().map(String::as_str).collect();
    let mut found = BTreeMap::new();
    for (name, value) in members {
        // Quoted names keep their case, others fold.
        let column = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
            Some(exact) => exact.to_owned(),
            None => name.to_lowercase(),
        };
        if !known.contains(column.as_str()) {
            refuse!("JSON values map contains unrecognized column: {column}");
        }
        found.insert(column, value);
    }
    Ok(found)
}

pub(super) fn bind<'a>(marker: &JsonMarker, bindings: &Bindings<'_>) -> Result<Value<'a>, QueryError> {
    let text = match bindings.raw(marker.index) {
        BindValue::Set(text) => text,
        BindValue::Null => refuse!("Got null for INSERT JSON values"),
        BindValue::Unset => refuse!("Invalid unset value for JSON"),
    };
    let members = bindings.document(marker.index, |read| parse(valid(text)?, read, &marker.columns))?;
    match members.get(&marker.column) {
        None if marker.defaults_to_unset => Ok(Value::Unset),
        None => Ok(Value::Null),
        Some(value) => {
            let now = bindings.environment.now_millis();
            let encoded = encode(&marker.column, &marker.cql_type, value, now)?;
            Ok(encoded.map_or(Value::Null, |bytes| Value::Set(bytes.into())))
        }
    }
}

/// A JSON value as a value of a type; `None` for null.
///
/// # Errors
/// It is none.
pub(crate) fn encode(
    column: &str,
    cql_type: &CqlType,
    value: &Json,
    now_millis: i64,
) -> Result<Option<Vec<u8>>, QueryError> {
    let encoded = encode_value(cql_type, value, now_millis);
    encoded
        .map_err(|error| QueryError::invalid(stdx::brief!("Error decoding JSON value for {column}: {error}")))
}

fn encode_value(cql_type: &CqlType, value: &Json, now: i64) -> Result<Option<Vec<u8>>, QueryError> {
    let expected =
        |what: &str| QueryError::invalid(stdx::brief!("Expected {what}, but got a {}: {value}", kind(value)));
    let scalar = |text: &str| cql_type.from_text(text, now).map_err(QueryError::from);
    Ok(Some(match (cql_type, value) {
        (_, Json::Null) => return Ok(None),
        (CqlType::List { element, .. } | CqlType::Set { element, .. }, Json::Array(items)) => {
            let mut parts = Vec::with_capacity(items.len());
            for item in items {
                let Some(part) = encode_value(element, item, now)? else {
                    refuse!("Invalid null element in {}", if is_set(cql_type) { "set" } else { "list" });
                };
                parts.push(part);
            }
            if is_set(cql_type) {
                parts.sort_by(|a, b| element.compare(a, b));
                parts.dedup_by(|a, b| element.compare(a, b).is_eq());
            }
            encoding::collection(parts.len(), parts.iter().map(|part| Some(part.as_slice())))
        }
        (CqlType::List { .. } | CqlType::Set { .. }, _) => return Err(expected("a list")),
        (CqlType::Map { key, value: held, .. }, Json::Object(members)) => {
            let mut entries = Vec::with_capacity(members.len());
            for (name, member) in members {
                let name = match &**key {
                    CqlType::Text | CqlType::Ascii => Some(name.clone().into_bytes()),
                    other if other.native_name().is_some() => {
                        encode_value(other, &Json::String(name.clone()), now)?
                    }
                    other => {
                        let inner: Json = serde_json::from_str(name).unwrap_or(Json::String(name.clone()));
                        encode_value(other, &inner, now)?
                    }
                };
                let (Some(name), Some(member)) = (name, encode_value(held, member, now)?) else {
                    refuse!("Invalid null value in map");
                };
                entries.push((name, member));
            }
            entries.sort_by(|(a, _), (b, _)| key.compare(a, b));
            let parts =
                entries.iter().flat_map(|(name, member)| [Some(name.as_slice()), Some(member.as_slice())]);
            encoding::collection(entries.len(), parts)
        }
        (CqlType::Map { .. }, _) => return Err(expected("a map")),
        (CqlType::Tuple(types), Json::Array(items)) => {
            if items.len() > types.len() {
                refuse!("Tuple contains extra items (expected {}): {value}", types.len());
            }
            let mut parts = Vec::with_capacity(items.len());
            for (item, of) in items.iter().zip(types.iter()) {
                parts.push(encode_value(of, item, now)?);
            }
            encoding::tuple(parts.iter().map(Option::as_deref))
        }
        (CqlType::UserDefined { definition, .. }, Json::Object(members)) => {
            let mut parts = Vec::with_capacity(definition.fields.len());
            for (name, of) in &definition.fields {
                parts.push(match members.get(name).or_else(|| members.get(&format!("\"{name}\""))) {
                    Some(member) => encode_value(of, member, now)?,
                    None => None,
                });
            }
            encoding::tuple(parts.iter().map(Option::as_deref))
        }
        (CqlType::Vector { element, dimension }, Json::Array(items)) => {
            if items.len() != *dimension as usize {
                refuse!("Expected vector of {dimension} elements, but got {}", items.len());
            }
            let mut parts = Vec::with_capacity(items.len());
            for item in items {
                match encode_value(element, item, now)? {
                    Some(part) => parts.push(part),
                    None => refuse!("Invalid null element in vector"),
                }
            }
            encoding::vector(element, parts.iter().map(Vec::as_slice))
        }
        (CqlType::Blob, Json::String(text)) => match text.strip_prefix("0x") {
            Some(digits) => blob::parse(digits)?,
            None => refuse!("String representation of blob is missing 0x prefix: {text}"),
        },
        (CqlType::Ascii | CqlType::Text, Json::String(text)) => scalar(text)?,
        (CqlType::Ascii | CqlType::Text, _) => return Err(expected("a UTF-8 string")),
        (CqlType::Boolean, Json::Bool(value)) => vec![u8::from(*value)],
        (CqlType::Boolean, Json::String(text)) => scalar(text)?,
        (CqlType::Boolean, _) => return Err(expected("a boolean value")),
        (_, Json::String(text)) if cql_type.native_name().is_some() => scalar(text)?,
        (_, Json::Number(number)) if cql_type.native_name().is_some() => scalar(&number.to_string())?,
        _ => return Err(expected(&format!("a value of type {cql_type}"))),
    }))
}

fn is_set(cql_type: &CqlType) -> bool {
    matches!(cql_type, CqlType::Set { .. })
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "Boolean",
        Json::Number(_) => "Number",
        Json::String(_) => "String",
        Json::Array(_) => "List",
        Json::Object(_) => "Map",
    }
}
