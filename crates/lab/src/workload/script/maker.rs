//! What writes the bytes of a value: a generator that has been fitted to the type of a marker.

use types::encoding::{Fields, Parts};
use types::uuid::{from_ticks, ticks_at_millis};

use super::choice::{Spread, normal};
use super::span::Span;
use super::template::Template;
use crate::generator::{Discrete, Random, fnv64};
use crate::workload::value::Owner;

/// For what a value is made.
#[derive(Debug)]
pub(super) struct Moment<'a> {
    pub(super) partition: u64,
    pub(super) row: u64,
    /// Milliseconds since 1970.
    pub(super) now_ms: i64,
    /// What the partition is known to hold.
    pub(super) held: Option<u64>,
    pub(super) random: &'a mut Random,
}

/// A whole number.
#[derive(Clone, Debug)]
pub(super) enum Whole {
    Partition,
    Row,
    Drawn { from: i64, spread: Spread },
    Held,
    Next { modulo: u64 },
}

impl Whole {
    pub(super) fn of(&self, moment: &mut Moment<'_>) -> i64 {
        match self {
            Whole::Partition => moment.partition as i64,
            Whole::Row => moment.row as i64,
            Whole::Drawn { from, spread } => from.wrapping_add_unsigned(spread.draw(moment.random)),
            Whole::Held => moment.held.unwrap_or(0) as i64,
            Whole::Next { modulo } => ((moment.held.unwrap_or(0) + 1) % modulo) as i64,
        }
    }
}

/// How a whole number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Bytes(usize),
    /// As few as it needs.
    Varint,
}

impl Width {
    pub(super) fn write(self, number: i64, out: &mut Vec<u8>) {
        let bytes = number.to_be_bytes();
        let count = match self {
            Width::Bytes(count) => count,
            // A byte is not needed if the next one has the same sign and it is nothing but sign.
            Width::Varint => {
                let sign = if number < 0 { 0xff } else { 0 };
                let spare = bytes.windows(2).take_while(|two| two[0] == sign && (two[0] ^ two[1]) < 0x80);
                bytes.len() - spare.count()
            }
        };
        out.extend_from_slice(&bytes[bytes.len() - count..]);
    }
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// `timestamp`.
    Millis,
    /// `bigint`, as USING TIMESTAMP has it.
    Micros,
    /// `timeuuid`.
    Uuid,
}

/// A fraction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fraction {
    Even { from: f64, to: f64 },
    Normal { mean: f64, deviation: f64 },
}

/// What writes a value.
#[derive(Clone, Debug)]
pub(super) enum Maker {
    Whole(Whole, Width),
    Template(Template),
    Derived {
        bytes: Span,
        of: Vec<Maker>,
        column: usize,
    },
    Letters(Span),
    Fraction {
        of: Fraction,
        is_float: bool,
    },
    Boolean(f64),
    Fixed(Vec<u8>),
    Choice(Vec<Vec<u8>>, Discrete<usize>),
    Now(Span, Clock),
    Time {
        start_ms: i64,
        step_ms: i64,
        clock: Clock,
    },
    Uuid(Option<Whole>),
    /// Elements of a list or set; keys and values of a map.
    Many {
        parts: Vec<Maker>,
        count: Span,
    },
    Fields(Vec<Maker>),
}

impl Maker {
    /// Writes a value behind what is there.
    pub(super) fn make(&self, moment: &mut Moment<'_>, out: &mut Vec<u8>) {
        match self {
            Maker::Whole(whole, width) => width.write(whole.of(moment), out),
            Maker::Template(template) => template.write(moment.partition, moment.row, out),
            Maker::Derived { bytes, of, column } => derive(*bytes, of, *column, moment, out),
            Maker::Letters(bytes) => {
                let count = bytes.draw(moment.random);
                out.extend((0..count).map(|_| b'a' + moment.random.below(26) as u8));
            }
            Maker::Fraction { of, is_float } => {
                let number = match of {
                    Fraction::Even { from, to } => from + (to - from) * moment.random.fraction(),
                    Fraction::Normal { mean, deviation } => mean + deviation * normal(moment.random),
                };
                match is_float {
                    true => out.extend_from_slice(&(number as f32).to_be_bytes()),
                    false => out.extend_from_slice(&number.to_be_bytes()),
                }
            }
            Maker::Boolean(chance) => out.push(u8::from(moment.random.fraction() < *chance)),
            Maker::Fixed(bytes) => out.extend_from_slice(bytes),
            Maker::Choice(values, choice) => out.extend_from_slice(&values[choice.draw(moment.random)]),
            Maker::Now(offset_ms, clock) => {
                let time_ms = moment.now_ms.wrapping_add(offset_ms.draw(moment.random));
                let (ticks, salt) = (moment.random.below(10_000), moment.random.next());
                clock.write(time_ms, ticks, salt, out);
            }
            Maker::Time { start_ms, step_ms, clock } => {
                let time_ms = start_ms.wrapping_add(step_ms.wrapping_mul(moment.row as i64));
                clock.write(time_ms, 0, fnv64(moment.row), out);
            }
            Maker::Uuid(of) => out.extend_from_slice(&uuid(of.as_ref(), moment)),
            Maker::Many { parts, count } => {
                let count = count.draw(moment.random);
                out.extend_from_slice(&(count as i32).to_be_bytes());
                (0..count).flat_map(|_| parts).for_each(|part| part.make_sized(moment, out));
            }
            Maker::Fields(parts) => parts.iter().for_each(|part| part.make_sized(moment, out)),
        }
    }

