//! `decimal`: a scale of four bytes, then an unscaled [`crate::varint`]; the value is
//! unscaled × 10^-scale.
//!
//! Scales come from anybody and reach ±2^31, so nothing here ever writes out the zeros that a scale stands for, but
//! those of a number that is compared with one of about its size.

use crate::{TypeError, digits, varint};
use bigdecimal::BigDecimal;
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use std::ops::Range;

/// A decimal as its sign, its digits and the place of its point.
pub(crate) struct Digits {
    /// Below zero.
    pub(crate) negative: bool,
    /// Decimal digits as ASCII without leading zeros; empty for zero.
    pub(crate) digits: Vec<u8>,
    /// How many of the digits stand behind the point; negative adds zeros before it.
    pub(crate) scale: i32,
}

impl Digits {
    /// Takes an encoded decimal apart; `None` if it is empty or cut.
    pub(crate) fn of(value: &[u8]) -> Option<Digits> {
        let (scale, unscaled) = value.split_first_chunk::<4>()?;
        let scale = i32::from_be_bytes(*scale);
        let unscaled = varint::significant(unscaled);
        let (negative, text) = if unscaled.len() <= 8 {
            let small = varint::widen(unscaled);
            (small < 0, small.unsigned_abs().to_string())
        } else {
            let big = BigInt::from_signed_bytes_be(unscaled);
            (big.sign() == Sign::Minus, big.magnitude().to_string())
        };
        let digits = if text == "0" { Vec::new() } else { text.into_bytes() };
        Some(Digits { negative, digits, scale })
    }

    /// Power of ten of the first digit, plus one.
    pub(crate) fn exponent(&self) -> i64 {
        self.digits.len() as i64 - i64::from(self.scale)
    }
}

/// The numeric order of two encoded decimals: 1.0 and 1.00 are equal. Empty sorts first.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    match (Parts::of(a), Parts::of(b)) {
        (Some(a), Some(b)) => a.compare(&b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// An encoded decimal as it lies there.
struct Parts<'a> {
    scale: i64,
    /// The shortest encoding of the integer.
    unscaled: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(value: &'a [u8]) -> Option<Self> {
        let (scale, unscaled) = value.split_first_chunk::<4>()?;
        let unscaled = if unscaled.is_empty() { &[0] } else { varint::significant(unscaled) };
        Some(Parts { scale: i32::from_be_bytes(*scale).into(), unscaled })
    }

    fn compare(&self, other: &Self) -> Ordering {
        if self.scale == other.scale {
            return varint::compare(self.unscaled, other.unscaled);
        }
        let sign = self.sign();
        let signs = sign.cmp(&other.sign());
        if signs.is_ne() || sign == 0 {
            return signs;
        }
        let (a, b) = (self.powers_of_ten(), other.powers_of_ten());
        if a.end < b.start {
            0.cmp(&sign)
        } else if b.end < a.start {
            sign.cmp(&0)
        } else {
            self.compare_aligned(other)
        }
    }

    fn sign(&self) -> i32 {
        match self.unscaled {
            [0] => 0,
            [first, ..] if *first >= 0x80 => -1,
            _ => 1,
        }
    }

    /// The magnitude is at least ten to the power of the first, and at most to that of the last: estimates of the
    /// number of bits, so that numbers of different size are told apart unread.
    fn powers_of_ten(&self) -> Range<i64> {
        // Of a negative number these are the bits of what is one nearer to zero.
        let flip = if self.sign() < 0 { 0xff } else { 0 };
        let leading_zeros = (self.unscaled[0] ^ flip).leading_zeros();
        let bits = self.unscaled.len() as i64 * 8 - i64::from(leading_zeros);
        // log10(2) is 0.30102999…
        (bits - 1) * 30_102 / 100_000 - 1 - self.scale..(bits + 1) * 30_103 / 100_000 + 1 - self.scale
    }

    /// Writes out the zeros of the one that has fewer digits behind the point. Both are of about one size, so that
    /// these are not many more than the other has digits.
    fn compare_aligned(&self, other: &Self) -> Ordering {
        if self.scale > other.scale {
            return other.compare_aligned(self).reverse();
        }
        let zeros = (other.scale - self.scale) as u32;
        if self.unscaled.len() <= 8
            && other.unscaled.len() <= 8
            && let Some(power) = 10i128.checked_pow(zeros)
            && let Some(aligned) = i128::from(varint::widen(self.unscaled)).checked_mul(power)
        {
            return aligned.cmp(&varint::widen(other.unscaled).into());
        }
        let aligned = BigInt::from_signed_bytes_be(self.unscaled) * BigInt::from(10).pow(zeros);
        aligned.cmp(&BigInt::from_signed_bytes_be(other.unscaled))
    }
}

