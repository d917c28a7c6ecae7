//! `duration`: months, days and nanoseconds, as three signed vints of the same sign.
//!
//! They are kept apart since months differ in length, and so do days where clocks change.

use crate::TypeError;
use crate::calendar::Day;
use crate::scan::Scanner;
use stdx::cursor::Cursor;
use stdx::vint;

/// A duration's parts; all of one sign or zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duration {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Nanoseconds.
    pub nanoseconds: i64,
}

const NANOS_PER_MILLI: i64 = 1_000_000;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// Steps that finding a floor may take: more than any interval of months and days needs within
/// the years that have four digits, and few enough to be no attack.
const FLOOR_STEPS_MAX: u32 = 200_000;

/// The same time of day some months away, on the month's last day at most.
fn plus_months(millis: i64, months: i64) -> Option<i64> {
    if months == 0 {
        return Some(millis);
    }
    let day = Day::from_epoch_days(millis.div_euclid(MILLIS_PER_DAY)).plus_months(months);
    day.to_epoch_days().checked_mul(MILLIS_PER_DAY)?.checked_add(millis.rem_euclid(MILLIS_PER_DAY))
}

/// Whole calendar months from one time to another, days not looked at.
fn months_between(start: i64, end: i64) -> i64 {
    let month = |millis: i64| {
        let day = Day::from_epoch_days(millis.div_euclid(MILLIS_PER_DAY));
        day.year * 12 + day.month
    };
    month(end) - month(start)
}

/// Units from the longest: what errors call them, and how many months, days or nanoseconds each is.
const UNITS: [(&str, Part); 10] = [
    ("years", Part::Months(12)),
    ("months", Part::Months(1)),
    ("weeks", Part::Days(7)),
    ("days", Part::Days(1)),
    ("hours", Part::Nanoseconds(3_600_000_000_000)),
    ("minutes", Part::Nanoseconds(60_000_000_000)),
    ("seconds", Part::Nanoseconds(1_000_000_000)),
    ("milliseconds", Part::Nanoseconds(1_000_000)),
    ("microseconds", Part::Nanoseconds(1_000)),
    ("nanoseconds", Part::Nanoseconds(1)),
];

#[derive(Clone, Copy)]
enum Part {
    Months(i64),
    Days(i64),
    Nanoseconds(i64),
}

impl Duration {
    /// Decodes; an empty or cut value is no duration.
    pub fn decode(value: &[u8]) -> Option<Duration> {
        let mut input = Cursor::new(value);
        let months = i32::try_from(input.vint_signed().ok()?).ok()?;
        let days = i32::try_from(input.vint_signed().ok()?).ok()?;
        let nanoseconds = input.vint_signed().ok()?;
        Some(Duration { months, days, nanoseconds })
    }