    /// Writes a value within another one: its length comes first.
    fn make_sized(&self, moment: &mut Moment<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        self.make(moment, out);
        let length = (out.len() - start - 4) as i32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// What is in a whole column when this makes it, or one entry of it.
    pub(super) fn of_column(self, is_entry: bool) -> Maker {
        let any_key = Maker::Fixed(Vec::new());
        match is_entry {
            true => Maker::Many { parts: vec![any_key, self], count: Span::default() },
            false => self,
        }
    }

    /// May this value, which was read, have been written for the row with this key? The key is as [`put_key`] makes it.
    pub(super) fn may_have_made(&self, value: &[u8], key: &[u8]) -> bool {
        match self {
            Maker::Derived { bytes, column, .. } => {
                bytes.has(value.len()) && Owner::new(key, *column).has(value)
            }
            Maker::Many { parts, .. } => {
                let Ok(read) = Parts::new(value, parts.len() as u64) else { return false };
                let mut turns = parts.iter().cycle().zip(read);
                turns.all(|(part, value)| value.is_ok_and(|value| part.may_have_made_part(value, key)))
            }
            Maker::Fields(parts) => {
                let mut both = parts.iter().zip(Fields::new(value));
                both.all(|(part, value)| value.is_ok_and(|value| part.may_have_made_part(value, key)))
            }
            _ => true,
        }
    }

    fn may_have_made_part(&self, value: Option<&[u8]>, key: &[u8]) -> bool {
        value.is_none_or(|value| self.may_have_made(value, key))
    }
}

/// Adds a column to the key that values are derived of.
pub(super) fn put_key(column: &[u8], key: &mut Vec<u8>) {
    key.extend_from_slice(&(column.len() as u32).to_be_bytes());
    key.extend_from_slice(column);
}

/// The number of a column in derived values.
pub(super) fn column_number(name: &str) -> usize {
    name.bytes().fold(7, |hash: usize, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)))
}

fn derive(bytes: Span, of: &[Maker], column: usize, moment: &mut Moment<'_>, out: &mut Vec<u8>) {
    // The key is made where the value will stand, which saves a buffer: as `put_key` makes it.
    let start = out.len();
    of.iter().for_each(|part| part.make_sized(moment, out));
    let owner = Owner::new(&out[start..], column);
    out.truncate(start);
    let (count, salt) = (bytes.draw(moment.random) as usize, moment.random.next());
    out.resize(start + count, 0);
    owner.fill(salt, &mut out[start..]);
}

impl Clock {
    /// A time with what makes it one of a kind, if the type has room for that.
    fn write(self, time_ms: i64, ticks: u64, salt: u64, out: &mut Vec<u8>) {
        match self {
            Clock::Millis => out.extend_from_slice(&time_ms.to_be_bytes()),
            Clock::Micros => out.extend_from_slice(&time_ms.wrapping_mul(1000).to_be_bytes()),
            Clock::Uuid => {
                let ticks = ticks_at_millis(time_ms).wrapping_add_unsigned(ticks);
                out.extend_from_slice(&from_ticks(ticks, salt & VARIANT_MASK | VARIANT));
            }
        }
    }
}

/// The upper bits of a UUID's lower half: RFC 4122.
const VARIANT: u64 = 0x8000_0000_0000_0000;
const VARIANT_MASK: u64 = 0x3fff_ffff_ffff_ffff;

/// A UUID of version 4: by chance, or following from a number.
fn uuid(of: Option<&Whole>, moment: &mut Moment<'_>) -> [u8; 16] {
    let (high, low) = match of {
        None => (moment.random.next(), moment.random.next()),
        Some(whole) => {
            let mut follows = Random::new(whole.of(moment) as u64, 0);
            (follows.next(), follows.next())
        }
    };
    let high = high & !0xf000 | 0x4000;
    (u128::from(high) << 64 | u128::from(low & VARIANT_MASK | VARIANT)).to_be_bytes()
}
