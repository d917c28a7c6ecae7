//! Reading numbers and slices off the front of bytes that may end too soon.

use std::error::Error;
use std::fmt;

/// A position in bytes that somebody else wrote. Every read is checked; none allocates.
///
/// A failed read leaves the position where it was.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    /// What is still to be read.
    rest: &'a [u8],
    /// Length of all the bytes, to tell the position.
    total_bytes: usize,
}

/// The bytes ended before what they promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndOfInput {
    /// Position of the read that failed.
    pub offset: usize,
    /// How many bytes it asked for.
    pub wanted_bytes: usize,
    /// How many there were.
    pub left_bytes: usize,
}

impl fmt::Display for EndOfInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, wanted_bytes, left_bytes } = self;
        write!(f, "wanted {wanted_bytes} bytes at offset {offset}, only {left_bytes} are left")
    }
}

impl Error for EndOfInput {}

impl<'a> Cursor<'a> {
    /// Stands before the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes, total_bytes: bytes.len() }
    }

    /// How many bytes have been read.
    #[inline]
    pub fn position(&self) -> usize {
        self.total_bytes - self.rest.len()
    }

    /// How many bytes are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Has everything been read?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left, without reading it.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], EndOfInput> {
        let Some((head, rest)) = self.rest.split_at_checked(count) else {
            return Err(self.end_of_input(count));
        };
        self.rest = rest;
        Ok(head)
    }

    /// Passes over `count` bytes.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), EndOfInput> {
        self.take(count).map(|_| ())
    }

    /// The next `N` bytes as an array.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], EndOfInput> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.end_of_input(N));
        };
        self.rest = rest;
        Ok(*head)
    }

    /// One byte.
    ///
    /// # Errors
    /// Nothing is left.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, EndOfInput> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes, big-endian.
    ///
    /// # Errors
    /// Too few are left.
    pub fn u16(&mut self) -> Result<u16, EndOfInput> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes, big-endian.
    ///
    /// # Errors
    /// Too few are left.
    pub fn u32(&mut self) -> Result<u32, EndOfInput> {
        self.array().map(u32::from_be_bytes)
    }

    /// Four bytes, big-endian, signed.
    ///
    /// # Errors
    /// Too few are left.
    pub fn i32(&mut self) -> Result<i32, EndOfInput> {
        self.array().map(i32::from_be_bytes)
    }

    /// Eight bytes, big-endian.
    ///
    /// # Errors
    /// Too few are left.
    pub fn u64(&mut self) -> Result<u64, EndOfInput> {
        self.array().map(u64::from_be_bytes)
    }

    /// Eight bytes, big-endian, signed.
    ///
    /// # Errors
    /// Too few are left.
    pub fn i64(&mut self) -> Result<i64, EndOfInput> {
        self.array().map(i64::from_be_bytes)
    }

    /// An unsigned [vint](crate::vint).
    ///
    /// # Errors
    /// The input ends inside it.
    #[inline]
    pub fn vint(&mut self) -> Result<u64, EndOfInput> {
        let start = *self;
        crate::vint::read_unsigned(self).inspect_err(|_| *self = start)
    }

    /// A signed [vint](crate::vint).
    ///
    /// # Errors
    /// The input ends inside it.
    pub fn vint_signed(&mut self) -> Result<i64, EndOfInput> {
        let start = *self;
        crate::vint::read_signed(self).inspect_err(|_| *self = start)
    }

    /// A slice behind its length as an unsigned vint.
    ///
    /// # Errors
    /// The input ends inside the length or the slice.
    #[inline]
    pub fn vint_bytes(&mut self) -> Result<&'a [u8], EndOfInput> {
        let start = *self;
        let length = self.vint()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.take(length).inspect_err(|_| *self = start)
    }

    /// CQL's `[bytes]`: a slice behind its length as a signed 4-byte integer, `None` when that is
    /// negative.
    ///
    /// # Errors
    /// The input ends inside the length or the slice.
    pub fn cql_bytes(&mut self) -> Result<Option<&'a [u8]>, EndOfInput> {
        let start = *self;
        match usize::try_from(self.i32()?) {
            Ok(length) => self.take(length).inspect_err(|_| *self = start).map(Some),
            Err(_) => Ok(None),
        }
    }

    #[cold]
    fn end_of_input(&self, wanted_bytes: usize) -> EndOfInput {
        EndOfInput { offset: self.position(), wanted_bytes, left_bytes: self.rest.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_big_endian() {
        let mut cursor = Cursor::new(&[1, 0, 2, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(cursor.u8(), Ok(1));
        assert_eq!(cursor.u16(), Ok(2));
        assert_eq!(cursor.u32(), Ok(3));
        assert_eq!(cursor.position(), 7);
        assert_eq!(cursor.i32(), Ok(-1));
        assert!(cursor.is_empty());
    }

    #[test]
    fn failed_read_moves_nothing() {
        let mut cursor = Cursor::new(&[0, 0, 0, 9, 1]);
        let end = cursor.cql_bytes().expect_err("nine bytes are promised");
        assert_eq!(end, EndOfInput { offset: 4, wanted_bytes: 9, left_bytes: 1 });
        assert_eq!(cursor.position(), 0);
        assert_eq!(end.to_string(), "wanted 9 bytes at offset 4, only 1 are left");
    }

    #[test]
    fn negative_length_is_null() {
        let mut cursor = Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 7]);
        assert_eq!(cursor.cql_bytes(), Ok(None));
        assert_eq!(cursor.cql_bytes(), Ok(Some(&[7][..])));
    }

    #[test]
    fn absurd_vint_length_is_refused() {
        let mut cursor = Cursor::new(&[0xff; 9]);
        assert!(cursor.vint_bytes().is_err());
    }
}
