//! Values as CQL literals, and as JSON.

use crate::encoding::{Elements, Fields, Parts};
use crate::{CqlType, UserType, blob, quote_if_needed, timestamp};
use std::fmt::Write as _;

impl CqlType {
    /// The value as a CQL literal, `null` for an empty one that means nothing. A value that is not
    /// of this type gives as much of it as can be read.
    pub fn to_cql_literal(&self, value: &[u8]) -> String {
        let mut out = String::new();
        self.write_literal(Some(value), &mut out);
        out
    }

    fn write_literal(&self, value: Option<&[u8]>, out: &mut String) {
        let Some(value) = value else {
            out.push_str("null");
            return;
        };
        match self {
            CqlType::Ascii | CqlType::Text => {
                let _ = write!(out, "'{}'", self.to_text(value).replace('\'', "''"));
            }
            CqlType::Blob => {
                let _ = write!(out, "0x{}", blob::format(value));
            }
            CqlType::List { element, .. } => write_parts(&[element], value, ('[', ']'), out),
            CqlType::Set { element, .. } => write_parts(&[element], value, ('{', '}'), out),
            CqlType::Map { key, value: held, .. } => write_parts(&[key, held], value, ('{', '}'), out),
            CqlType::Tuple(types) => {
                out.push('(');
                for (index, (field, of)) in Fields::new(value).map_while(Result::ok).zip(&**types).enumerate()
                {
                    out.push_str(if index > 0 { ", " } else { "" });
                    of.write_literal(field, out);
                }
                out.push(')');
            }
            CqlType::UserDefined { definition, .. } => write_user_defined(definition, value, out),
            CqlType::Vector { element, dimension } => {
                out.push('[');
                let elements = Elements::new(element, *dimension, value).map_while(Result::ok);
                for (index, part) in elements.enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    element.write_literal(Some(part), out);
                }
                out.push(']');
            }
            _ if value.is_empty() => out.push_str("null"),
            CqlType::Date | CqlType::Time | CqlType::Timestamp | CqlType::Inet => {
                let _ = write!(out, "'{}'", self.to_text(value));
            }
            _ => out.push_str(&self.to_text(value)),
        }
    }

    /// The value as `SELECT JSON` and `toJson` show it; `null` for a null one.
    pub fn to_json(&self, value: Option<&[u8]>) -> String {
        // What is long is often about as long in JSON.
        let mut out = String::with_capacity(value.map_or(0, <[u8]>::len));
        self.write_json(value, &mut out);
        out
    }

    /// The same, behind what is there.
    pub fn write_json(&self, value: Option<&[u8]>, out: &mut String) {
        let Some(value) = value else {
            out.push_str("null");
            return;
        };
        match self {
            CqlType::Ascii | CqlType::Text => write_json_string(&String::from_utf8_lossy(value), out),
            CqlType::Blob => {
                let _ = write!(out, "\"0x{}\"", blob::format(value));
            }
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                write_json_list(
                    element,
                    Parts::new(value, 1).into_iter().flatten().map_while(Result::ok),
                    out,
                );
            }
            CqlType::Vector { element, dimension } => {
                let elements = Elements::new(element, *dimension, value).map_while(Result::ok).map(Some);
                write_json_list(element, elements, out);
            }
            CqlType::Map { key, value: held, .. } => write_json_map(key, held, value, out),
            CqlType::Tuple(types) => {
                out.push('[');
                let mut fields = Fields::new(value).map_while(Result::ok);
                for (index, of) in types.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    of.write_json(fields.next().flatten(), out);
                }
                out.push(']');
            }
            CqlType::UserDefined { definition, .. } => write_json_fields(definition, value, out),
            CqlType::Float | CqlType::Double => {
                let text = self.to_text(value);
                out.push_str(match text.as_str() {
                    "" => "\"\"",
                    "NaN" | "Infinity" | "-Infinity" => "null",
                    number => number,
                });
            }
            CqlType::Timestamp => {
                let _ = write!(out, "\"{}\"", timestamp::format_for_json(value));
            }
            CqlType::Date
            | CqlType::Time
            | CqlType::Inet
            | CqlType::Uuid
            | CqlType::Timeuuid
            | CqlType::Duration => {
                let _ = write!(out, "\"{}\"", self.to_text(value));
            }
            _ if value.is_empty() => out.push_str("\"\""),
            _ => out.push_str(&self.to_text(value)),
        }
    }
}

/// Elements with commas; of a map, keys and values with colons.
fn write_parts(types: &[&CqlType], value: &[u8], brackets: (char, char), out: &mut String) {
    out.push(brackets.0);
    let parts = Parts::new(value, types.len() as u64).into_iter().flatten().map_while(Result::ok);
    for (index, (part, of)) in parts.zip(types.iter().cycle()).enumerate() {
        let is_value = types.len() == 2 && index % 2 == 1;
        out.push_str(match (index, is_value) {
            (0, _) => "",
            (_, true) => ": ",
            (_, false) => ", ",
        });
        of.write_literal(part, out);
    }
    out.push(brackets.1);
}

fn write_user_defined(definition: &UserType, value: &[u8], out: &mut String) {
    out.push('{');
    let fields = Fields::new(value).map_while(Result::ok);
    for (index, (field, (name, of))) in fields.zip(&definition.fields).enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(out, "{comma}{}: ", quote_if_needed(name));
        of.write_literal(field, out);
    }
    out.push('}');
}

fn write_json_list<'a>(of: &CqlType, parts: impl Iterator<Item = Option<&'a [u8]>>, out: &mut String) {
    out.push('[');
    for (index, part) in parts.enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        of.write_json(part, out);
    }
    out.push(']');
}

/// Keys must be strings in JSON: others become the string of their JSON.
fn write_json_map(key: &CqlType, held: &CqlType, value: &[u8], out: &mut String) {
    out.push('{');
    let mut parts = Parts::new(value, 2).into_iter().flatten().map_while(Result::ok);
    let mut comma = "";
    while let (Some(key_part), Some(value_part)) = (parts.next(), parts.next()) {
        out.push_str(comma);
        comma = ", ";
        let start = out.len();
        key.write_json(key_part, out);
        if !out[start..].starts_with('"') {
            let key_json = out.split_off(start);
            write_json_string(&key_json, out);
        }
        out.push_str(": ");
        held.write_json(value_part, out);
    }
    out.push('}');
}

fn write_json_fields(definition: &UserType, value: &[u8], out: &mut String) {
    out.push('{');
    let mut fields = Fields::new(value).map_while(Result::ok);
    for (index, (name, of)) in definition.fields.iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        // A name that CQL would need quotes for keeps them.
        if name.chars().any(|c| c.to_lowercase().ne([c])) {
            write_json_string(&format!("\"{name}\""), out);
        } else {
            write_json_string(name, out);
        }
        out.push_str(": ");
        of.write_json(fields.next().flatten(), out);
    }
    out.push('}');
}

/// In quotes; quotes, backslashes and control characters escaped.
pub fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    // All of these are ASCII, and so no part of another character.
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | ..=0x1f)) {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x8 => out.push_str("\\b"),
            0xc => out.push_str("\\f"),
            control @ ..=0x1f => {
                let _ = write!(out, "\\u{control:04X}");
            }
            quote => out.extend(['\\', char::from(quote)]),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}
