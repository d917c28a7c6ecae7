//! The byte-comparable form of one value.

use super::{NEXT_COMPONENT, NEXT_COMPONENT_NULL, TERMINATOR};
use crate::compare::{halves, time_first};
use crate::decimal::Digits;
use crate::encoding::{Elements, Fields, Parts};
use crate::{CqlType, varint};

/// Has the value a form of its own?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It was appended.
    Written,
    /// The value is empty and its type gives that no meaning: only the separator before it, in a
    /// sequence, can say so. Nothing was appended.
    Absent,
}

/// Appends the form of a non-null value.
///
/// Values that are not of their type get some form too; only the order is then not promised.
pub fn encode_value(of: &CqlType, value: &[u8], out: &mut Vec<u8>) -> Form {
    let is_byte_string =
        matches!(of, CqlType::Ascii | CqlType::Blob | CqlType::Duration | CqlType::Inet | CqlType::Text);
    if is_byte_string {
        escape(value, out);
        return Form::Written;
    }
    if value.is_empty() {
        return Form::Absent;
    }
    match of {
        CqlType::Date | CqlType::Time => out.extend_from_slice(value),
        CqlType::Tinyint | CqlType::Smallint | CqlType::Int | CqlType::Timestamp => {
            out.push(value[0] ^ 0x80);
            out.extend_from_slice(&value[1..]);
        }
        CqlType::Bigint | CqlType::Counter => integer(varint::widen(value), out),
        CqlType::Boolean => out.push(u8::from(value[0] != 0)),
        CqlType::Float | CqlType::Double => float(value, out),
        CqlType::Uuid => uuid(value, out),
        CqlType::Timeuuid => timeuuid(value, out),
        CqlType::Varint => big_integer(value, out),
        CqlType::Decimal => return decimal(value, out),
        CqlType::Empty => return Form::Absent,
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            collection(&[element], value, out);
        }
        CqlType::Map { key, value: held, .. } => collection(&[key, held], value, out),
        CqlType::Tuple(types) => tuple(types.iter(), value, out),
        CqlType::UserDefined { definition, .. } => {
            tuple(definition.fields.iter().map(|(_, of)| of), value, out);
        }
        CqlType::Vector { element, dimension } => {
            for part in Elements::new(element, *dimension, value).map_while(Result::ok) {
                component(element, Some(part), out);
            }
            out.push(TERMINATOR);
        }
        CqlType::Ascii | CqlType::Blob | CqlType::Duration | CqlType::Inet | CqlType::Text => {}
    }
    Form::Written
}

/// Appends a part of a collection or tuple behind its separator.
fn component(of: &CqlType, value: Option<&[u8]>, out: &mut Vec<u8>) {
    let separator_at = out.len();
    out.push(NEXT_COMPONENT);
    let form = value.map_or(Form::Absent, |value| encode_value(of, value, out));
    if form == Form::Absent {
        out[separator_at] = NEXT_COMPONENT_NULL;
    }
}

/// Bytes as they are; behind a zero, `fe` for another zero and `ff` before anything else; at the
/// end a zero, or `fe` if the last byte was one.
pub(super) fn escape(value: &[u8], out: &mut Vec<u8>) {
    out.reserve(value.len() + 1);
    if !value.contains(&0) {
        out.extend_from_slice(value);
        return out.push(0);
    }
    let mut after_zero = false;
    for &byte in value {
        match (after_zero, byte) {
            (true, 0) => out.push(0xfe),
            (true, _) => out.extend_from_slice(&[0xff, byte]),
            (false, _) => out.push(byte),
        }
        after_zero = byte == 0;
    }
    out.push(if after_zero { 0xfe } else { 0 });
}

/// A 64-bit integer in one to nine bytes. The sign bit is flipped, the bits equal to it that
/// follow say how many bytes there are, and negative numbers are the inversion of positive ones.
pub(super) fn integer(value: i64, out: &mut Vec<u8>) {
    let sign = value >> 63;
    let magnitude = (value ^ sign) as u64;
    let bits = 64 - (magnitude | 1).leading_zeros() as usize;
    let bytes = bits / 7 + 1;
    let flip = sign as u64;
    if bytes >= 9 {
        out.push(!(flip as u8));
        out.extend_from_slice(&((magnitude | 1 << 63) ^ flip).to_be_bytes());
    } else {
        let prefix = (-0x100i64 >> bytes) as u64 & 0xff;
        let shifted = magnitude | prefix << (bytes * 8 - 8);
        out.extend_from_slice(&(shifted ^ flip).to_be_bytes()[8 - bytes..]);
    }
}

/// A length: as many leading ones as bytes follow, then the value; `flip` inverts it all.
fn length(value: u64, flip: u8, out: &mut Vec<u8>) {
    let extra = (63 - (value | 1).leading_zeros() as usize) / 7;
    let prefix = !(0xffu8.checked_shr(extra as u32).unwrap_or(0));
    let bytes = value.to_be_bytes();
    let tail = &bytes[8usize.saturating_sub(extra + 1)..];
    let first_at = out.len();
    out.extend(tail.iter().map(|byte| byte ^ flip));
    if let Some(first) = out.get_mut(first_at) {
        *first ^= prefix;
    }
}

/// Up to six significant bytes as an [`integer`]; more behind `00` or `ff` and their number.
fn big_integer(value: &[u8], out: &mut Vec<u8>) {
    let Some(&first) = value.first() else { return };
    // Leading bytes equal to the sign are dropped, even the one that held the sign.
    let sign_bytes = match first {
        0 | 0xff => value.iter().take_while(|byte| **byte == first).count().min(value.len() - 1),
        _ => 0,
    };
    let rest = &value[sign_bytes..];
    if rest.len() < 7 {
        integer(varint::widen(varint::significant(value)), out);
        return;
    }
    let flip = if first >= 0x80 { 0xff } else { 0 };
    out.push(!flip);
    length(rest.len() as u64 - 7, flip, out);
    out.extend_from_slice(rest);
}

