//! Types in the metadata log, written as Cassandra's marshal class names, which spell out user
//! types whole.

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};
use types::CqlType;

pub(crate) fn serialize<S: Serializer>(cql_type: &CqlType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&cql_type.to_marshal())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CqlType, D::Error> {
    let text = String::deserialize(deserializer)?;
    CqlType::from_marshal(&text).map_err(D::Error::custom)
}
