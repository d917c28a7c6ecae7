//! Types as the metadata says them: a code and what belongs to it.
//!
//! Types without a code, or whose code came with a later version than is spoken, are custom types
//! named by Cassandra's marshal class: vectors and `empty` always; `date`, `time`, `smallint` and
//! `tinyint` before version 4; `duration` before version 5.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use types::{CqlType, UserType};

use crate::wire::{Put, Reader};
use crate::{ProtocolError, Version};

/// How deep types may nest when read; deeper ones would only serve to exhaust the stack.
const DEPTH_MAX: usize = 64;

const CUSTOM: u16 = 0x0000;
/// Of version 1 and 2; read as `text`.
const TEXT: u16 = 0x000A;
const LIST: u16 = 0x0020;
const MAP: u16 = 0x0021;
const SET: u16 = 0x0022;
const USER_DEFINED: u16 = 0x0030;
const TUPLE: u16 = 0x0031;

/// The code of a type without parameters, and the version it came with.
fn simple_code(cql_type: &CqlType) -> Option<(u16, Version)> {
    Some(match cql_type {
        CqlType::Ascii => (0x0001, Version::V3),
        CqlType::Bigint => (0x0002, Version::V3),
        CqlType::Blob => (0x0003, Version::V3),
        CqlType::Boolean => (0x0004, Version::V3),
        CqlType::Counter => (0x0005, Version::V3),
        CqlType::Decimal => (0x0006, Version::V3),
        CqlType::Double => (0x0007, Version::V3),
        CqlType::Float => (0x0008, Version::V3),
        CqlType::Int => (0x0009, Version::V3),
        CqlType::Timestamp => (0x000B, Version::V3),
        CqlType::Uuid => (0x000C, Version::V3),
        CqlType::Text => (0x000D, Version::V3),
        CqlType::Varint => (0x000E, Version::V3),
        CqlType::Timeuuid => (0x000F, Version::V3),
        CqlType::Inet => (0x0010, Version::V3),
        CqlType::Date => (0x0011, Version::V4),
        CqlType::Time => (0x0012, Version::V4),
        CqlType::Smallint => (0x0013, Version::V4),
        CqlType::Tinyint => (0x0014, Version::V4),
        CqlType::Duration => (0x0015, Version::V5),
        _ => return None,
    })
}

fn simple_type(code: u16) -> Option<CqlType> {
    Some(match code {
        0x0001 => CqlType::Ascii,
        0x0002 => CqlType::Bigint,
        0x0003 => CqlType::Blob,
        0x0004 => CqlType::Boolean,
        0x0005 => CqlType::Counter,
        0x0006 => CqlType::Decimal,
        0x0007 => CqlType::Double,
        0x0008 => CqlType::Float,
        0x0009 => CqlType::Int,
        0x000B => CqlType::Timestamp,
        0x000C => CqlType::Uuid,
        TEXT | 0x000D => CqlType::Text,
        0x000E => CqlType::Varint,
        0x000F => CqlType::Timeuuid,
        0x0010 => CqlType::Inet,
        0x0011 => CqlType::Date,
        0x0012 => CqlType::Time,
        0x0013 => CqlType::Smallint,
        0x0014 => CqlType::Tinyint,
        0x0015 => CqlType::Duration,
        _ => return None,
    })
}

/// Appends a type. "Frozen" is not said.
pub(crate) fn put_type(out: &mut BytesMut, cql_type: &CqlType, version: Version) {
    match cql_type {
        CqlType::List { element, .. } => {
            out.put_u16(LIST);
            put_type(out, element, version);
        }
        CqlType::Set { element, .. } => {
            out.put_u16(SET);
            put_type(out, element, version);
        }
        CqlType::Map { key, value, .. } => {
            out.put_u16(MAP);
            put_type(out, key, version);
            put_type(out, value, version);
        }
        CqlType::Tuple(elements) => {
            out.put_u16(TUPLE);
            out.put_list(elements, |out, element| put_type(out, element, version));
        }
        CqlType::UserDefined { definition, .. } => {
            out.put_u16(USER_DEFINED);
            out.put_text(&definition.keyspace);
            out.put_text(&definition.name);
            out.put_list(&definition.fields, |out, (name, field_type)| {
                out.put_text(name);
                put_type(out, field_type, version);
            });
        }
        simple => match simple_code(simple) {
            Some((code, since)) if version >= since => out.put_u16(code),
            _ => {
                out.put_u16(CUSTOM);
                out.put_text(&simple.to_marshal());
            }
        },
    }
}