    /// Encodes.
    pub fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        vint::write_signed(i64::from(self.months), &mut out);
        vint::write_signed(i64::from(self.days), &mut out);
        vint::write_signed(self.nanoseconds, &mut out);
        out
    }

    /// Is any part below zero?
    pub fn is_negative(self) -> bool {
        self.months < 0 || self.days < 0 || self.nanoseconds < 0
    }

    /// This much after a time in milliseconds from 1970: months first (to the month's last day at
    /// most), then days of 24 hours, then the rest. `None` beyond the range.
    pub fn add_to(self, millis: i64) -> Option<i64> {
        self.shift(millis, 1)
    }

    /// This much before a time in milliseconds from 1970.
    pub fn subtract_from(self, millis: i64) -> Option<i64> {
        self.shift(millis, -1)
    }

    fn shift(self, millis: i64, sign: i64) -> Option<i64> {
        let months = sign * i64::from(self.months);
        let moved = plus_months(millis, months)?;
        let rest = i64::from(self.days) * MILLIS_PER_DAY + self.nanoseconds / NANOS_PER_MILLI;
        moved.checked_add(sign * rest)
    }

    /// The start of the interval of this length that a time is in, counted from `start`, all in
    /// milliseconds from 1970. A length below a millisecond leaves the time as it is.
    ///
    /// # Errors
    /// The duration is negative or `start` is after the time.
    pub fn floor_millis(self, millis: i64, start: i64) -> Result<i64, TypeError> {
        if start > millis {
            return Err(TypeError::text(
                "The floor function starting time is greater than the provided time",
            ));
        }
        if self.is_negative() {
            return Err(TypeError::text("Negative durations are not supported by the floor function"));
        }
        let length = i64::from(self.days) * MILLIS_PER_DAY + self.nanoseconds / NANOS_PER_MILLI;
        if self.months == 0 {
            return Ok(match length {
                0 => millis,
                _ => millis - (millis - start) % length,
            });
        }
        let interval = i64::from(self.months);
        let mut count = months_between(start, millis) / interval;
        let beyond = || TypeError::text("The floor is beyond the range of timestamps");
        let mut base = plus_months(start, count * interval).ok_or_else(beyond)?;
        if length == 0 {
            return Ok(base);
        }
        // Days beyond the months may have gone too far. Going back month by month keeps to a
        // shorter month's last day once it was met, as Java's calendar does.
        for _ in 0..FLOOR_STEPS_MAX {
            let floor = count.checked_mul(length).and_then(|rest| base.checked_add(rest));
            match floor.filter(|floor| *floor <= millis) {
                Some(floor) => return Ok(floor.max(start)),
                None if count <= 0 => return Ok(start),
                None => {}
            }
            count -= 1;
            base = plus_months(base, -interval).ok_or_else(beyond)?;
        }
        Err(TypeError::text("The floor of this duration takes too long to find"))
    }

    /// The start of the interval of this length since midnight that a time of day is in, in
    /// nanoseconds.
    ///
    /// # Errors
    /// The duration is negative or longer than a day.
    pub fn floor_time(self, nanoseconds: i64) -> Result<i64, TypeError> {
        if self.is_negative() {
            return Err(TypeError::text("Negative durations are not supported by the floor function"));
        }
        if self.months != 0 || self.days != 0 || self.nanoseconds > crate::time::NANOS_PER_DAY {
            return Err(TypeError::text(
                "For time values, the floor can only be computed for durations smaller that a day",
            ));
        }
        Ok(nanoseconds - nanoseconds.checked_rem(self.nanoseconds).unwrap_or(0))
    }

    /// Reads one of three notations, each with an optional minus before it:
    ///
    /// ```text
    ///   1y2mo3w4d5h6m7s8ms9us10ns       units in this order, any left out
    ///   P1Y2M4DT5H6M7S  P3W             ISO 8601 with designators
    ///   P0001-02-04T05:06:07            ISO 8601, alternative format
    /// ```
    ///
    /// # Errors
    /// The text is none of them, units repeat or are out of order, or a part is out of range.
    pub fn parse(text: &str) -> Result<Duration, TypeError> {
        let (negative, source) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let refused = || TypeError::text(stdx::brief!("Unable to convert '{source}' to a duration"));
        let mut sum = Sum::default();
        match source.strip_prefix('P') {
            None => sum.add_symbols(source, &refused)?,
            Some(iso) if iso.ends_with('W') => sum.add_designated(iso, &[("W", 2)], &refused)?,
            Some(iso) if iso.contains('-') => sum.add_alternative(iso, &refused)?,
            Some(iso) => {
                let (date, time) = iso.split_once('T').unwrap_or((iso, ""));
                sum.add_designated(date, &[("Y", 0), ("M", 1), ("D", 3)], &refused)?;
                sum.add_designated(time, &[("H", 4), ("M", 5), ("S", 6)], &refused)?;
            }
        }
        let Duration { months, days, nanoseconds } = sum.total;
        Ok(match negative {
            // The parts are not negative here, so that their negation exists.
            true => Duration { months: -months, days: -days, nanoseconds: -nanoseconds },
            false => sum.total,
        })
    }
}

/// What has been read so far, all positive.
#[derive(Default)]
struct Sum {
    total: Duration,
    /// One more than the index of the last unit.
    next_unit: usize,
}

impl Sum {
    /// Numbers with symbols behind them.
    fn add_symbols(&mut self, text: &str, refused: &dyn Fn() -> TypeError) -> Result<(), TypeError> {
        let mut scanner = Scanner::new(text);
        if text.is_empty() {
            return Err(refused());
        }
        while !scanner.is_at_end() {
            let digits = scanner.digits(usize::MAX);
            let unit = symbol(&mut scanner).filter(|_| !digits.is_empty()).ok_or_else(refused)?;
            self.add(unit, digits, refused)?;
        }
        Ok(())
    }

    /// Numbers with these designators behind them, in this order, each at most once.
    fn add_designated(
        &mut self,
        text: &str,
        designators: &[(&str, usize)],
        refused: &dyn Fn() -> TypeError,
    ) -> Result<(), TypeError> {
        let mut scanner = Scanner::new(text);
        let mut designators = designators.iter();
        while !scanner.is_at_end() {
            let digits = scanner.digits(usize::MAX);
            let unit = designators.find(|(letter, _)| scanner.literal(letter).is_some());
            let (_, unit) = unit.filter(|_| !digits.is_empty()).ok_or_else(refused)?;
            self.add(*unit, digits, refused)?;
        }
        Ok(())
    }

