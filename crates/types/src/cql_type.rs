//! The type of a column, a field or an element.

use std::sync::Arc;

/// A CQL data type.
///
/// `frozen` says whether a collection or user type is one indivisible value (`frozen<…>`, also
/// everything nested in another type) or is kept cell by cell ("multi-cell"). Tuples and vectors
/// are always frozen. `varchar` is `Text`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CqlType {
    /// `ascii`: text of 7-bit characters.
    Ascii,
    /// `bigint`: signed, 8 bytes.
    Bigint,
    /// `blob`: any bytes.
    Blob,
    /// `boolean`: 1 byte, zero or not.
    Boolean,
    /// `counter`: a sum of which each node that counts has a share; in table files a counter context.
    Counter,
    /// `date`: days, unsigned 4 bytes, the epoch at 2^31.
    Date,
    /// `decimal`: 4-byte scale, then an unscaled `varint`.
    Decimal,
    /// `double`: IEEE 754, 8 bytes.
    Double,
    /// `duration`: months, days, nanoseconds as three vints.
    Duration,
    /// `empty`: the type of an absent value (marshal `EmptyType`), only in system tables.
    Empty,
    /// `float`: IEEE 754, 4 bytes.
    Float,
    /// `inet`: an address of 4 or 16 bytes.
    Inet,
    /// `int`: signed, 4 bytes.
    Int,
    /// `smallint`: signed, 2 bytes.
    Smallint,
    /// `text` (also `varchar`): UTF-8.
    Text,
    /// `time`: nanoseconds since midnight, 8 bytes.
    Time,
    /// `timestamp`: milliseconds since 1970, signed 8 bytes.
    Timestamp,
    /// `timeuuid`: a version 1 UUID, ordered by its time.
    Timeuuid,
    /// `tinyint`: signed, 1 byte.
    Tinyint,
    /// `uuid`: 16 bytes; version 1 sorts by time.
    Uuid,
    /// `varint`: two's complement big-endian integer of any length.
    Varint,
    /// `list<element>`.
    List {
        /// Type of the elements.
        element: Arc<CqlType>,
        /// One indivisible value.
        frozen: bool,
    },
    /// `set<element>`.
    Set {
        /// Type of the elements.
        element: Arc<CqlType>,
        /// One indivisible value.
        frozen: bool,
    },
    /// `map<key, value>`.
    Map {
        /// Type of the keys.
        key: Arc<CqlType>,
        /// Type of the values.
        value: Arc<CqlType>,
        /// One indivisible value.
        frozen: bool,
    },
    /// `tuple<…>`, always frozen.
    Tuple(Arc<[CqlType]>),
    /// A user-defined type.
    UserDefined {
        /// Its definition.
        definition: Arc<UserType>,
        /// One indivisible value.
        frozen: bool,
    },
    /// `vector<element, dimension>`, always frozen.
    Vector {
        /// Type of the elements.
        element: Arc<CqlType>,
        /// How many elements, at least one.
        dimension: u32,
    },
}

/// The definition of a user-defined type (`CREATE TYPE`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserType {
    /// Keyspace it lives in.
    pub keyspace: String,
    /// Its name, unquoted.
    pub name: String,
    /// Fields in declaration order: name and type.
    pub fields: Vec<(String, CqlType)>,
}

impl CqlType {
    /// Is a value of this type kept as several cells with paths (a non-frozen collection or user type)?
    pub fn is_multi_cell(&self) -> bool {
        match self {
            CqlType::List { frozen, .. }
            | CqlType::Set { frozen, .. }
            | CqlType::Map { frozen, .. }
            | CqlType::UserDefined { frozen, .. } => !frozen,
            _ => false,
        }
    }

    /// Is a value of this type kept as cells with paths in memory, in the log, and on the way between nodes? Those of
    /// several cells are, and a counter, of which each node that counts has a cell: in table files it is one.
    pub fn has_paths(&self) -> bool {
        self.is_multi_cell() || *self == CqlType::Counter
    }
}
