//! Integers of one to nine bytes, small ones short.
//!
//! The count of leading one bits in the first byte says how many bytes follow; the remaining bits
//! of the first byte are the most significant ones of the value:
//!
//! ```text
//!   0xxxxxxx                      7 bits
//!   10xxxxxx xxxxxxxx             14 bits
//!   110xxxxx xxxxxxxx xxxxxxxx    21 bits
//!   …
//!   11111111 and 8 bytes          64 bits
//! ```
//!
//! Signed values are folded first (0, -1, 1, -2, … become 0, 1, 2, 3, …), so that small negative
//! ones stay short. Cassandra uses this form in its table files, in durations and in vectors.

use crate::cursor::{Cursor, EndOfInput};

/// A first byte below this is all there is, and the value.
pub const ONE_BYTE_END: u8 = 0x80;

/// The longest encoding.
pub const BYTES_MAX: usize = 9;

/// How many bytes `value` takes.
pub const fn size(value: u64) -> usize {
    // The or-ed one makes zero count as one bit.
    let bits = 64 - (value | 1).leading_zeros() as usize;
    if bits > 56 { BYTES_MAX } else { bits.div_ceil(7) }
}

/// How many bytes the signed `value` takes.
pub const fn size_signed(value: i64) -> usize {
    size(fold(value))
}

/// Appends `value`.
#[inline]
pub fn write_unsigned(value: u64, out: &mut Vec<u8>) {
    if value < 0x80 {
        out.push(value as u8);
    } else {
        write_long(value, out);
    }
}

fn write_long(value: u64, out: &mut Vec<u8>) {
    let bytes = size(value);
    if bytes == BYTES_MAX {
        out.push(0xff);
        out.extend_from_slice(&value.to_be_bytes());
    } else {
        let shifted = value << (8 * (8 - bytes));
        let prefix = !(u64::MAX >> (bytes - 1));
        out.extend_from_slice(&(shifted | prefix).to_be_bytes()[..bytes]);
    }
}

/// Appends the signed `value`.
pub fn write_signed(value: i64, out: &mut Vec<u8>) {
    write_unsigned(fold(value), out);
}

/// Takes an unsigned value off the front of `input`.
///
/// # Errors
/// The input ends inside the value.
#[inline]
pub fn read_unsigned(input: &mut Cursor<'_>) -> Result<u64, EndOfInput> {
    let first = input.u8()?;
    if first < ONE_BYTE_END { Ok(u64::from(first)) } else { read_long(first, input) }
}

/// Reads what follows a first byte that is not all.
fn read_long(first: u8, input: &mut Cursor<'_>) -> Result<u64, EndOfInput> {
    let extra = first.leading_ones() as usize;
    // Fewer than eight extra bytes leave some bits of the first byte to the value.
    let value = if extra < 8 { u64::from(first & (0xff >> extra)) } else { 0 };
    if let Some(next) = input.rest().first_chunk::<8>() {
        input.skip(extra)?;
        let (kept_bits, rest) = (8 * extra as u32, u64::from_be_bytes(*next));
        return Ok(value.checked_shl(kept_bits).unwrap_or(0) | rest >> (64 - kept_bits));
    }
    Ok(input.take(extra)?.iter().fold(value, |value, &byte| value << 8 | u64::from(byte)))
}

/// Takes a signed value off the front of `input`.
///
/// # Errors
/// The input ends inside the value.
pub fn read_signed(input: &mut Cursor<'_>) -> Result<i64, EndOfInput> {
    read_unsigned(input).map(unfold)
}

/// 0, -1, 1, -2 to 0, 1, 2, 3.
const fn fold(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`fold`].
const fn unfold(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: u64, expected: &[u8]) {
        let mut out = Vec::new();
        write_unsigned(value, &mut out);
        assert_eq!(out, expected, "{value}");
        assert_eq!(size(value), expected.len());
        let mut input = Cursor::new(&out);
        assert_eq!(read_unsigned(&mut input), Ok(value));
        assert!(input.is_empty());
    }

    #[test]
    fn length_follows_the_value() {
        check(0, &[0]);
        check(127, &[0x7f]);
        check(128, &[0x80, 0x80]);
        check(16_383, &[0xbf, 0xff]);
        check(16_384, &[0xc0, 0x40, 0]);
        check((1 << 49) - 1, &[0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        check(1 << 49, &[0xfe, 2, 0, 0, 0, 0, 0, 0]);
        check((1 << 56) - 1, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        check(1 << 56, &[0xff, 1, 0, 0, 0, 0, 0, 0, 0]);
        check(u64::MAX, &[0xff; 9]);
    }

    #[test]
    fn signed_values_round_trip() {
        for value in [0, -1, 1, 63, -64, 64, i64::MAX, i64::MIN, 1 << 40, -(1 << 40)] {
            let mut out = Vec::new();
            write_signed(value, &mut out);
            assert_eq!(out.len(), size_signed(value));
            assert_eq!(read_signed(&mut Cursor::new(&out)), Ok(value));
        }
    }

    #[test]
    fn every_bit_length_round_trips() {
        for bits in 0..64 {
            for value in [1u64 << bits, (1u64 << bits) - 1, (1u64 << bits) + 1] {
                let mut out = Vec::new();
                write_unsigned(value, &mut out);
                assert_eq!(out.len(), size(value));
                assert_eq!(read_unsigned(&mut Cursor::new(&out)), Ok(value));
            }
        }
    }

    #[test]
    fn cut_value_is_an_error() {
        let mut out = Vec::new();
        write_unsigned(u64::MAX, &mut out);
        for cut in 0..out.len() {
            assert!(read_unsigned(&mut Cursor::new(&out[..cut])).is_err());
        }
    }
}
