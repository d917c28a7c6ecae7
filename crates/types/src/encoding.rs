//! Composing and taking apart values made of values.
//!
//! ```text
//!   list, set   i32 count, then count times [bytes]
//!   map         i32 count, then count times [bytes] key, [bytes] value
//!   tuple, UDT  [bytes] per field; trailing fields may be missing
//!   vector      fixed-length elements side by side; others each behind a vint length
//!
//!   [bytes] is an i32 length and as many bytes; a negative length is null
//! ```

use crate::{CqlType, TypeError};
use stdx::cursor::{Cursor, EndOfInput};
use stdx::vint;

/// Appends one `[bytes]`.
pub fn write_bytes(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        Some(value) => {
            // Values come out of frames of at most 2^31 bytes.
            let length = i32::try_from(value.len()).unwrap_or(i32::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(value);
        }
        None => out.extend_from_slice(&(-1i32).to_be_bytes()),
    }
}

/// A list or set of these elements, or a map of these alternating keys and values with
/// `count` half of their number.
pub fn collection<'a>(count: usize, parts: impl IntoIterator<Item = Option<&'a [u8]>>) -> Vec<u8> {
    let mut out = Vec::new();
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    out.extend_from_slice(&count.to_be_bytes());
    for part in parts {
        write_bytes(part, &mut out);
    }
    out
}

/// A tuple or user-defined type of these fields.
pub fn tuple<'a>(fields: impl IntoIterator<Item = Option<&'a [u8]>>) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        write_bytes(field, &mut out);
    }
    out
}

/// A vector of these elements, each a value of `element`.
pub fn vector<'a>(element: &CqlType, elements: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let fixed = element.fixed_length().is_some();
    let mut out = Vec::new();
    for value in elements {
        if !fixed {
            vint::write_unsigned(value.len() as u64, &mut out);
        }
        out.extend_from_slice(value);
    }
    out
}

/// The parts of a collection value: elements of a list or set, alternating keys and values of a
/// map (`parts_per_entry` 2).
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    input: Cursor<'a>,
    left: u64,
}

impl<'a> Parts<'a> {
    /// Opens a collection value.
    ///
    /// # Errors
    /// There is no count.
    pub fn new(value: &'a [u8], parts_per_entry: u64) -> Result<Self, EndOfInput> {
        let mut input = Cursor::new(value);
        let count = u64::try_from(input.i32()?).unwrap_or(0);
        Ok(Parts { input, left: count * parts_per_entry })
    }

    /// How many parts are promised, read ones not counted. Do not allocate by it: it is the
    /// sender's claim.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Bytes that were not read.
    pub fn rest(&self) -> &'a [u8] {
        self.input.rest()
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Option<&'a [u8]>, EndOfInput>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let part = self.input.cql_bytes();
        if part.is_err() {
            self.left = 0;
        }
        Some(part)
    }
}

/// The fields of a tuple or user-defined type that are there.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    input: Cursor<'a>,
    failed: bool,
}

impl<'a> Fields<'a> {
    /// Opens a tuple value.
    pub fn new(value: &'a [u8]) -> Self {
        Fields { input: Cursor::new(value), failed: false }
    }

    /// Bytes that were not read.
    pub fn rest(&self) -> &'a [u8] {
        self.input.rest()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Option<&'a [u8]>, EndOfInput>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.input.is_empty() {
            return None;
        }
        let field = self.input.cql_bytes();
        self.failed = field.is_err();
        Some(field)
    }
}

/// The elements of a vector value.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    input: Cursor<'a>,
    element_bytes: Option<usize>,
    left: u32,
}

impl<'a> Elements<'a> {
    /// Opens a value of `vector<element, dimension>`.
    pub fn new(element: &CqlType, dimension: u32, value: &'a [u8]) -> Self {
        let element_bytes = element.fixed_length();
        Elements { input: Cursor::new(value), element_bytes, left: dimension }
    }

    /// Bytes that were not read.
    pub fn rest(&self) -> &'a [u8] {
        self.input.rest()
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a [u8], EndOfInput>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let element = match self.element_bytes {
            Some(length) => self.input.take(length),
            None => self.input.vint_bytes(),
        };
        if element.is_err() {
            self.left = 0;
        }
        Some(element)
    }
}

