//! `blob` as hexadecimal text.

use crate::TypeError;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Lower-case hexadecimal digits, without `0x`.
pub fn format(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len() * 2);
    for byte in value {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
    text
}

/// Reads hexadecimal digits of either case, without `0x`.
///
/// # Errors
/// Their number is odd, or there is something else.
pub fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    let refused = || TypeError::text(format!("cannot parse '{text}' as hex bytes"));
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(refused());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let byte = |pair: &[u8; 2]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    pairs.iter().map(|pair| byte(pair).ok_or_else(refused)).collect()
}
