//! Options of `UnifiedCompactionStrategy`.

use super::super::properties::double;
use super::human_size::{pretty, size};
use super::written::{Map, integer, is_boolean, refuse};
use crate::QueryError;

pub(super) const KNOWN: [&str; 10] = [
    "base_shard_count",
    "expired_sstable_check_frequency_seconds",
    "flush_size_override",
    "max_sstables_to_compact",
    "min_sstable_size",
    "overlap_inclusion_method",
    "scaling_parameters",
    "sstable_growth",
    "target_sstable_size",
    "unsafe_aggressive_sstable_expiration",
];

const TARGET_BYTES_DEFAULT: i64 = 1 << 30;
const TARGET_BYTES_MIN: i64 = 1 << 20;

/// Checks the values, in Cassandra's order.
pub(super) fn check(options: &Map) -> Result<(), QueryError> {
    if let Some(text) = options.get("scaling_parameters") {
        // Java leaves empty parts at the end out, and nothing else.
        let parts = text.trim_end_matches(',');
        let parts = if parts.is_empty() && !text.is_empty() { "" } else { parts };
        parts.split(',').try_for_each(|part| scaling_parameter(part.trim()))?;
    }
    if let Some(count) = integer::<i32>(options, "base_shard_count")?.filter(|count| *count <= 0) {
        return refuse(format!("Invalid configuration, base_shard_count should be positive: {count}"));
    }
    let target = target_bytes(options)?;
    if let Some(text) = options.get("flush_size_override") {
        at_least_a_megabyte("flush_size_override", text)?;
    }
    integer::<i32>(options, "max_sstables_to_compact")?;
    check_expiration(options)?;
    if let Some(text) = options.get("overlap_inclusion_method")
        && !matches!(text.to_uppercase().as_str(), "NONE" | "SINGLE" | "TRANSITIVE")
    {
        return refuse(format!(
            "Invalid overlap inclusion method {text}. The valid options are [NONE, SINGLE, TRANSITIVE]."
        ));
    }
    check_min_bytes(options, target)?;
    check_growth(options)
}

/// `N`, `T4`, `L10`, or a number.
fn scaling_parameter(text: &str) -> Result<(), QueryError> {
    let is_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let signed = text.strip_prefix(['+', '-']).unwrap_or(text);
    if text == "N" || is_digits(signed) {
        return Ok(());
    }
    match text.strip_prefix(['L', 'T']).filter(|digits| is_digits(digits)).map(str::parse::<i32>) {
        Some(Ok(fan)) if fan >= 2 => Ok(()),
        Some(Ok(_)) => refuse(format!("Fan factor cannot be lower than 2 in {text}")),
        _ => refuse(format!("Scaling parameter {text} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+")),
    }
}

fn at_least_a_megabyte(name: &str, text: &str) -> Result<i64, QueryError> {
    let bytes = match size(text) {
        Ok(bytes) => bytes,
        Err(problem) => return refuse(format!("{name} {text} is not a valid size in bytes: {problem}")),
    };
    if name == "target_sstable_size" && bytes >= i64::MAX as f64 {
        return refuse(format!("{name} {text} is out of range of Long."));
    }
    if bytes < TARGET_BYTES_MIN as f64 {
        let least = pretty(TARGET_BYTES_MIN);
        return refuse(format!("{name} {text} is not acceptable, size must be at least {least}"));
    }
    Ok(bytes.ceil() as i64)
}

fn target_bytes(options: &Map) -> Result<i64, QueryError> {
    match options.get("target_sstable_size") {
        Some(text) => at_least_a_megabyte("target_sstable_size", text),
        None => Ok(TARGET_BYTES_DEFAULT),
    }
}

fn check_expiration(options: &Map) -> Result<(), QueryError> {
    let name = "expired_sstable_check_frequency_seconds";
    match options.get(name).map(|text| text.parse::<i64>().map_err(|_| text)) {
        Some(Err(text)) => return refuse(format!("{text} is not a parsable long (base10) for {name}")),
        Some(Ok(seconds)) if seconds <= 0 => {
            return refuse(format!("Invalid configuration, {name} should be positive: {seconds}"));
        }
        _ => {}
    }
    let name = "unsafe_aggressive_sstable_expiration";
    match options.get(name).filter(|text| !is_boolean(text)) {
        Some(text) => refuse(format!("{name} should either be 'true' or 'false', not {text}")),
        None => Ok(()),
    }
}

fn check_min_bytes(options: &Map, target: i64) -> Result<(), QueryError> {
    let Some(text) = options.get("min_sstable_size") else { return Ok(()) };
    let Ok(bytes) = size(text) else {
        return refuse(format!("{text} is not a valid size in bytes for min_sstable_size"));
    };
    let bytes = bytes as i64;
    if bytes < 0 {
        return refuse(
            "Invalid configuration, min_sstable_size should be greater than or equal to 0 (zero)".to_owned(),
        );
    }
    if bytes >= (target as f64 * std::f64::consts::FRAC_1_SQRT_2).ceil() as i64 {
        return refuse(format!(
            "Invalid configuration, min_sstable_size ({}) should be less than 70% of the targetSSTableSize ({})",
            pretty(bytes),
            pretty(target)
        ));
    }
    Ok(())
}

fn check_growth(options: &Map) -> Result<(), QueryError> {
    let Some(text) = options.get("sstable_growth") else { return Ok(()) };
    let trimmed = text.trim();
    let (number, divisor) = match trimmed.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (trimmed, 1.0),
    };
    let Some(growth) = double(number) else {
        return refuse(format!(
            "sstable_growth is not a valid number between 0 and 1: For input string: \"{number}\""
        ));
    };
    if !(0.0..=1.0).contains(&(growth / divisor)) {
        return refuse(format!("sstable_growth {text} must be between 0 and 1"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, value: &str) -> String {
        let options = [(name.to_owned(), value.to_owned())].into();
        check(&options).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_defaults_of_the_latest_profile_are_fine() {
        for (name, value) in [
            ("scaling_parameters", "T4"),
            ("scaling_parameters", "T4, L10 ,N,-2"),
            ("target_sstable_size", "1GiB"),
            ("min_sstable_size", "100MiB"),
            ("sstable_growth", "0.3333333333333333"),
            ("sstable_growth", "33%"),
            ("max_sstables_to_compact", "64"),
        ] {
            assert_eq!(refusal(name, value), "", "{name}");
        }
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        assert_eq!(
            refusal("target_sstable_size", "5KiB"),
            "target_sstable_size 5KiB is not acceptable, size must be at least 1.000MiB"
        );
        assert_eq!(
            refusal("min_sstable_size", "1GiB"),
            "Invalid configuration, min_sstable_size (1.000GiB) should be less than 70% of the targetSSTableSize (1.000GiB)"
        );
        assert_eq!(refusal("scaling_parameters", "T1"), "Fan factor cannot be lower than 2 in T1");
    }
}