/// Most bytes of a partition key, of each of its columns, and of a clustering column's value: Cassandra writes their
/// lengths in two bytes.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// A partition key of several columns: of each, a 2-byte length, the bytes and a zero byte.
/// A key of one column is that column's bytes, bare.
///
/// # Errors
/// A part is longer than [`KEY_BYTES_MAX`].
pub fn partition_key<'a>(parts: impl ExactSizeIterator<Item = &'a [u8]>) -> Result<Vec<u8>, TypeError> {
    let mut out = Vec::new();
    let bare = parts.len() == 1;
    for part in parts {
        let length = u16::try_from(part.len()).map_err(|_| TypeError::Length {
            expected: "Key length of at most 65535 bytes expected",
            got_bytes: part.len(),
        })?;
        if bare {
            return Ok(part.to_vec());
        }
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(part);
        out.push(0);
    }
    Ok(out)
}

/// Takes a partition key of `part_count` columns apart.
///
/// # Errors
/// The key is cut, or has more or fewer parts.
pub fn partition_key_parts(key: &[u8], part_count: usize) -> Result<Vec<&[u8]>, TypeError> {
    if part_count == 1 {
        return Ok(vec![key]);
    }
    let mut input = Cursor::new(key);
    let mut parts = Vec::new();
    let malformed = |end: EndOfInput| TypeError::Composite { offset: end.offset };
    for _ in 0..part_count {
        let length = input.u16().map_err(malformed)?;
        parts.push(input.take(usize::from(length)).map_err(malformed)?);
        input.skip(1).map_err(malformed)?;
    }
    if input.is_empty() { Ok(parts) } else { Err(TypeError::Composite { offset: input.position() }) }
}

impl CqlType {
    /// The length of every non-null value, where Cassandra treats the type as fixed-length: such
    /// values stand in table files and vectors without a length before them. (`tinyint`,
    /// `smallint`, `date`, `time` and `inet` are not treated so, although most could be.)
    pub fn fixed_length(&self) -> Option<usize> {
        match self {
            CqlType::Empty => Some(0),
            CqlType::Boolean => Some(1),
            CqlType::Int | CqlType::Float => Some(4),
            CqlType::Bigint | CqlType::Timestamp | CqlType::Double => Some(8),
            CqlType::Uuid | CqlType::Timeuuid => Some(16),
            CqlType::Vector { element, dimension } => {
                element.fixed_length()?.checked_mul(usize::try_from(*dimension).ok()?)
            }
            _ => None,
        }
    }

    /// Is a value of no bytes a value that means nothing (`int`) rather than one that means
    /// something (`text`, `blob`) or is refused (`tinyint`)?
    pub fn empty_is_meaningless(&self) -> bool {
        matches!(
            self,
            CqlType::Bigint
                | CqlType::Boolean
                | CqlType::Counter
                | CqlType::Decimal
                | CqlType::Double
                | CqlType::Float
                | CqlType::Inet
                | CqlType::Int
                | CqlType::Timestamp
                | CqlType::Timeuuid
                | CqlType::Uuid
                | CqlType::Varint
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_key_of_two_columns_comes_apart() {
        let key = partition_key([&b"ab"[..], b""].into_iter()).expect("short parts");
        assert_eq!(key, [0, 2, b'a', b'b', 0, 0, 0, 0]);
        assert_eq!(partition_key_parts(&key, 2).expect("well formed"), [&b"ab"[..], b""]);
        assert!(partition_key_parts(&key, 3).is_err());
        assert!(partition_key_parts(&key[..7], 2).is_err());
    }

    #[test]
    fn partition_key_of_one_column_is_bare() {
        let key = partition_key([&b"ab"[..]].into_iter()).expect("short part");
        assert_eq!(key, b"ab");
        assert_eq!(partition_key_parts(&key, 1).expect("bare"), [b"ab"]);
    }

    #[test]
    fn collection_with_an_absurd_count_ends_at_once() {
        let mut parts = Parts::new(&[0x7f, 0xff, 0xff, 0xff, 0, 0], 2).expect("a count");
        assert!(matches!(parts.next(), Some(Err(_))));
        assert!(parts.next().is_none());
    }
}
