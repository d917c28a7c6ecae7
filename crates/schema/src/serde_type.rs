//! Types in the metadata log, written as Cassandra's marshal class names, which spell out user
//! types whole.
//!
//! Unlike Cassandra, which leaves `FrozenType` out inside something frozen, every frozen type says
//! so here: `frozen<list<int>>` as a field must come back as that, and not as `list<int>`.

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};
use types::{CqlType, blob};

pub(crate) fn serialize<S: Serializer>(cql_type: &CqlType, serializer: S) -> Result<S::Ok, S::Error> {
    let mut text = String::new();
    write(cql_type, &mut text);
    serializer.serialize_str(&text)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CqlType, D::Error> {
    let text = String::deserialize(deserializer)?;
    CqlType::from_marshal(&text).map_err(D::Error::custom)
}

fn write(cql_type: &CqlType, out: &mut String) {
    let is_frozen = match cql_type {
        CqlType::List { frozen, .. }
        | CqlType::Set { frozen, .. }
        | CqlType::Map { frozen, .. }
        | CqlType::UserDefined { frozen, .. } => *frozen,
        _ => false,
    };
    if is_frozen {
        out.push_str("org.apache.cassandra.db.marshal.FrozenType(");
    }
    match cql_type {
        CqlType::List { element, .. } => write_list("ListType", [&**element], out),
        CqlType::Set { element, .. } => write_list("SetType", [&**element], out),
        CqlType::Map { key, value, .. } => write_list("MapType", [&**key, &**value], out),
        CqlType::Tuple(parts) => write_list("TupleType", parts.iter(), out),
        CqlType::Vector { element, dimension } => {
            out.push_str("org.apache.cassandra.db.marshal.VectorType(");
            write(element, out);
            out.push_str(&format!(" , {dimension})"));
        }
        CqlType::UserDefined { definition, .. } => {
            let name = blob::format(definition.name.as_bytes());
            out.push_str(&format!("org.apache.cassandra.db.marshal.UserType({},{name}", definition.keyspace));
            for (field, cql_type) in &definition.fields {
                out.push_str(&format!(",{}:", blob::format(field.as_bytes())));
                write(cql_type, out);
            }
            out.push(')');
        }
        native => out.push_str(&native.to_marshal()),
    }
    if is_frozen {
        out.push(')');
    }
}

fn write_list<'a>(class: &str, types: impl IntoIterator<Item = &'a CqlType>, out: &mut String) {
    out.push_str("org.apache.cassandra.db.marshal.");
    out.push_str(class);
    for (index, cql_type) in types.into_iter().enumerate() {
        out.push(if index == 0 { '(' } else { ',' });
        write(cql_type, out);
    }
    out.push(')');
}
