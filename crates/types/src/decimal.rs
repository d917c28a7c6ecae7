//! `decimal`: a scale of four bytes, then an unscaled [`crate::varint`]; the value is
//! unscaled × 10^-scale.
//!
//! Scales come from anybody and reach ±2^31, so nothing here ever aligns two scales by
//! multiplying: numbers are compared and formatted by their digits.

use crate::{TypeError, varint};
use bigdecimal::BigDecimal;
use num_bigint::{BigInt, Sign};
use num_traits::Zero;
use std::cmp::Ordering;

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
    if let (Some((a_scale, a_unscaled)), Some((b_scale, b_unscaled))) =
        (a.split_first_chunk::<4>(), b.split_first_chunk::<4>())
        && a_scale == b_scale
        && !a_unscaled.is_empty()
        && !b_unscaled.is_empty()
    {
        return varint::compare(a_unscaled, b_unscaled);
    }
    match (Digits::of(a), Digits::of(b)) {
        (Some(a), Some(b)) => compare_digits(&a, &b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

fn compare_digits(a: &Digits, b: &Digits) -> Ordering {
    let sign = |x: &Digits| match (x.digits.is_empty(), x.negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    let magnitudes = || {
        a.exponent().cmp(&b.exponent()).then_with(|| {
            let length = a.digits.len().max(b.digits.len());
            let padded = |digits: &[u8], i: usize| digits.get(i).copied().unwrap_or(b'0');
            (0..length)
                .map(|i| padded(&a.digits, i).cmp(&padded(&b.digits, i)))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        })
    };
    sign(a).cmp(&sign(b)).then_with(|| match sign(a) {
        0 => Ordering::Equal,
        1 => magnitudes(),
        _ => magnitudes().reverse(),
    })
}

/// Decodes; an empty or cut value is no number.
pub fn decode(value: &[u8]) -> Option<BigDecimal> {
    let (scale, unscaled) = value.split_first_chunk::<4>()?;
    let unscaled = BigInt::from_signed_bytes_be(unscaled);
    Some(BigDecimal::new(unscaled, i64::from(i32::from_be_bytes(*scale))))
}

/// Encodes, keeping the scale.
///
/// # Errors
/// The scale is beyond 32 bits.
pub fn encode(value: &BigDecimal) -> Result<Vec<u8>, TypeError> {
    let (unscaled, scale) = value.as_bigint_and_exponent();
    let scale = i32::try_from(scale)
        .map_err(|_| TypeError::text(format!("scale {scale} of a decimal is out of range")))?;
    Ok(encode_parts(&unscaled, scale))
}

fn encode_parts(unscaled: &BigInt, scale: i32) -> Vec<u8> {
    let mut out = scale.to_be_bytes().to_vec();
    out.extend_from_slice(&varint::encode(unscaled));
    out
}

/// Reads a sign, digits with an optional point, and an optional exponent. The scale is the number
/// of digits behind the point less the exponent, as Java's `BigDecimal` has it.
///
/// # Errors
/// The text is anything else, or the scale is beyond 32 bits.
pub fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    let refused = || TypeError::text(format!("unable to make BigDecimal from '{text}'"));
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
    let magnitude = digits.parse::<BigInt>().map_err(|_| refused())?;
    let unscaled = if negative { -magnitude } else { magnitude };
    Ok(encode_parts(&unscaled, scale))
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

/// Is the encoded decimal zero, whatever its scale?
pub fn is_zero(value: &[u8]) -> bool {
    decode(value).is_some_and(|value| value.is_zero())
}
