//! `float` and `double` as text, as Java shows and reads them.

use crate::TypeError;
use crate::float_digits::{Digits, of_double, of_float};

/// A `double` value: plain from 0.001 to below ten million, else scientific; always with a digit
/// behind the point. The empty value is the empty text.
pub fn format_double(value: &[u8]) -> String {
    match <[u8; 8]>::try_from(value).map(f64::from_be_bytes) {
        Ok(number) => format(number, || of_double(number.abs())),
        Err(_) => String::new(),
    }
}

/// A `float` value, as [`format_double`].
pub fn format_float(value: &[u8]) -> String {
    match <[u8; 4]>::try_from(value).map(f32::from_be_bytes) {
        Ok(number) => format(number.into(), || of_float(number.abs())),
        Err(_) => String::new(),
    }
}

fn format(number: f64, digits: impl FnOnce() -> Digits) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    if number.is_infinite() {
        return format!("{sign}Infinity");
    }
    if number == 0.0 {
        return format!("{sign}0.0");
    }
    let Digits { digits, point } = digits();
    let digits = String::from_utf8_lossy(&digits);
    match point {
        1..8 => {
            let whole_length = point as usize;
            let padded = format!("{digits:0<width$}", width = whole_length + 1);
            let (whole, fraction) = padded.split_at(whole_length);
            format!("{sign}{whole}.{fraction}")
        }
        -2..=0 => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let rest = if rest.is_empty() { "0" } else { rest };
            format!("{sign}{first}.{rest}E{}", point - 1)
        }
    }
}

/// Reads a `double`: digits with an optional sign, point and exponent, `NaN` or `Infinity`. A
/// trailing `f` or `d`, which Java allows, is read over; Java's hexadecimal form is refused.
///
/// # Errors
/// The text is anything else.
pub fn parse_double(text: &str) -> Result<[u8; 8], TypeError> {
    let refused = || TypeError::text(stdx::brief!("Unable to make double from '{text}'"));
    let number: f64 = literal(text).and_then(|text| text.parse().ok()).ok_or_else(refused)?;
    Ok(java_bits_of_double(number).to_be_bytes())
}

/// Reads a `float`, as [`parse_double`].
///
/// # Errors
/// The text is anything else.
pub fn parse_float(text: &str) -> Result<[u8; 4], TypeError> {
    let refused = || TypeError::text(stdx::brief!("Unable to make float from '{text}'"));
    let number: f32 = literal(text).and_then(|text| text.parse().ok()).ok_or_else(refused)?;
    Ok(if number.is_nan() { 0x7fc0_0000u32 } else { number.to_bits() }.to_be_bytes())
}

fn java_bits_of_double(number: f64) -> u64 {
    if number.is_nan() { 0x7ff8_0000_0000_0000 } else { number.to_bits() }
}

/// What Java takes for a number and Rust reads the same way.
fn literal(text: &str) -> Option<&str> {
    let text = text.trim_matches(|c| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == "NaN" || unsigned == "Infinity" {
        return Some(text);
    }
    let text = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let is_numeric = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.bytes().all(is_numeric).then_some(text)
}
