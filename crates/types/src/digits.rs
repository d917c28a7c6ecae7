//! How long a `varint` or `decimal` may be.
//!
//! Numbers are kept in base 256 and written in base 10, and to turn one into the other takes the square of its
//! length: a literal of eight million digits kept a thread for twenty seconds. What every such number passes is
//! bounded instead: the bytes of a value ([`CqlType::validate`](crate::CqlType::validate)) and the digits of a
//! literal. Within the bounds to read, to write, to multiply or to divide takes less than a millisecond. The scale of a
//! `decimal` costs nothing and has no bound but its 32 bits: 1e999999999 is a short number, as long as nobody asks for
//! its digits.

use crate::TypeError;

/// Most digits of a `varint`, or of a `decimal` without regard to its point; as many as Cassandra's arithmetic of
/// decimals gives.
pub const DIGITS_MAX: usize = 10_000;

/// The bytes that so many nines take: 10,000 × log2(10) bits and one for the sign.
pub const NUMBER_BYTES_MAX: usize = 4_153;

/// A literal of more bytes is not looked at: leading zeros and all, no number that may be is so long.
const LITERAL_BYTES_MAX: usize = 64 << 10;

/// Is that a length for the literal of a number?
///
/// # Errors
/// It is too long.
pub(crate) fn check_literal(text: &str) -> Result<(), TypeError> {
    if text.len() > LITERAL_BYTES_MAX {
        return Err(TypeError::TooManyDigits);
    }
    Ok(())
}

/// Is that a length for the encoding of an integer?
///
/// # Errors
/// It is too long.
pub(crate) fn check_bytes(integer: &[u8]) -> Result<(), TypeError> {
    if integer.len() > NUMBER_BYTES_MAX {
        return Err(TypeError::TooManyDigits);
    }
    Ok(())
}

/// Decimal digits without the zeros before them, if there are not too many.
///
/// # Errors
/// There are.
pub(crate) fn check_digits(digits: &str) -> Result<&str, TypeError> {
    let significant = digits.trim_start_matches('0');
    if significant.len() > DIGITS_MAX {
        return Err(TypeError::TooManyDigits);
    }
    // A zero is one digit.
    Ok(if significant.is_empty() { &digits[..1.min(digits.len())] } else { significant })
}
