//! A cell as JSON, in the forms of CQL's `SELECT JSON`.

use serde_json::{Map, Number, Value};
use types::{CqlType, encoding};

use super::calendar;
use super::format::{self, Style, format};

/// A value that does not fit its type becomes the text of its bytes.
pub(crate) fn json(cql_type: &CqlType, value: &[u8]) -> Value {
    typed(cql_type, value).unwrap_or_else(|| Value::String(format::blob(value)))
}

fn typed(cql_type: &CqlType, value: &[u8]) -> Option<Value> {
    Some(match cql_type {
        CqlType::Bigint | CqlType::Counter => i64::from_be_bytes(value.try_into().ok()?).into(),
        CqlType::Int => i32::from_be_bytes(value.try_into().ok()?).into(),
        CqlType::Smallint => i16::from_be_bytes(value.try_into().ok()?).into(),
        CqlType::Tinyint => i8::from_be_bytes(value.try_into().ok()?).into(),
        CqlType::Boolean => Value::Bool(value != [0]),
        CqlType::Float => number(&format(cql_type, value, Style::Csv)),
        CqlType::Double => number(&format(cql_type, value, Style::Csv)),
        // Numbers without bound: a reader that wants them exact gets text.
        CqlType::Varint | CqlType::Decimal => number_or_text(format(cql_type, value, Style::Csv)),
        CqlType::Timestamp => timestamp(value)?,
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            let parts = encoding::Parts::new(value, 1).ok()?;
            Value::Array(parts.map(|part| Some(nullable(element, part.ok()?))).collect::<Option<_>>()?)
        }
        CqlType::Map { key, value: element, .. } => map(key, element, value)?,
        CqlType::Tuple(elements) => {
            let mut fields = encoding::Fields::new(value);
            let mut array = Vec::new();
            for element in elements.iter() {
                array.push(nullable(element, fields.next().transpose().ok()?.flatten()));
            }
            Value::Array(array)
        }
        CqlType::UserDefined { definition, .. } => {
            let mut fields = encoding::Fields::new(value);
            let mut object = Map::new();
            for (name, element) in &definition.fields {
                let field = fields.next().transpose().ok()?.flatten();
                object.insert(name.clone(), nullable(element, field));
            }
            Value::Object(object)
        }
        CqlType::Vector { element, dimension } => {
            let elements = encoding::Elements::new(element, *dimension, value);
            Value::Array(elements.map(|part| Some(json(element, part.ok()?))).collect::<Option<_>>()?)
        }
        _ => Value::String(format(cql_type, value, Style::Csv)),
    })
}

/// Keys of a JSON object are text, whatever they are in CQL.
fn map(key: &CqlType, element: &CqlType, value: &[u8]) -> Option<Value> {
    let mut parts = encoding::Parts::new(value, 2).ok()?;
    let mut object = Map::new();
    while let Some(part) = parts.next() {
        let name = match nullable(key, part.ok()?) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        object.insert(name, nullable(element, parts.next()?.ok()?));
    }
    Some(Value::Object(object))
}

fn nullable(cql_type: &CqlType, value: Option<&[u8]>) -> Value {
    value.map_or(Value::Null, |value| json(cql_type, value))
}

/// JSON has neither NaN nor infinities.
fn number(text: &str) -> Value {
    text.parse::<f64>()
        .ok()
        .and_then(Number::from_f64)
        .map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number_or_text(text: String) -> Value {
    match text.parse::<i64>() {
        Ok(small) => small.into(),
        Err(_) => Value::String(text),
    }
}

fn timestamp(value: &[u8]) -> Option<Value> {
    let millis = i64::from_be_bytes(value.try_into().ok()?);
    let (days, of_day) = calendar::split_millis(millis);
    let Some(date) = calendar::date(days) else { return Some(millis.into()) };
    Some(Value::String(format!("{date} {}.{:03}Z", calendar::clock(of_day), of_day % 1000)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn values_become_json() {
        assert_eq!(json(&CqlType::Int, &7i32.to_be_bytes()).to_string(), "7");
        assert_eq!(json(&CqlType::Float, &0.1f32.to_be_bytes()).to_string(), "0.1");
        assert_eq!(json(&CqlType::Double, &f64::NAN.to_be_bytes()).to_string(), "\"NaN\"");
        let moment = 1_357_034_400_000i64.to_be_bytes();
        assert_eq!(json(&CqlType::Timestamp, &moment).to_string(), "\"2013-01-01 10:00:00.000Z\"");
        let list = CqlType::List { element: Arc::new(CqlType::Boolean), frozen: false };
        let value = encoding::collection(2, [Some([1].as_slice()), Some([0].as_slice())]);
        assert_eq!(json(&list, &value).to_string(), "[true,false]");
    }
}
