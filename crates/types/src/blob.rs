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

/// What is no digit has this mark, which no digit has.
const NO_DIGIT: u8 = 0x80;

/// The value of each character as a hexadecimal digit.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut character = 0;
    while character < values.len() {
        if let Some(value) = (character as u8 as char).to_digit(16) {
            values[character] = value as u8;
        }
        character += 1;
    }
    values
};

/// Reads hexadecimal digits of either case, without `0x`.
///
/// # Errors
/// Their number is odd, or there is something else.
pub fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    let refused = || TypeError::text(stdx::brief!("cannot parse '{text}' as hex bytes"));
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(refused());
    }
    let mut marks = 0;
    let byte = |pair: &[u8; 2]| {
        let [high, low] = pair.map(|digit| VALUES[usize::from(digit)]);
        marks |= high | low;
        high << 4 | low
    };
    let bytes = pairs.iter().map(byte).collect();
    if marks & NO_DIGIT == 0 { Ok(bytes) } else { Err(refused()) }
}
