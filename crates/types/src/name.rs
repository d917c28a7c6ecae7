//! Types and identifiers as CQL text: what `system_schema` shows and clients parse.

use crate::CqlType;
use std::fmt;

/// Words that CQL keeps for itself: as names they must be quoted.
const RESERVED: &[&str] = &[
    "add",
    "allow",
    "alter",
    "and",
    "apply",
    "asc",
    "authorize",
    "batch",
    "begin",
    "by",
    "columnfamily",
    "create",
    "delete",
    "desc",
    "describe",
    "drop",
    "entries",
    "execute",
    "from",
    "full",
    "grant",
    "if",
    "in",
    "index",
    "infinity",
    "insert",
    "into",
    "is",
    "keyspace",
    "limit",
    "materialized",
    "modify",
    "nan",
    "norecursive",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "primary",
    "rename",
    "revoke",
    "schema",
    "select",
    "set",
    "table",
    "to",
    "token",
    "truncate",
    "unlogged",
    "update",
    "use",
    "using",
    "view",
    "where",
    "with",
];

/// Would CQL read `name`, unquoted, as a keyword and not as a name?
pub fn is_reserved(name: &str) -> bool {
    RESERVED.binary_search(&name.to_ascii_lowercase().as_str()).is_ok()
}

/// `name` as CQL text: in double quotes if it would not be read as the same name without.
pub fn quote_if_needed(name: &str) -> String {
    let mut bytes = name.bytes();
    let plain = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
        && bytes.all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if plain && !is_reserved(name) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The type as `system_schema.columns.type` shows it. A user-defined type's keyspace is left out.
impl fmt::Display for CqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.native_name() {
            return f.write_str(name);
        }
        let frozen = match self {
            CqlType::Tuple(_) => true,
            CqlType::Vector { .. } => false,
            _ => !self.is_multi_cell(),
        };
        if frozen {
            f.write_str("frozen<")?;
        }
        match self {
            CqlType::List { element, .. } => write!(f, "list<{element}>")?,
            CqlType::Set { element, .. } => write!(f, "set<{element}>")?,
            CqlType::Map { key, value, .. } => write!(f, "map<{key}, {value}>")?,
            CqlType::Vector { element, dimension } => write!(f, "vector<{element}, {dimension}>")?,
            CqlType::UserDefined { definition, .. } => {
                f.write_str(&quote_if_needed(&definition.name))?;
            }
            CqlType::Tuple(types) => {
                f.write_str("tuple<")?;
                for (index, of) in types.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{of}")?;
                }
                f.write_str(">")?;
            }
            _ => {}
        }
        if frozen { f.write_str(">") } else { Ok(()) }
    }
}

impl CqlType {
    /// The name of a type without parameters.
    pub fn native_name(&self) -> Option<&'static str> {
        Some(match self {
            CqlType::Ascii => "ascii",
            CqlType::Bigint => "bigint",
            CqlType::Blob => "blob",
            CqlType::Boolean => "boolean",
            CqlType::Counter => "counter",
            CqlType::Date => "date",
            CqlType::Decimal => "decimal",
            CqlType::Double => "double",
            CqlType::Duration => "duration",
            CqlType::Empty => "empty",
            CqlType::Float => "float",
            CqlType::Inet => "inet",
            CqlType::Int => "int",
            CqlType::Smallint => "smallint",
            CqlType::Text => "text",
            CqlType::Time => "time",
            CqlType::Timestamp => "timestamp",
            CqlType::Timeuuid => "timeuuid",
            CqlType::Tinyint => "tinyint",
            CqlType::Uuid => "uuid",
            CqlType::Varint => "varint",
            CqlType::List { .. }
            | CqlType::Set { .. }
            | CqlType::Map { .. }
            | CqlType::Tuple(_)
            | CqlType::UserDefined { .. }
            | CqlType::Vector { .. } => return None,
        })
    }

    /// The type that `name` (in any case) names, `varchar` included, if it takes no parameters.
    pub fn from_native_name(name: &str) -> Option<CqlType> {
        Some(match name.to_ascii_lowercase().as_str() {
            "ascii" => CqlType::Ascii,
            "bigint" => CqlType::Bigint,
            "blob" => CqlType::Blob,
            "boolean" => CqlType::Boolean,
            "counter" => CqlType::Counter,
            "date" => CqlType::Date,
            "decimal" => CqlType::Decimal,
            "double" => CqlType::Double,
            "duration" => CqlType::Duration,
            "empty" => CqlType::Empty,
            "float" => CqlType::Float,
            "inet" => CqlType::Inet,
            "int" => CqlType::Int,
            "smallint" => CqlType::Smallint,
            "text" | "varchar" => CqlType::Text,
            "time" => CqlType::Time,
            "timestamp" => CqlType::Timestamp,
            "timeuuid" => CqlType::Timeuuid,
            "tinyint" => CqlType::Tinyint,
            "uuid" => CqlType::Uuid,
            "varint" => CqlType::Varint,
            _ => return None,
        })
    }

    /// The same type as one indivisible value, everything inside it too.
    pub fn freeze(&self) -> CqlType {
        match self {
            CqlType::List { element, .. } => CqlType::List { element: element.freeze().into(), frozen: true },
            CqlType::Set { element, .. } => CqlType::Set { element: element.freeze().into(), frozen: true },
            CqlType::Map { key, value, .. } => {
                CqlType::Map { key: key.freeze().into(), value: value.freeze().into(), frozen: true }
            }
            CqlType::UserDefined { definition, .. } => {
                CqlType::UserDefined { definition: definition.clone(), frozen: true }
            }
            CqlType::Vector { element, dimension } => {
                CqlType::Vector { element: element.freeze().into(), dimension: *dimension }
            }
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_sorted_for_the_search() {
        assert!(RESERVED.is_sorted());
        assert!(is_reserved("Select"));
        assert!(!is_reserved("key"));
    }

    #[test]
    fn names_are_quoted_when_needed() {
        assert_eq!(quote_if_needed("a_1"), "a_1");
        assert_eq!(quote_if_needed("Ab"), "\"Ab\"");
        assert_eq!(quote_if_needed("table"), "\"table\"");
        assert_eq!(quote_if_needed("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote_if_needed("1a"), "\"1a\"");
    }
}
