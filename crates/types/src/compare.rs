//! The order of values, on their native bytes, exactly as Cassandra orders them.
//!
//! Every function is total: bytes that are no value of the type sort somewhere, consistently, and
//! nothing panics. Where Cassandra knows an empty value it sorts first.

use crate::encoding::{Elements, Fields, Parts};
use crate::{CqlType, decimal, varint};
use std::cmp::Ordering;

impl CqlType {
    /// The order of two non-null values of this type.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            CqlType::Ascii
            | CqlType::Blob
            | CqlType::Date
            | CqlType::Duration
            | CqlType::Inet
            | CqlType::Text
            | CqlType::Time => a.cmp(b),
            CqlType::Bigint
            | CqlType::Counter
            | CqlType::Int
            | CqlType::Smallint
            | CqlType::Timestamp
            | CqlType::Tinyint => compare_signed(a, b),
            CqlType::Boolean => compare_booleans(a, b),
            CqlType::Float => compare_floats(a, b),
            CqlType::Double => compare_doubles(a, b),
            CqlType::Decimal => decimal::compare(a, b),
            CqlType::Varint => varint::compare(a, b),
            CqlType::Uuid => compare_uuids(a, b),
            CqlType::Timeuuid => compare_timeuuids(a, b),
            CqlType::Empty => Ordering::Equal,
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                compare_collections(&[element], a, b)
            }
            CqlType::Map { key, value, .. } => compare_collections(&[key, value], a, b),
            CqlType::Tuple(types) => compare_tuples(types.iter(), a, b),
            CqlType::UserDefined { definition, .. } => {
                compare_tuples(definition.fields.iter().map(|(_, of)| of), a, b)
            }
            CqlType::Vector { element, dimension } => compare_vectors(element, *dimension, a, b),
        }
    }

    /// Is [`compare`](Self::compare) the same as comparing the bytes?
    pub fn compares_by_bytes(&self) -> bool {
        matches!(
            self,
            CqlType::Ascii
                | CqlType::Blob
                | CqlType::Date
                | CqlType::Duration
                | CqlType::Inet
                | CqlType::Text
                | CqlType::Time
        )
    }
}

/// Big-endian two's complement of equal length: the first byte signed, the others not.
fn compare_signed(a: &[u8], b: &[u8]) -> Ordering {
    match (a, b) {
        ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) => {
            (*first_a as i8).cmp(&(*first_b as i8)).then_with(|| rest_a.cmp(rest_b))
        }
        _ => a.len().cmp(&b.len()),
    }
}

/// Any byte but zero is true.
fn compare_booleans(a: &[u8], b: &[u8]) -> Ordering {
    a.first().map(|byte| *byte != 0).cmp(&b.first().map(|byte| *byte != 0))
}

/// Java's order: -0 before 0, all NaNs equal and last.
fn compare_floats(a: &[u8], b: &[u8]) -> Ordering {
    let (Ok(a_bytes), Ok(b_bytes)) = (a.try_into(), b.try_into()) else {
        return compare_odd_lengths(a, b);
    };
    let (x, y) = (f32::from_be_bytes(a_bytes), f32::from_be_bytes(b_bytes));
    match x.partial_cmp(&y) {
        Some(Ordering::Equal) => (y.to_bits()).cmp(&x.to_bits()),
        Some(order) => order,
        None => x.is_nan().cmp(&y.is_nan()),
    }
}

/// As [`compare_floats`].
fn compare_doubles(a: &[u8], b: &[u8]) -> Ordering {
    let (Ok(a_bytes), Ok(b_bytes)) = (a.try_into(), b.try_into()) else {
        return compare_odd_lengths(a, b);
    };
    let (x, y) = (f64::from_be_bytes(a_bytes), f64::from_be_bytes(b_bytes));
    match x.partial_cmp(&y) {
        Some(Ordering::Equal) => (y.to_bits()).cmp(&x.to_bits()),
        Some(order) => order,
        None => x.is_nan().cmp(&y.is_nan()),
    }
}

