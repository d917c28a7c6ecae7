//! `varint`: a two's complement, big-endian integer of any length.

use crate::{TypeError, digits};
use num_bigint::BigInt;
use std::cmp::Ordering;

/// The order of two encoded integers; superfluous leading bytes do not count, empty sorts first.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (Some(&a_first), Some(&b_first)) = (a.first(), b.first()) else {
        return a.len().cmp(&b.len());
    };
    let (a_negative, b_negative) = (a_first >= 0x80, b_first >= 0x80);
    if a_negative != b_negative {
        return b_negative.cmp(&a_negative);
    }
    let (a, b) = (significant(a), significant(b));
    let lengths = if a_negative { b.len().cmp(&a.len()) } else { a.len().cmp(&b.len()) };
    lengths.then_with(|| a.cmp(b))
}

/// The shortest encoding of the same integer, a slice of `value`.
pub(crate) fn significant(value: &[u8]) -> &[u8] {
    let mut rest = value;
    while let [first @ (0 | 0xff), second, ..] = rest
        && first >> 7 == second >> 7
    {
        rest = &rest[1..];
    }
    rest
}

/// Sign-extends at most eight bytes; of more, the last eight count.
pub(crate) fn widen(bytes: &[u8]) -> i64 {
    let sign = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(sign, |value, byte| value << 8 | i64::from(*byte))
}

/// Decodes; the empty value is no number.
pub fn decode(value: &[u8]) -> Option<BigInt> {
    (!value.is_empty()).then(|| BigInt::from_signed_bytes_be(value))
}

/// The shortest encoding.
pub fn encode(value: &BigInt) -> Vec<u8> {
    value.to_signed_bytes_be()
}

/// Reads an optional sign and decimal digits.
///
/// # Errors
/// The text is anything else, or too long (see [`crate::digits`]).
pub fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    digits::check_literal(text)?;
    let refused = || TypeError::text(stdx::brief!("unable to make int from '{text}'"));
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused());
    }
    let magnitude = digits::check_digits(unsigned)?.parse::<BigInt>().map_err(|_| refused())?;
    Ok(encode(&if text.starts_with('-') { -magnitude } else { magnitude }))
}

/// Decimal digits; the empty value is the empty text.
pub fn format(value: &[u8]) -> String {
    match value.len() {
        0 => String::new(),
        1..=8 => widen(value).to_string(),
        _ => BigInt::from_signed_bytes_be(value).to_string(),
    }
}
