//! Axes: where a value stands between the ends, and the ticks that a reader can count with.

use crate::report::words;

/// About so many ticks on a linear axis.
const TICK_COUNT: f64 = 6.0;
/// With fewer powers of ten than this, ticks stand between them as well.
const FEW_DECADES: f64 = 2.0;
/// With more powers of ten than this, no faint lines stand between them.
const MANY_DECADES: f64 = 5.0;

/// About so many letters have room below an axis.
const NAME_ROOM: usize = 104;
/// No run has operations for more of them.
const NINES_MAX: f64 = 12.0;

/// An axis with two ends that are apart.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    title: String,
    is_log: bool,
    low: f64,
    high: f64,
    ticks: Vec<Tick>,
}

/// A value that is marked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    /// Empty of one that is only a faint line.
    pub(crate) name: String,
}

impl Axis {
    /// From 0 to the first tick that is not below the most.
    pub(crate) fn linear(title: &str, most: f64) -> Axis {
        let most = sound(most);
        let step = nice_step(most);
        let count = (most / step).ceil().max(1.0);
        Axis::new(title, 0.0, count * step, linear_ticks(step, count))
    }

    /// From 0 to the most, wherever the last tick is.
    pub(crate) fn up_to(title: &str, most: f64) -> Axis {
        let most = sound(most);
        let step = nice_step(most);
        Axis::new(title, 0.0, most, linear_ticks(step, (most / step).floor()))
    }

    /// One place for each number from 1 on.
    pub(crate) fn numbered(title: &str, count: usize) -> Axis {
        let ticks = (1..=count).map(|number| Tick { value: number as f64, name: number.to_string() });
        Axis::new(title, 0.5, count.max(1) as f64 + 0.5, ticks.collect())
    }

    /// One place for each name, from 1 on; a number stands for one that has no room.
    pub(crate) fn named(title: &str, names: &[&str]) -> Axis {
        let mut axis = Axis::numbered(title, names.len());
        let letters_max = NAME_ROOM / names.len().max(1);
        if names.iter().all(|name| name.chars().count() <= letters_max) {
            axis.ticks.iter_mut().zip(names).for_each(|(tick, name)| tick.name = (*name).to_owned());
        }
        axis
    }

    /// Percentiles by how many nines they have: 90% is 1, 99% is 2.
    pub(crate) fn nines(title: &str, most: f64) -> Axis {
        let most = sound(most).clamp(1.0, NINES_MAX);
        let tick = |nines: u32| Tick { value: f64::from(nines), name: percentile(nines) };
        Axis::new(title, 0.0, most, (0..=most as u32).map(tick).collect())
    }

    /// Microseconds by their logarithm, between the round values around two.
    pub(crate) fn log_us(title: &str, least: f64, most: f64) -> Axis {
        let low = round_below(sound(least).max(1.0));
        let high = round_above(sound(most).max(low * 1.5));
        let mut axis = Axis::new(title, low, high, log_ticks(low, high));
        axis.is_log = true;
        axis
    }

    fn new(title: &str, low: f64, high: f64, ticks: Vec<Tick>) -> Axis {
        Axis { title: title.to_owned(), is_log: false, low, high, ticks }
    }

