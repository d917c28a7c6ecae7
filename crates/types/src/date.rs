//! `date`: a day, as an unsigned 4-byte number with 1970-01-01 at 2^31.

use crate::TypeError;
use crate::calendar::Day;
use crate::scan::Scanner;

/// The value that stands for 1970-01-01.
const EPOCH: i64 = 1 << 31;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// Days from 1970-01-01 of an encoded date.
pub fn decode(value: &[u8]) -> Option<i64> {
    let bytes = <[u8; 4]>::try_from(value).ok()?;
    Some(i64::from(u32::from_be_bytes(bytes)) - EPOCH)
}

/// Encodes days from 1970-01-01; days beyond the range wrap, as in Cassandra.
pub fn encode(days: i64) -> [u8; 4] {
    (days.wrapping_add(EPOCH) as u32).to_be_bytes()
}

/// The date at a time in milliseconds since 1970.
pub fn from_millis(millis: i64) -> [u8; 4] {
    encode(millis.div_euclid(MILLIS_PER_DAY))
}

/// Milliseconds since 1970 at the start of an encoded date.
pub fn to_millis(value: &[u8]) -> Option<i64> {
    decode(value).map(|days| days * MILLIS_PER_DAY)
}

/// Reads `yyyy-mm-dd` (a real day; more than four digits of the year need a sign), or the raw
/// number from 0 to 2^32 - 1.
///
/// # Errors
/// The text is neither.
pub fn parse(text: &str) -> Result<[u8; 4], TypeError> {
    if is_raw_number(text) {
        let raw = text.parse::<i64>().ok().and_then(|raw| u32::try_from(raw).ok());
        return raw.map(u32::to_be_bytes).ok_or_else(|| {
            TypeError::text(stdx::brief!("Unable to make unsigned int (for date) from: '{text}'"))
        });
    }
    let days = parse_iso(text).ok_or_else(|| {
        TypeError::text(stdx::brief!("Unable to coerce '{text}' to a formatted date (long)"))
    })?;
    if days < -EPOCH {
        Err(TypeError::text(stdx::brief!(
            "Input date {text} is less than min supported date -5877641-06-23T00:00Z"
        )))
    } else if days >= EPOCH {
        Err(TypeError::text(stdx::brief!(
            "Input date {text} is greater than max supported date +5881580-07-11T00:00Z"
        )))
    } else {
        Ok(encode(days))
    }
}

/// Days from 1970-01-01, if they can be counted in milliseconds.
fn parse_iso(text: &str) -> Option<i64> {
    let mut scanner = Scanner::new(text);
    let day = iso_day(&mut scanner).filter(|day| day.exists() && scanner.is_at_end())?;
    let days = day.to_epoch_days();
    days.checked_mul(MILLIS_PER_DAY).map(|_| days)
}

/// `yyyy-mm-dd` after ISO 8601, the day not checked against its month.
pub(crate) fn iso_day(scanner: &mut Scanner<'_>) -> Option<Day> {
    let year = scanner.year_of_four_digits_or_signed()?;
    scanner.literal("-")?;
    let month = scanner.two_digits()?;
    scanner.literal("-")?;
    let day = scanner.two_digits()?;
    Some(Day { year, month, day })
}

/// Digits with an optional minus.
pub(crate) fn is_raw_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// `yyyy-mm-dd`; the empty value is the empty text.
pub fn format(value: &[u8]) -> String {
    decode(value).map(|days| format_day(Day::from_epoch_days(days))).unwrap_or_default()
}

/// With a sign if the year does not have four digits.
pub(crate) fn format_day(day: Day) -> String {
    let Day { year, month, day } = day;
    let sign = match year {
        ..0 => "-",
        0..=9999 => "",
        _ => "+",
    };
    format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs())
}
