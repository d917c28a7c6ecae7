//! Keyspaces and user types as statements, and the pieces all statements share.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schema::Keyspace;
use types::{UserType, quote_if_needed};

/// Strategies of this package are named by their short names.
const STRATEGIES: &str = "org.apache.cassandra.locator.";

/// A text between single quotes.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `{'a': 'b', …}`
pub(super) fn map<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs: Vec<String> =
        pairs.into_iter().map(|(key, value)| format!("{}: {}", quoted(key), quoted(value))).collect();
    format!("{{{}}}", pairs.join(", "))
}

/// A map by its keys, with its class among them.
pub(super) fn map_with_class(class: &str, options: &BTreeMap<String, String>) -> String {
    let mut all: BTreeMap<&str, &str> =
        options.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    all.insert("class", class);
    map(all)
}

pub(super) fn keyspace(keyspace: &Keyspace, is_virtual: bool) -> String {
    let name = quote_if_needed(&keyspace.name);
    if is_virtual {
        return format!(
            "/*\nWarning: Keyspace {name} is a virtual keyspace and cannot be recreated with CQL.\n\
             Structure, for reference:\nVIRTUAL KEYSPACE {name};\n*/"
        );
    }
    let replication = &keyspace.replication;
    let class = replication.class.strip_prefix(STRATEGIES).unwrap_or(&replication.class);
    let options = replication.options.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let options = map([("class", class)].into_iter().chain(options));
    // The two blanks are Cassandra's.
    format!(
        "CREATE KEYSPACE {name} WITH replication = {options}  AND durable_writes = {};",
        keyspace.durable_writes
    )
}

pub(super) fn user_type(definition: &UserType) -> String {
    let (keyspace, name) = (quote_if_needed(&definition.keyspace), quote_if_needed(&definition.name));
    let mut text = format!("CREATE TYPE {keyspace}.{name} (\n");
    for (index, (field, cql_type)) in definition.fields.iter().enumerate() {
        let comma = if index > 0 { ",\n" } else { "" };
        // Writing to a String can not fail.
        _ = write!(text, "{comma}    {} {cql_type}", quote_if_needed(field));
    }
    text.push_str("\n);");
    text
}
