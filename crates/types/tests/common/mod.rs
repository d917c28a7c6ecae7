//! Reading the tables in `vectors/`, which hold Cassandra's own answers.

#![allow(dead_code, reason = "each test file uses its part")]

use types::marshal::{self, MarshalType};
use types::{CqlType, blob};

/// The lines of a table, each as its fields.
pub(crate) fn lines(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split('\t').collect()).collect()
}

/// Bytes from `x` and hexadecimal digits, `None` from `-`.
pub(crate) fn bytes(field: &str) -> Option<Vec<u8>> {
    let digits = field.strip_prefix('x')?;
    Some(blob::parse(digits).expect("hexadecimal digits"))
}

/// The inverse of the escaping of control characters and backslashes.
pub(crate) fn text(field: &str) -> String {
    let mut out = String::new();
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('\\') {
            out.push('\\');
            rest = after;
        } else {
            let code = u8::from_str_radix(&after[..2], 16).expect("two hexadecimal digits");
            out.push(char::from(code));
            rest = &after[2..];
        }
    }
    out + rest
}

/// A type by its marshal name.
pub(crate) fn of(name: &str) -> CqlType {
    CqlType::from_marshal(name).expect("a type")
}

/// A clustering column by its marshal name: its type, and is it reversed?
pub(crate) fn clustering_of(name: &str) -> (CqlType, bool) {
    match marshal::parse(name).expect("a type") {
        MarshalType::Plain(of) => (of, false),
        MarshalType::Reversed(of) => (of, true),
        MarshalType::Composite(_) => panic!("a composite"),
    }
}