/// Decodes; an empty or cut value is no number.
pub fn decode(value: &[u8]) -> Option<BigDecimal> {
    let (unscaled, scale) = to_parts(value)?;
    Some(BigDecimal::new(unscaled, scale.into()))
}

/// Takes an encoded decimal apart into its unscaled integer and its scale; an empty or cut value is no number.
pub fn to_parts(value: &[u8]) -> Option<(BigInt, i32)> {
    let (scale, unscaled) = value.split_first_chunk::<4>()?;
    Some((BigInt::from_signed_bytes_be(unscaled), i32::from_be_bytes(*scale)))
}

/// Encodes unscaled × 10^-scale.
pub fn from_parts(unscaled: &BigInt, scale: i32) -> Vec<u8> {
    let mut out = scale.to_be_bytes().to_vec();
    out.extend_from_slice(&varint::encode(unscaled));
    out
}

/// Encodes, keeping the scale.
///
/// # Errors
/// The scale is beyond 32 bits.
pub fn encode(value: &BigDecimal) -> Result<Vec<u8>, TypeError> {
    let (unscaled, scale) = value.as_bigint_and_exponent();
    let scale = i32::try_from(scale)
        .map_err(|_| TypeError::text(stdx::brief!("scale {scale} of a decimal is out of range")))?;
    Ok(from_parts(&unscaled, scale))
}

/// Reads a sign, digits with an optional point, and an optional exponent. The scale is the number
/// of digits behind the point less the exponent, as Java's `BigDecimal` has it.
///
/// # Errors
/// The text is anything else or too long (see [`crate::digits`]), or the scale is beyond 32 bits.
pub fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    digits::check_literal(text)?;
    let refused = || TypeError::text(stdx::brief!("unable to make BigDecimal from '{text}'"));
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent).ok_or_else(refused)?),
        None => (text, 0),
    };
    let (negative, unsigned) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused());
    }
    let scale = i32::try_from(fraction.len() as i64 - exponent).map_err(|_| refused())?;
    let magnitude = digits::check_digits(&digits)?.parse::<BigInt>().map_err(|_| refused())?;
    let unscaled = if negative { -magnitude } else { magnitude };
    Ok(from_parts(&unscaled, scale))
}

/// At most ten digits behind an optional sign.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = match digits.trim_start_matches('0') {
        "" if !digits.is_empty() => "0",
        significant => significant,
    };
    if digits.len() > 10 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let exponent = digits.parse::<i64>().ok()?;
    let exponent = if text.starts_with('-') { -exponent } else { exponent };
    i32::try_from(exponent).ok().map(i64::from)
}

