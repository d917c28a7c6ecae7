//! `time`: nanoseconds since midnight, signed 8 bytes.

use crate::TypeError;
use crate::date::is_raw_number;

/// Nanoseconds of a day: one more than the last time.
pub const NANOS_PER_DAY: i64 = 86_400_000_000_000;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Reads `hh:mm:ss[.fffffffff]`, or the raw number of nanoseconds.
///
/// # Errors
/// The text is neither, or a part is out of range.
pub fn parse(text: &str) -> Result<[u8; 8], TypeError> {
    let nanoseconds = if is_raw_number(text) {
        let raw = text.parse::<i64>().ok().filter(|raw| (0..NANOS_PER_DAY).contains(raw));
        raw.ok_or_else(|| TypeError::text(stdx::brief!("Unable to make long (for time) from: '{text}'")))?
    } else {
        parse_parts(text.trim()).ok_or_else(|| {
            TypeError::text(stdx::brief!("(TimeType) Unable to coerce '{text}' to a formatted time (long)"))
        })?
    };
    Ok(nanoseconds.to_be_bytes())
}

fn parse_parts(text: &str) -> Option<i64> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, rest) = rest.split_once(':')?;
    let (seconds, nanoseconds) = match rest.split_once('.') {
        Some((seconds, fraction)) => (seconds, parse_fraction(fraction)?),
        None => (rest, 0),
    };
    let part = |text: &str, limit: i64| {
        text.parse::<i32>().ok().map(i64::from).filter(|part| (0..limit).contains(part))
    };
    let (hours, minutes, seconds) = (part(hours, 24)?, part(minutes, 60)?, part(seconds, 60)?);
    Some((hours * 3600 + minutes * 60 + seconds) * NANOS_PER_SECOND + nanoseconds)
}

/// One to nine digits behind the point.
fn parse_fraction(digits: &str) -> Option<i64> {
    let right = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    right.then(|| format!("{digits:0<9}").parse().ok()).flatten()
}

/// `hh:mm:ss.fffffffff`; a value that is no time of day is the empty text.
pub fn format(value: &[u8]) -> String {
    let nanoseconds = <[u8; 8]>::try_from(value).map(i64::from_be_bytes).ok();
    let Some(nanoseconds) = nanoseconds.filter(|nanoseconds| (0..NANOS_PER_DAY).contains(nanoseconds)) else {
        return String::new();
    };
    let seconds = nanoseconds / NANOS_PER_SECOND;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:09}", seconds % 60, nanoseconds % NANOS_PER_SECOND)
}