/// IEEE bits with the sign flipped, and all of a negative number's. All NaNs are one, and last, as they are compared:
/// Cassandra (`ByteSource.SignedFixedLengthFloat` of 5.0) puts one with a sign before all numbers; its rows are not
/// there.
fn float(value: &[u8], out: &mut Vec<u8>) {
    let value = match value.len() {
        4 if f32::from_be_bytes([value[0], value[1], value[2], value[3]]).is_nan() => &FLOAT_NAN[..],
        8 if <[u8; 8]>::try_from(value).is_ok_and(|bytes| f64::from_be_bytes(bytes).is_nan()) => &DOUBLE_NAN,
        _ => value,
    };
    let negative = value[0] >= 0x80;
    let start = out.len();
    out.extend_from_slice(value);
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte ^= 0xff);
    } else {
        out[start] |= 0x80;
    }
}

const FLOAT_NAN: [u8; 4] = f32::NAN.to_be_bytes();
const DOUBLE_NAN: [u8; 8] = f64::NAN.to_be_bytes();
const _: () = assert!(FLOAT_NAN[0] < 0x80 && DOUBLE_NAN[0] < 0x80, "the one that stands for all has no sign");

fn uuid(value: &[u8], out: &mut Vec<u8>) {
    let Some((high, low)) = halves(value) else {
        out.extend_from_slice(value);
        return;
    };
    let version = high >> 12 & 0xf;
    let swizzled = match version {
        1 => time_first(high),
        _ => version << 60 | (high >> 4 & 0x0fff_ffff_ffff_f000) | high & 0xfff,
    };
    out.extend_from_slice(&swizzled.to_be_bytes());
    out.extend_from_slice(&low.to_be_bytes());
}

fn timeuuid(value: &[u8], out: &mut Vec<u8>) {
    let Some((high, low)) = halves(value) else {
        out.extend_from_slice(value);
        return;
    };
    out.extend_from_slice(&time_first(high).to_be_bytes());
    out.extend_from_slice(&(low ^ 0x8080_8080_8080_8080).to_be_bytes());
}

/// A power of 100, then base-100 digits.
///
/// ```text
///   header    80 zero; else 80 if positive or 00 if negative, plus 40 plus or minus the number
///             of exponent bytes (minus if the exponent, negated for a negative value, is negative)
///   exponent  that many low bytes of it
///   digits    each plus 80; of a negative value all but the first are counted up from the
///             next lower number, so that they too are never negative
///   00
/// ```
fn decimal(value: &[u8], out: &mut Vec<u8>) -> Form {
    let Some(number) = Digits::of(value) else {
        return Form::Absent;
    };
    if number.digits.is_empty() {
        out.push(0x80);
        return Form::Written;
    }
    // The value is 0.mantissa × 100^exponent with a first base-100 digit that is not zero.
    let exponent = (number.exponent() + 1) >> 1;
    let modulated = (if number.negative { -exponent } else { exponent }) as i32;
    let exponent_bytes = 4 - modulated.unsigned_abs().leading_zeros() as usize / 8;
    let signed_bytes = if modulated < 0 { -(exponent_bytes as i8) } else { exponent_bytes as i8 };
    let header = 0x40u8.wrapping_add_signed(signed_bytes);
    out.push(if number.negative { header } else { header + 0x80 });
    out.extend_from_slice(&modulated.to_be_bytes()[4 - exponent_bytes..]);

    let pairs = base_100(&number);
    let last = pairs.len().saturating_sub(1);
    for (index, &pair) in pairs.iter().enumerate() {
        let digit = match (number.negative, index == 0, index == last) {
            (false, _, _) => pair,
            (true, true, true) => -pair,
            (true, true, false) => -pair - 1,
            (true, false, true) => 100 - pair,
            (true, false, false) => 99 - pair,
        };
        out.push((i16::from(digit) + 0x80) as u8);
    }
    out.push(0);
    Form::Written
}

/// The digits in pairs that line up with the point, without zeros at the end.
fn base_100(number: &Digits) -> Vec<i8> {
    let odd = number.exponent() & 1 == 1;
    let mut digits = Vec::with_capacity(number.digits.len() + 2);
    digits.extend(odd.then_some(b'0'));
    digits.extend_from_slice(&number.digits);
    digits.extend((digits.len() % 2 == 1).then_some(b'0'));
    let (pairs, _) = digits.as_chunks::<2>();
    let digit = |byte: u8| (byte - b'0') as i8;
    let mut pairs: Vec<i8> = pairs.iter().map(|[tens, ones]| digit(*tens) * 10 + digit(*ones)).collect();
    while pairs.last() == Some(&0) {
        pairs.pop();
    }
    pairs
}

fn collection(types: &[&CqlType], value: &[u8], out: &mut Vec<u8>) {
    if let Ok(parts) = Parts::new(value, types.len() as u64) {
        for (part, of) in parts.map_while(Result::ok).zip(types.iter().cycle()) {
            component(of, part, out);
        }
    }
    out.push(TERMINATOR);
}

/// Nulls at the end are left out, as missing fields are.
fn tuple<'a>(types: impl Iterator<Item = &'a CqlType>, value: &[u8], out: &mut Vec<u8>) {
    let mut end = out.len();
    for (field, of) in Fields::new(value).map_while(Result::ok).zip(types) {
        component(of, field, out);
        if field.is_some() {
            end = out.len();
        }
    }
    out.truncate(end);
    out.push(TERMINATOR);
}