/// At least one value is empty or no value of its type at all.
fn compare_odd_lengths(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// By version; version 1 by time; then the bytes, unsigned.
fn compare_uuids(a: &[u8], b: &[u8]) -> Ordering {
    let (Some((a_high, a_low)), Some((b_high, b_low))) = (halves(a), halves(b)) else {
        return compare_odd_lengths(a, b);
    };
    let version = |high: u64| high >> 12 & 0xf;
    version(a_high)
        .cmp(&version(b_high))
        .then_with(|| match version(a_high) {
            1 => time_first(a_high).cmp(&time_first(b_high)),
            _ => a_high.cmp(&b_high),
        })
        .then_with(|| a_low.cmp(&b_low))
}

/// By time, then by the other eight bytes, each taken as signed.
fn compare_timeuuids(a: &[u8], b: &[u8]) -> Ordering {
    const SIGNS: u64 = 0x8080_8080_8080_8080;
    let (Some((a_high, a_low)), Some((b_high, b_low))) = (halves(a), halves(b)) else {
        return compare_odd_lengths(a, b);
    };
    let time = |high| time_first(high) as i64;
    time(a_high).cmp(&time(b_high)).then_with(|| (a_low ^ SIGNS).cmp(&(b_low ^ SIGNS)))
}

/// The two halves of a UUID.
pub(crate) fn halves(uuid: &[u8]) -> Option<(u64, u64)> {
    let uuid: [u8; 16] = uuid.try_into().ok()?;
    let value = u128::from_be_bytes(uuid);
    Some(((value >> 64) as u64, value as u64))
}

/// The upper half of a version 1 UUID with the version and its time's high, middle and low parts
/// in this order.
pub(crate) fn time_first(high: u64) -> u64 {
    high << 48 | (high << 16 & 0xffff_0000_0000) | high >> 32
}

/// Part by part (`types` in turn), then the one with fewer entries first.
fn compare_collections(types: &[&CqlType], a: &[u8], b: &[u8]) -> Ordering {
    let per_entry = types.len() as u64;
    let (Ok(mut a_parts), Ok(mut b_parts)) = (Parts::new(a, per_entry), Parts::new(b, per_entry)) else {
        return compare_odd_lengths(a, b);
    };
    let counts = a_parts.left().cmp(&b_parts.left());
    for of in types.iter().cycle() {
        let order = match (a_parts.next(), b_parts.next()) {
            (Some(Ok(x)), Some(Ok(y))) => of.compare_nullable(x, y),
            // A cut value sorts before a whole one.
            (Some(x), Some(y)) if x.is_ok() != y.is_ok() => x.is_ok().cmp(&y.is_ok()),
            _ => return counts,
        };
        if order.is_ne() {
            return order;
        }
    }
    counts
}

/// Field by field; null first, and missing fields are as null as null ones.
fn compare_tuples<'a>(types: impl Iterator<Item = &'a CqlType>, a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().min(1).cmp(&b.len().min(1));
    }
    let (mut a_fields, mut b_fields) = (Fields::new(a), Fields::new(b));
    for of in types {
        let (x, y) = match (next_field(&mut a_fields), next_field(&mut b_fields)) {
            (None, None) => break,
            (x, y) => (x.flatten(), y.flatten()),
        };
        let order = of.compare_nullable(x, y);
        if order.is_ne() {
            return order;
        }
    }
    // Fields that the type does not know.
    let has_more = |mut fields: Fields<'_>| fields.any(|field| matches!(field, Ok(Some(_))));
    has_more(a_fields).cmp(&has_more(b_fields))
}

/// The next field, `None` at the end or where the tuple is cut.
fn next_field<'a>(fields: &mut Fields<'a>) -> Option<Option<&'a [u8]>> {
    fields.next().and_then(Result::ok)
}

fn compare_vectors(element: &CqlType, dimension: u32, a: &[u8], b: &[u8]) -> Ordering {
    let a_elements = Elements::new(element, dimension, a);
    let b_elements = Elements::new(element, dimension, b);
    for pair in a_elements.zip(b_elements) {
        let order = match pair {
            (Ok(x), Ok(y)) => element.compare(x, y),
            (x, y) => return x.is_ok().cmp(&y.is_ok()),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

impl CqlType {
    /// As [`compare`](Self::compare), null first.
    pub fn compare_nullable(&self, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => self.compare(a, b),
            _ => a.is_some().cmp(&b.is_some()),
        }
    }
}