/// Reads a type. Collections and user types come back as not frozen, which is all they can say.
pub(crate) fn read_type(reader: &mut Reader) -> Result<CqlType, ProtocolError> {
    read_nested(reader, DEPTH_MAX)
}

fn read_nested(reader: &mut Reader, depth: usize) -> Result<CqlType, ProtocolError> {
    let depth = depth.checked_sub(1).ok_or(ProtocolError::TypeTooDeep { depth_max: DEPTH_MAX })?;
    let nested = |reader: &mut Reader| read_nested(reader, depth);
    Ok(match reader.u16()? {
        CUSTOM => read_custom(reader)?,
        LIST => CqlType::List { element: Arc::new(nested(reader)?), frozen: false },
        SET => CqlType::Set { element: Arc::new(nested(reader)?), frozen: false },
        MAP => {
            CqlType::Map { key: Arc::new(nested(reader)?), value: Arc::new(nested(reader)?), frozen: false }
        }
        TUPLE => CqlType::Tuple(reader.list(nested)?.into()),
        USER_DEFINED => {
            let definition = UserType {
                keyspace: reader.string()?,
                name: reader.string()?,
                fields: reader.list(|reader| Ok((reader.string()?, nested(reader)?)))?,
            };
            CqlType::UserDefined { definition: Arc::new(definition), frozen: false }
        }
        code => simple_type(code).ok_or(ProtocolError::UnknownTypeOption { code })?,
    })
}

fn read_custom(reader: &mut Reader) -> Result<CqlType, ProtocolError> {
    let class = reader.string()?;
    // Each level of nesting is a parenthesis, so this bounds the parser's recursion too.
    if class.bytes().filter(|byte| *byte == b'(').count() > DEPTH_MAX {
        return Err(ProtocolError::TypeTooDeep { depth_max: DEPTH_MAX });
    }
    CqlType::from_marshal(&class).map_err(|_| ProtocolError::UnknownCustomType { class })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(cql_type: &CqlType, version: Version) -> BytesMut {
        let mut out = BytesMut::new();
        put_type(&mut out, cql_type, version);
        out
    }

    fn vector_of_floats() -> CqlType {
        CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 3 }
    }

    #[test]
    fn a_vector_is_a_custom_type_spelled_as_by_cassandra() {
        let class =
            "org.apache.cassandra.db.marshal.VectorType(org.apache.cassandra.db.marshal.FloatType , 3)";
        for version in Version::ALL {
            let bytes = bytes_of(&vector_of_floats(), version);
            assert_eq!(bytes[..2], [0, 0]);
            assert_eq!(&bytes[4..], class.as_bytes());
        }
    }

    #[test]
    fn a_duration_has_a_code_from_version_5_on() {
        assert_eq!(&bytes_of(&CqlType::Duration, Version::V5)[..], [0, 0x15]);
        let older = bytes_of(&CqlType::Duration, Version::V4);
        assert_eq!(&older[4..], b"org.apache.cassandra.db.marshal.DurationType");
    }

    #[test]
    fn types_of_version_4_are_custom_in_version_3() {
        for cql_type in [CqlType::Date, CqlType::Time, CqlType::Smallint, CqlType::Tinyint] {
            assert_eq!(bytes_of(&cql_type, Version::V4).len(), 2);
            assert_eq!(bytes_of(&cql_type, Version::V3)[..2], [0, 0]);
        }
    }

    #[test]
    fn a_list_of_vectors_holds_a_custom_type() {
        let list = CqlType::List { element: Arc::new(vector_of_floats()), frozen: false };
        let bytes = bytes_of(&list, Version::V4).freeze();
        assert_eq!(bytes[..4], [0, 0x20, 0, 0]);
        assert_eq!(read_type(&mut Reader::new(bytes)), Ok(list));
    }

    #[test]
    fn endless_nesting_is_refused() {
        let deep = bytes::Bytes::from([0, 0x20].repeat(100_000));
        assert_eq!(
            read_type(&mut Reader::new(deep)),
            Err(ProtocolError::TypeTooDeep { depth_max: DEPTH_MAX })
        );
    }
}