    /// Where a value stands: 0 at the low end, 1 at the high one, no further.
    pub(crate) fn part(&self, value: f64) -> f64 {
        let part = match self.is_log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        part.clamp(0.0, 1.0)
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn ticks(&self) -> &[Tick] {
        &self.ticks
    }
}

/// An end that can be divided by, whatever the data say.
fn sound(most: f64) -> f64 {
    if most.is_finite() && most > 0.0 { most.clamp(1e-6, 1e15) } else { 1.0 }
}

fn linear_ticks(step: f64, count: f64) -> Vec<Tick> {
    let name = |value: f64| match step {
        _ if step >= 1.0 || value == 0.0 => words::count(value.round() as u64),
        _ => format!("{value:.*}", (-step.log10()).ceil().clamp(1.0, 9.0) as usize),
    };
    let tick = |index: u32| {
        let value = f64::from(index) * step;
        Tick { value, name: name(value) }
    };
    (0..=count as u32).map(tick).collect()
}

/// 1, 2 or 5 times a power of ten.
fn nice_step(most: f64) -> f64 {
    let exact = most / TICK_COUNT;
    let power = 10f64.powf(exact.log10().floor());
    let factors = [1.0, 2.0, 5.0];
    factors.into_iter().map(|factor| factor * power).find(|step| *step >= exact).unwrap_or(power * 10.0)
}

fn power_below(value: f64) -> f64 {
    10f64.powf((value.log10() + 1e-9).floor())
}

fn round_below(value: f64) -> f64 {
    let power = power_below(value);
    [5.0, 2.0].into_iter().map(|factor| factor * power).find(|round| *round <= value).unwrap_or(power)
}

fn round_above(value: f64) -> f64 {
    let power = power_below(value);
    let factors = [1.0, 2.0, 5.0];
    factors.into_iter().map(|factor| factor * power).find(|round| *round >= value).unwrap_or(power * 10.0)
}

fn log_ticks(low: f64, high: f64) -> Vec<Tick> {
    let decades = (high / low).log10();
    let mut ticks = Vec::new();
    let mut power = power_below(low);
    while power <= high {
        for digit in 1..=9u32 {
            let value = power * f64::from(digit);
            let is_named = digit == 1 || decades <= FEW_DECADES && (digit == 2 || digit == 5);
            if value < low * 0.999 || value > high * 1.001 || !is_named && decades > MANY_DECADES {
                continue;
            }
            ticks.push(Tick { value, name: if is_named { words::round_time(value) } else { String::new() } });
        }
        power *= 10.0;
    }
    ticks
}

fn percentile(nines: u32) -> String {
    match nines {
        0 => "0%".to_owned(),
        1 => "90%".to_owned(),
        2 => "99%".to_owned(),
        _ => format!("99.{}%", "9".repeat(nines as usize - 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks().iter().map(|tick| tick.name.as_str()).filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(names(&Axis::linear("", 2_345.0)), ["0", "500", "1,000", "1,500", "2,000", "2,500"]);
        assert_eq!(names(&Axis::linear("", 0.25)), ["0", "0.05", "0.10", "0.15", "0.20", "0.25"]);
        assert_eq!(names(&Axis::up_to("", 120.0)), ["0", "20", "40", "60", "80", "100", "120"]);
        assert_eq!(names(&Axis::up_to("", 1.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    }

    #[test]
    fn log_ticks_are_powers_of_ten_or_halves_of_a_short_axis() {
        assert_eq!(names(&Axis::log_us("", 130.0, 2e6)), ["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]);
        assert_eq!(names(&Axis::log_us("", 130.0, 900.0)), ["100 µs", "200 µs", "500 µs", "1 ms"]);
        assert_eq!(names(&Axis::log_us("", 0.0, 0.0)), ["1 µs", "2 µs"]);
        let axis = Axis::log_us("", 100.0, 10_000.0);
        assert_eq!(
            [10.0, 100.0, 1000.0, 1e4, 1e9].map(|us| (axis.part(us) * 2.0).round()),
            [0.0, 0.0, 1.0, 2.0, 2.0]
        );
    }

    #[test]
    fn percentiles_stand_by_their_nines() {
        assert_eq!(names(&Axis::nines("", 4.3)), ["0%", "90%", "99%", "99.9%", "99.99%"]);
        assert_eq!(names(&Axis::numbered("", 3)), ["1", "2", "3"]);
    }

    #[test]
    fn no_axis_divides_by_nothing() {
        for most in [0.0, f64::NAN, f64::INFINITY, -1.0, f64::MIN_POSITIVE] {
            for axis in [Axis::linear("", most), Axis::up_to("", most), Axis::nines("", most)] {
                assert!(axis.high > axis.low && axis.ticks.len() < 20, "{most}: {axis:?}");
            }
        }
    }
}