/// As Java prints a `BigDecimal`: plain, or in scientific notation if the scale is negative or
/// more than six zeros would follow the point. The empty value is the empty text.
pub fn format(value: &[u8]) -> String {
    let Some(mut parts) = Digits::of(value) else {
        return String::new();
    };
    if parts.digits.is_empty() {
        parts.digits.push(b'0');
        parts.negative = false;
    }
    let sign = if parts.negative { "-" } else { "" };
    let digits = String::from_utf8_lossy(&parts.digits);
    let adjusted = parts.exponent() - 1;
    let scale = usize::try_from(parts.scale);
    match scale {
        Ok(0) => format!("{sign}{digits}"),
        Ok(scale) if adjusted >= -6 => {
            // At most six zeros are added, so that the width is bounded.
            let padded = format!("{digits:0>width$}", width = scale + 1);
            let (whole, fraction) = padded.split_at(padded.len() - scale);
            format!("{sign}{whole}.{fraction}")
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            match adjusted {
                0 => format!("{sign}{first}{point}{rest}"),
                _ => format!("{sign}{first}{point}{rest}E{adjusted:+}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CqlType;
    use crate::digits::{DIGITS_MAX, NUMBER_BYTES_MAX};

    fn decimal(text: &str) -> Vec<u8> {
        parse(text).expect("a decimal")
    }

    #[test]
    fn numbers_far_apart_are_compared_unwritten() {
        let ordered = [
            "-1e2147483647",
            "-2e999999999",
            "-1.5e999999999",
            "-1",
            "-1e-999999999",
            "0e2147483647",
            "1e-2147483647",
            "1e-999999999",
            "1",
            "999999999999999999999e999999978",
            "1e999999999",
            "1.00000000000000000000001e999999999",
            "1e2147483647",
        ];
        for (at, text) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                assert_eq!(compare(&decimal(text), &decimal(other)), at.cmp(&other_at), "{text}, {other}");
            }
        }
        assert_eq!(compare(&decimal("0e-2147483647"), &decimal("0")), Ordering::Equal);
        assert_eq!(compare(&decimal("10000000000e999999989"), &decimal("1e999999999")), Ordering::Equal);
    }

    #[test]
    fn long_numbers_of_one_size_are_compared_to_their_last_digit() {
        let (long, longer) = ("7".repeat(9_000), "7".repeat(9_000) + "0");
        let greater = "7".repeat(9_000) + "1";
        for (sign, order) in [("", Ordering::Less), ("-", Ordering::Greater)] {
            let [a, b, c] = [&long, &longer, &greater].map(|digits| format!("{sign}{digits}"));
            let (a, b, c) = (decimal(&a), decimal(&format!("{b}e-1")), decimal(&format!("{c}e-1")));
            assert_eq!(compare(&a, &b), Ordering::Equal);
            assert_eq!(compare(&a, &c), order);
            assert_eq!(compare(&c, &a), order.reverse());
        }
    }

    #[test]
    fn numbers_have_ten_thousand_digits_and_no_more() {
        let longest = "9".repeat(DIGITS_MAX);
        let too_long = "1".repeat(DIGITS_MAX + 1);
        for (cql_type, scale_bytes) in [(CqlType::Varint, 0), (CqlType::Decimal, 4)] {
            for sign in ["", "-", "+"] {
                let value = cql_type.from_text(&format!("{sign}{longest}"), 0).expect("digits");
                assert_eq!(value.len(), NUMBER_BYTES_MAX + scale_bytes);
                cql_type.validate(&value).expect("as long as may be");
                assert_eq!(cql_type.to_text(&value), format!("{sign}{longest}").trim_start_matches('+'));
                let refused = cql_type.from_text(&format!("{sign}{too_long}"), 0);
                assert_eq!(refused, Err(TypeError::TooManyDigits));
            }
            let bytes = vec![1; NUMBER_BYTES_MAX + scale_bytes + 1];
            assert_eq!(cql_type.validate(&bytes), Err(TypeError::TooManyDigits));
            let zeros = "0".repeat(2 * DIGITS_MAX);
            assert_eq!(cql_type.to_text(&cql_type.from_text(&zeros, 0).expect("zero")), "0");
            let one = cql_type.from_text(&format!("{zeros}1"), 0).expect("one");
            assert_eq!(cql_type.to_text(&one), "1");
        }
        let small = format!("0.{}1", "0".repeat(2 * DIGITS_MAX));
        assert_eq!(format(&decimal(&small)), "1E-20001");
        assert_eq!(parse(&format!("1.{too_long}")), Err(TypeError::TooManyDigits));
    }
}
