//! `uuid` and `timeuuid`: sixteen bytes; in version 1 a time and who made it.
//!
//! ```text
//!   time low (4)   time middle (2)   version and time high (2)   clock sequence (2)   node (6)
//! ```
//!
//! The time counts 100 ns from 1582-10-15, the start of the Gregorian calendar.

use crate::TypeError;
use crate::blob;
use crate::compare::halves;

/// 1582-10-15 in milliseconds from 1970.
pub const EPOCH_MILLIS: i64 = -12_219_292_800_000;

/// Ticks of a version 1 UUID's time in a millisecond.
const TICKS_PER_MILLI: i64 = 10_000;

/// The least clock sequence and node in the order of `timeuuid`, which takes bytes as signed.
const LOW_HALF_MIN: u64 = 0x8080_8080_8080_8080;
/// The greatest.
const LOW_HALF_MAX: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// The version of a UUID: 1 by time, 4 random.
pub fn version(uuid: &[u8]) -> Option<u8> {
    halves(uuid).map(|(high, _)| (high >> 12 & 0xf) as u8)
}

/// The time of a version 1 UUID: 100 ns from 1582-10-15. Other versions have none.
pub fn ticks(uuid: &[u8]) -> Option<i64> {
    let (high, _) = halves(uuid)?;
    let ticks = (high & 0xfff) << 48 | (high & 0xffff_0000) << 16 | high >> 32;
    (high >> 12 & 0xf == 1).then_some(ticks as i64)
}

/// The time of a version 1 UUID in microseconds from 1970.
pub fn unix_micros(uuid: &[u8]) -> Option<i64> {
    ticks(uuid).map(|ticks| ticks / 10 + EPOCH_MILLIS * 1000)
}

/// The time of a version 1 UUID in milliseconds from 1970, rounded towards 1970 as Cassandra does.
pub fn unix_millis(uuid: &[u8]) -> Option<i64> {
    unix_micros(uuid).map(|micros| micros / 1000)
}

/// A version 1 UUID of this time (100 ns from 1582-10-15) and lower half.
pub fn from_ticks(ticks: i64, low_half: u64) -> [u8; 16] {
    let ticks = ticks as u64;
    let high = ticks << 32 | (ticks >> 16 & 0xffff_0000) | 0x1000 | (ticks >> 48 & 0xfff);
    (u128::from(high) << 64 | u128::from(low_half)).to_be_bytes()
}

/// The time of a version 1 UUID made at these milliseconds from 1970.
pub fn ticks_at_millis(millis: i64) -> i64 {
    millis.wrapping_sub(EPOCH_MILLIS).wrapping_mul(TICKS_PER_MILLI)
}

/// `minTimeuuid`: not after any `timeuuid` of this millisecond from 1970.
pub fn min_at_millis(millis: i64) -> [u8; 16] {
    from_ticks(ticks_at_millis(millis), LOW_HALF_MIN)
}

/// `maxTimeuuid`: not before any `timeuuid` of this millisecond from 1970.
pub fn max_at_millis(millis: i64) -> [u8; 16] {
    from_ticks(ticks_at_millis(millis.wrapping_add(1)).wrapping_sub(1), LOW_HALF_MAX)
}

/// Reads 8-4-4-4-12 hexadecimal digits of either case.
///
/// # Errors
/// The text is anything else.
pub fn parse(text: &str) -> Result<[u8; 16], TypeError> {
    parse_digits(text).ok_or_else(|| TypeError::text(stdx::brief!("Unable to make UUID from '{text}'")))
}

/// As [`parse`], version 1 only.
///
/// # Errors
/// The text is anything else.
pub fn parse_timeuuid(text: &str) -> Result<[u8; 16], TypeError> {
    let uuid = parse_digits(text)
        .ok_or_else(|| TypeError::text(stdx::brief!("Unknown timeuuid representation: {text}")))?;
    if version(&uuid) == Some(1) {
        Ok(uuid)
    } else {
        Err(TypeError::text("TimeUUID supports only version 1 UUIDs"))
    }
}

fn parse_digits(text: &str) -> Option<[u8; 16]> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths != [8, 4, 4, 4, 12] {
        return None;
    }
    blob::parse(&groups.concat()).ok()?.try_into().ok()
}

/// Lower-case digits in 8-4-4-4-12; the empty value, or one of another length, is the empty text.
pub fn format(value: &[u8]) -> String {
    if value.len() != 16 {
        return String::new();
    }
    let digits = blob::format(value);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}
