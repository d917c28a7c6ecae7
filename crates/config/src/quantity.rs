//! Sizes and times as people write them: `512MiB`, `1G`, `10s`, `200ms`.

use std::time::Duration;

const SIZE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1 << 40),
    ("tib", 1 << 40),
];

const TIME_UNITS: &[(&str, u64)] =
    &[("us", 1), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000)];

/// Reads a size in bytes. Units are powers of 1024 whichever way they are written; a bare number
/// is bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let problem = "not a size: write a whole number and B, KiB, MiB, GiB or TiB, as in 512MiB or 1G";
    parse(text, SIZE_UNITS).ok_or_else(|| problem.to_owned())
}

/// Reads a time; a bare number is none.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let problem = "not a time: write a whole number and us, ms, s, m or h, as in 200ms or 10s";
    parse(text, TIME_UNITS).map(Duration::from_micros).ok_or_else(|| problem.to_owned())
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let unit = unit.trim().to_ascii_lowercase();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// A size as people write it, in the largest unit that leaves a whole number.
pub(crate) fn show_size(bytes: u64) -> String {
    let units = [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_all_their_spellings() {
        for (text, bytes) in [
            ("512MiB", 512 << 20),
            ("512 mb", 512 << 20),
            ("1G", 1 << 30),
            ("64k", 65536),
            ("4096", 4096),
            ("0", 0),
            ("2TiB", 2 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1", "1.5G", "1X", "99999999999999999999", "18446744073709551615K"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_and_bare_numbers_are_not() {
        assert_eq!(parse_time("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_time("200 ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_time("1h"), Ok(Duration::from_secs(3600)));
        assert!(parse_time("10").is_err());
        assert!(parse_time("ten").is_err());
    }

    #[test]
    fn sizes_are_shown_as_they_would_be_written() {
        for text in ["512MiB", "1GiB", "1536MiB", "7", "16MiB", "2TiB"] {
            assert_eq!(parse_size(text).map(show_size), Ok(text.to_owned()));
        }
    }
}