    /// `0001-02-04T05:06:07`.
    fn add_alternative(&mut self, text: &str, refused: &dyn Fn() -> TypeError) -> Result<(), TypeError> {
        const SHAPE: [(usize, &str, usize); 6] =
            [(4, "-", 0), (2, "-", 1), (2, "T", 3), (2, ":", 4), (2, ":", 5), (2, "", 6)];
        let mut scanner = Scanner::new(text);
        let mut parts = Vec::with_capacity(SHAPE.len());
        for (length, behind, unit) in SHAPE {
            let digits = scanner.digits(length);
            scanner.literal(behind).filter(|()| digits.len() == length).ok_or_else(refused)?;
            parts.push((unit, digits));
        }
        if !scanner.is_at_end() {
            return Err(refused());
        }
        parts.into_iter().try_for_each(|(unit, digits)| self.add(unit, digits, refused))
    }

    fn add(&mut self, unit: usize, digits: &str, refused: &dyn Fn() -> TypeError) -> Result<(), TypeError> {
        let number: i64 = digits.parse().map_err(|_| refused())?;
        if let Some(last) = self.next_unit.checked_sub(1) {
            self.check_order(last, unit)?;
        }
        self.next_unit = unit + 1;
        let Duration { months, days, nanoseconds } = self.total;
        let (so_far, factor, limit, name) = match UNITS[unit].1 {
            Part::Months(factor) => (i64::from(months), factor, i64::from(i32::MAX), "months"),
            Part::Days(factor) => (i64::from(days), factor, i64::from(i32::MAX), "days"),
            Part::Nanoseconds(factor) => (nanoseconds, factor, i64::MAX, "nanoseconds"),
        };
        let sum = number.checked_mul(factor).and_then(|part| part.checked_add(so_far));
        let sum = sum.filter(|sum| *sum <= limit).ok_or_else(|| {
            TypeError::text(stdx::brief!(
                "Invalid duration. The total number of {name} must be less or equal to {}",
                i32::MAX
            ))
        })?;
        match UNITS[unit].1 {
            Part::Months(_) => self.total.months = sum as i32,
            Part::Days(_) => self.total.days = sum as i32,
            Part::Nanoseconds(_) => self.total.nanoseconds = sum,
        }
        Ok(())
    }

    fn check_order(&self, last: usize, unit: usize) -> Result<(), TypeError> {
        let (last_name, name) = (UNITS[last].0, UNITS[unit].0);
        match unit.cmp(&last) {
            std::cmp::Ordering::Greater => Ok(()),
            std::cmp::Ordering::Equal => Err(TypeError::text(stdx::brief!(
                "Invalid duration. The {name} are specified multiple times"
            ))),
            std::cmp::Ordering::Less => {
                Err(TypeError::text(stdx::brief!("Invalid duration. The {last_name} should be after {name}")))
            }
        }
    }
}

/// Takes a unit's symbol, in any case; the longest that fits.
fn symbol(scanner: &mut Scanner<'_>) -> Option<usize> {
    const SYMBOLS: [(&str, usize); 11] = [
        ("mo", 1),
        ("ms", 7),
        ("us", 8),
        ("µs", 8),
        ("ns", 9),
        ("y", 0),
        ("w", 2),
        ("d", 3),
        ("h", 4),
        ("m", 5),
        ("s", 6),
    ];
    SYMBOLS.iter().find_map(|(symbol, unit)| {
        let head = scanner.rest().get(..symbol.len())?;
        if !head.eq_ignore_ascii_case(symbol) {
            return None;
        }
        scanner.literal(head)?;
        Some(*unit)
    })
}

/// The first notation; no text at all for no time at all.
impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_negative() {
            f.write_str("-")?;
        }
        let mut append = |amount: u64, units: &[(u64, &str)]| {
            let mut rest = amount;
            for (size, symbol) in units {
                if rest >= *size {
                    write!(f, "{}{symbol}", rest / size)?;
                    rest %= size;
                }
            }
            Ok(())
        };
        append(u64::from(self.months.unsigned_abs()), &[(12, "y"), (1, "mo")])?;
        append(u64::from(self.days.unsigned_abs()), &[(1, "d")])?;
        append(
            self.nanoseconds.unsigned_abs(),
            &[
                (3_600_000_000_000, "h"),
                (60_000_000_000, "m"),
                (1_000_000_000, "s"),
                (1_000_000, "ms"),
                (1_000, "us"),
                (1, "ns"),
            ],
        )
    }
}

/// As [`Duration`] shows itself; the empty value is the empty text.
pub fn format(value: &[u8]) -> String {
    Duration::decode(value).map(|duration| duration.to_string()).unwrap_or_default()
}
