//! How figures are written: three digits that count, and always a unit.

/// With a comma between thousands.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of something, with a noun that takes an `s`.
pub(crate) fn several(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A figure that may be small: whole from a hundred on.
pub(super) fn figure(figure: f64) -> String {
    match figure {
        _ if !figure.is_finite() => "0".to_owned(),
        _ if figure >= 100.0 => count(figure.round() as u64),
        _ if figure >= 10.0 => format!("{figure:.1}"),
        _ if figure < 0.005 => "0".to_owned(),
        _ => format!("{figure:.2}"),
    }
}

/// A time in the unit that suits it.
pub(super) fn time(us: u64) -> String {
    let us = us as f64;
    match us {
        _ if us < 1e3 => format!("{us:.0} µs"),
        _ if us < 1e6 => format!("{} ms", figure(us / 1e3)),
        _ => format!("{} s", figure(us / 1e6)),
    }
}

/// From one time to another, with one unit if both have the same.
pub(super) fn times(low_us: u64, high_us: u64) -> String {
    let (low, high) = (time(low_us), time(high_us));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((figure, unit)), Some((_, same))) if unit == same => format!("{figure}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// A time that needs no digits behind the point, as at an axis.
pub(super) fn round_time(us: f64) -> String {
    match us {
        _ if us < 1e3 => format!("{us:.0} µs"),
        _ if us < 1e6 => format!("{:.0} ms", us / 1e3),
        _ => format!("{} s", count((us / 1e6).round() as u64)),
    }
}

/// Seconds as a plan has them: whole ones without a point.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds.fract() == 0.0 {
        true => format!("{seconds:.0} s"),
        false => format!("{seconds:.1} s"),
    }
}

/// A size of memory.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64;
    let mut name = "bytes";
    for unit in UNITS {
        if size < 1024.0 {
            break;
        }
        (size, name) = (size / 1024.0, unit);
    }
    match name {
        "bytes" => several(bytes, "byte"),
        _ => format!("{} {name}", figure(size)),
    }
}

/// A part of a whole.
pub(super) fn percent(part: f64) -> String {
    format!("{}%", figure(part * 100.0))
}

/// No more than so many characters, an ellipsis at the end of what was longer.
pub(super) fn shortened(text: &str, length_max: usize) -> String {
    match text.chars().count() > length_max {
        true => text.chars().take(length_max.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!([count(0), count(999), count(1_234_567)], ["0", "999", "1,234,567"]);
        assert_eq!(
            [time(7), time(1_234), time(56_780), time(7_000_000)],
            ["7 µs", "1.23 ms", "56.8 ms", "7.00 s"]
        );
        assert_eq!([times(100, 900), times(900, 1_234)], ["100–900 µs", "900 µs–1.23 ms"]);
        assert_eq!([bytes(1), bytes(1536), bytes(5 << 30)], ["1 byte", "1.50 KiB", "5.00 GiB"]);
        assert_eq!([figure(f64::NAN), figure(0.0), figure(1234.5)], ["0", "0", "1,235"]);
        assert_eq!([seconds(5.0), seconds(2.5)], ["5 s", "2.5 s"]);
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(shortened("µµµµ", 3), "µµ…");
        assert_eq!(shortened("µµµ", 3), "µµµ");
    }
}
