//! `timestamp`: milliseconds since 1970, signed 8 bytes.
//!
//! What a literal may look like, blanks as shown, `[]` for what may be left out:
//!
//! ```text
//!   1700000000000                       milliseconds
//!   2011-2-3 4:5[:6[.789]][zone]        one or more digits each; also with T for the blank
//!   2011-02-03[zone]                    midnight
//!
//!   zone   Z  +01  +0130  +01:30        with or without a blank before it
//!           UTC  GMT  UTC+01:30         with a blank
//! ```
//!
//! Without a zone it is UTC. Cassandra takes that from its machine, and reads every zone name of
//! Java's; names other than UTC and GMT are refused here.

use crate::TypeError;
use crate::calendar::{Day, days_in};
use crate::date::{format_day, is_raw_number, iso_day};
use crate::scan::Scanner;

const MILLIS_PER_DAY: i64 = 86_400_000;
/// No zone is farther from UTC, in seconds.
const ZONE_SECONDS_MAX: i64 = 18 * 3600;

/// Decodes; an empty value is no time.
pub fn decode(value: &[u8]) -> Option<i64> {
    value.try_into().ok().map(i64::from_be_bytes)
}

/// Reads a literal to milliseconds since 1970; `now` is what the literal `now` means.
///
/// # Errors
/// The text is no time, or one beyond the range.
pub fn parse(text: &str, now: i64) -> Result<i64, TypeError> {
    if text.eq_ignore_ascii_case("now") {
        return Ok(now);
    }
    if is_raw_number(text) {
        return text
            .parse()
            .map_err(|_| TypeError::text(stdx::brief!("Unable to make long (for date) from: '{text}'")));
    }
    parse_date_and_time(text)
        .or_else(|| parse_date_only(text))
        .ok_or_else(|| TypeError::text(stdx::brief!("Unable to parse a date/time from '{text}'")))
}

fn parse_date_and_time(text: &str) -> Option<i64> {
    // Nineteen digits are what Java takes; the ranges below keep the numbers sane.
    const DIGITS_MAX: usize = 19;
    let mut scanner = Scanner::new(text);
    let year = scanner.number(DIGITS_MAX).filter(|year| (1..=999_999_999).contains(year))?;
    scanner.literal("-")?;
    let month = scanner.number(DIGITS_MAX)?;
    scanner.literal("-")?;
    let day = scanner.number(DIGITS_MAX)?;
    scanner.literal("T").or_else(|| scanner.literal(" "))?;
    let hour = scanner.number(DIGITS_MAX)?;
    scanner.literal(":")?;
    let minute = scanner.number(DIGITS_MAX)?;
    let mut second = None;
    let mut millis = 0;
    if scanner.literal(":").is_some() {
        second = Some(scanner.number(DIGITS_MAX)?);
    }
    if scanner.literal(".").is_some() {
        second?;
        let fraction = scanner.digits(9);
        millis = format!("{fraction:0<3}")[..3].parse().ok()?;
    }
    let second = second.unwrap_or(0);
    let zone_seconds = parse_zone(scanner.rest())?;
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    let is_end_of_day = (hour, minute, second, millis) == (24, 0, 0, 0);
    if !is_time && !is_end_of_day {
        return None;
    }
    let days = lenient_day(Day { year, month, day })?;
    let seconds = hour * 3600 + minute * 60 + second - zone_seconds;
    days.checked_mul(MILLIS_PER_DAY)?.checked_add(seconds * 1000)?.checked_add(millis)
}

fn parse_date_only(text: &str) -> Option<i64> {
    let mut scanner = Scanner::new(text);
    let day = iso_day(&mut scanner)?;
    let zone = scanner.rest();
    // Without a zone or with seconds in it another of Java's formats applies, which knows the
    // years before 1 too.
    let zone_seconds = parse_zone(zone).filter(|_| day.year > 0 || zone.is_empty());
    let zone_seconds = zone_seconds.or_else(|| parse_colon_offset(zone))?;
    lenient_day(day)?.checked_mul(MILLIS_PER_DAY)?.checked_sub(zone_seconds * 1000)
}

/// The 30th of February is the last of it; the 32nd is no day.
fn lenient_day(day: Day) -> Option<i64> {
    let is_day = (1..=12).contains(&day.month) && (1..=31).contains(&day.day);
    let last = days_in(day.year, day.month);
    is_day.then(|| Day { day: day.day.min(last), ..day }.to_epoch_days())
}

/// Seconds east of UTC, of everything behind the time.
fn parse_zone(text: &str) -> Option<i64> {
    if let Some(behind_blank) = text.strip_prefix(' ') {
        let name = behind_blank;
        let prefix = ["UTC", "GMT", "UT"].iter().find_map(|prefix| name.strip_prefix(prefix));
        return match prefix {
            Some("") => Some(0),
            Some(offset) => parse_colon_offset(offset).filter(|_| offset != "Z"),
            None => parse_colon_offset(name).or_else(|| parse_bare_offset(name)),
        };
    }
    match text {
        "" => Some(0),
        _ if text.len() <= 6 => parse_bare_offset(text).or_else(|| parse_colon_offset(text)),
        _ => None,
    }
}

/// `Z` or `+hh:mm[:ss]`.
fn parse_colon_offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, mut scanner) = parse_sign(text)?;
    let hours = scanner.two_digits()?;
    scanner.literal(":")?;
    let minutes = scanner.two_digits()?;
    let seconds = match scanner.literal(":") {
        Some(()) => scanner.two_digits()?,
        None => 0,
    };
    zone_seconds(sign, hours, minutes, seconds).filter(|_| scanner.is_at_end())
}

/// `Z` or `+hh[mm]`.
fn parse_bare_offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, mut scanner) = parse_sign(text)?;
    let hours = scanner.two_digits()?;
    let minutes = if scanner.is_at_end() { 0 } else { scanner.two_digits()? };
    zone_seconds(sign, hours, minutes, 0).filter(|_| scanner.is_at_end())
}

fn parse_sign(text: &str) -> Option<(i64, Scanner<'_>)> {
    match text.as_bytes().first()? {
        b'+' => Some((1, Scanner::new(&text[1..]))),
        b'-' => Some((-1, Scanner::new(&text[1..]))),
        _ => None,
    }
}

fn zone_seconds(sign: i64, hours: i64, minutes: i64, seconds: i64) -> Option<i64> {
    let total = hours * 3600 + minutes * 60 + seconds;
    (minutes < 60 && seconds < 60 && total <= ZONE_SECONDS_MAX).then_some(sign * total)
}

/// `yyyy-mm-ddThh:mm:ss.fffZ`, as literals show it; the empty value is the empty text.
pub fn format(value: &[u8]) -> String {
    decode(value).map(|millis| format_millis(millis, 'T')).unwrap_or_default()
}

/// `yyyy-mm-dd hh:mm:ss.fffZ`, as JSON shows it; the empty value is the empty text.
pub fn format_for_json(value: &[u8]) -> String {
    decode(value).map(|millis| format_millis(millis, ' ')).unwrap_or_default()
}

fn format_millis(millis: i64, between: char) -> String {
    let mut day = Day::from_epoch_days(millis.div_euclid(MILLIS_PER_DAY));
    if day.year < 1 {
        // Java's pattern counts years of an era, and does not say which era.
        day.year = 1 - day.year;
    }
    let millis = millis.rem_euclid(MILLIS_PER_DAY);
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    let (seconds, fraction) = (millis / 1000 % 60, millis % 1000);
    format!("{}{between}{hours:02}:{minutes:02}:{seconds:02}.{fraction:03}Z", format_day(day))
}
