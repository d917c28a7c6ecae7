//! `compaction = {'class': …}`: the strategies Cassandra has and the options each understands.
//!
//! All of them can be asked for and are kept as they were written, so that a schema of Cassandra's
//! is taken and given back unchanged.

use schema::CompactionOptions;

use super::super::properties::{double, double_text};
use super::unified;
use super::written::{Map, integer, is_boolean, refuse};
use crate::QueryError;

/// Classes without a dot are here.
const PACKAGE: &str = "org.apache.cassandra.db.compaction.";

const STRATEGIES: [&str; 4] = [
    "LeveledCompactionStrategy",
    "SizeTieredCompactionStrategy",
    "TimeWindowCompactionStrategy",
    "UnifiedCompactionStrategy",
];

/// Options of every strategy.
const COMMON: [&str; 7] = [
    "enabled",
    "log_all",
    "only_purge_repaired_tombstones",
    "provide_overlapping_tombstones",
    "tombstone_compaction_interval",
    "tombstone_threshold",
    "unchecked_tombstone_compaction",
];
const SIZE_TIERED: [&str; 5] =
    ["bucket_high", "bucket_low", "max_threshold", "min_sstable_size", "min_threshold"];
const LEVELED: [&str; 3] = ["fanout_size", "single_sstable_uplevel", "sstable_size_in_mb"];
const TIME_WINDOW: [&str; 5] = [
    "compaction_window_size",
    "compaction_window_unit",
    "expired_sstable_check_frequency_seconds",
    "timestamp_resolution",
    "unsafe_aggressive_sstable_expiration",
];

/// Levels a leveled strategy can have.
const LEVEL_COUNT_MAX: u32 = 9;

/// The map as it was written, its class found and thresholds filled in.
pub(super) fn read(map: &[(&str, &str)]) -> Result<CompactionOptions, QueryError> {
    let mut options: Map = map.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let Some(written) = options.remove("class") else {
        return Err(QueryError::config("Missing sub-option 'class' for the 'compaction' option"));
    };
    let class = if written.contains('.') { written } else { format!("{PACKAGE}{written}") };
    if !STRATEGIES.contains(&short(&class)) {
        return Err(QueryError::config(format!("Unable to find compaction strategy class '{class}'")));
    }
    if let Some(written) = options.get("provide_overlapping_tombstones") {
        let upper = written.to_uppercase();
        if !matches!(upper.as_str(), "NONE" | "ROW" | "CELL") {
            return Err(QueryError::config(format!(
                "Invalid value {upper} for 'provide_overlapping_tombstones' compaction sub-option - must be one of \
                 the following [NONE, ROW, CELL]."
            )));
        }
    }
    if short(&class) != "UnifiedCompactionStrategy" {
        options.entry("min_threshold".into()).or_insert_with(|| "4".into());
        options.entry("max_threshold".into()).or_insert_with(|| "32".into());
    }
    Ok(CompactionOptions { class, options })
}

fn short(class: &str) -> &str {
    class.strip_prefix(PACKAGE).unwrap_or_default()
}

/// Checks the options of a strategy, in Cassandra's order.
pub(super) fn validate(compaction: &CompactionOptions) -> Result<(), QueryError> {
    let options = &compaction.options;
    let strategy = short(&compaction.class);
    check_common(options)?;
    let known: Vec<&str> = match strategy {
        "UnifiedCompactionStrategy" => {
            unified::check(options)?;
            unified::KNOWN.to_vec()
        }
        "LeveledCompactionStrategy" => {
            check_leveled(options)?;
            check_size_tiered(options)?;
            [&LEVELED[..], &SIZE_TIERED].concat()
        }
        "TimeWindowCompactionStrategy" => {
            check_time_window(options)?;
            check_size_tiered(options)?;
            [&TIME_WINDOW[..], &SIZE_TIERED].concat()
        }
        _ => {
            check_size_tiered(options)?;
            SIZE_TIERED.to_vec()
        }
    };
    let is_unknown = |option: &&str| !COMMON.contains(option) && !known.contains(option);
    let unknown: Vec<&str> = options.keys().map(String::as_str).filter(is_unknown).collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(", ");
        return refuse(format!("Properties specified [{unknown}] are not understood by {strategy}"));
    }
    check_thresholds(options)
}

fn check_common(options: &Map) -> Result<(), QueryError> {
    if let Some(text) = options.get("tombstone_threshold") {
        let Some(threshold) = double(text) else {
            return refuse(format!("{text} is not a parsable int (base10) for tombstone_threshold"));
        };
        if threshold < 0.0 {
            return refuse(format!("tombstone_threshold must be greater than 0, but was {threshold:.6}"));
        }
    }
    if let Some(interval) =
        integer::<i64>(options, "tombstone_compaction_interval")?.filter(|seconds| *seconds < 0)
    {
        return refuse(format!("tombstone_compaction_interval must be greater than 0, but was {interval}"));
    }
    let wrong = |name: &str| options.get(name).filter(|text| !is_boolean(text));
    if let Some(text) = wrong("unchecked_tombstone_compaction") {
        return refuse(format!(
            "'unchecked_tombstone_compaction' should be either 'true' or 'false', not '{text}'"
        ));
    }
    if let Some(text) = wrong("log_all") {
        return refuse(format!("'log_all' should either be 'true' or 'false', not {text}"));
    }
    if let Some(text) = wrong("enabled") {
        return refuse(format!("enabled should either be 'true' or 'false', not {text}"));
    }
    Ok(())
}

fn check_size_tiered(options: &Map) -> Result<(), QueryError> {
    if let Some(size) = integer::<i64>(options, "min_sstable_size")?.filter(|bytes| *bytes < 0) {
        return refuse(format!("min_sstable_size must be non negative: {size}"));
    }
    let bucket = |name: &str, default: f64| match options.get(name) {
        None => Ok(default),
        Some(text) => double(text)
            .ok_or_else(|| QueryError::Config(format!("{text} is not a parsable float for {name}"))),
    };
    let low = bucket("bucket_low", 0.5)?;
    let high = bucket("bucket_high", 1.5)?;
    if high <= low {
        return refuse(format!(
            "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
            double_text(high),
            double_text(low)
        ));
    }
    Ok(())
}

fn check_leveled(options: &Map) -> Result<(), QueryError> {
    let positive = |name: &str, default: i32| match integer::<i32>(options, name)?.unwrap_or(default) {
        number if number < 1 => refuse(format!("{name} must be larger than 0, but was {number}")),
        number => Ok(number.unsigned_abs()),
    };
    let megabytes = positive("sstable_size_in_mb", 1)?;
    let fanout = positive("fanout_size", 10)?;
    let level = num_bigint::BigUint::from(fanout).pow(LEVEL_COUNT_MAX - 1) * (u64::from(megabytes) << 20);
    if level > num_bigint::BigUint::from(i64::MAX.unsigned_abs()) {
        return refuse(format!(
            "At most {} bytes may be in a compaction level; your maxSSTableSize must be absurdly high to compute \
             {level}",
            i64::MAX
        ));
    }
    Ok(())
}

fn check_time_window(options: &Map) -> Result<(), QueryError> {
    let unit =
        |name: &str, known: &[&str]| match options.get(name).filter(|text| !known.contains(&text.as_str())) {
            Some(text) => refuse(format!("{text} is not valid for {name}")),
            None => Ok(()),
        };
    unit("timestamp_resolution", &["SECONDS", "MILLISECONDS", "MICROSECONDS", "NANOSECONDS"])?;
    unit("compaction_window_unit", &["MINUTES", "HOURS", "DAYS"])?;
    if let Some(size) = integer::<i32>(options, "compaction_window_size")?.filter(|size| *size < 1) {
        return refuse(format!("{size} must be greater than 1 for compaction_window_size"));
    }
    let frequency = integer::<i64>(options, "expired_sstable_check_frequency_seconds")?;
    if let Some(seconds) = frequency.filter(|seconds| *seconds < 0) {
        return refuse(format!(
            "expired_sstable_check_frequency_seconds must not be negative, but was {seconds}"
        ));
    }
    match options.get("unsafe_aggressive_sstable_expiration") {
        Some(text) if !is_boolean(text) => {
            refuse(format!("unsafe_aggressive_sstable_expiration is not 'true' or 'false' ({text})"))
        }
        Some(text) if text.eq_ignore_ascii_case("true") => refuse(
            "unsafe_aggressive_sstable_expiration is requested but not allowed, restart cassandra with \
             -Dcassandra.allow_unsafe_aggressive_sstable_expiration=true to allow it"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

fn check_thresholds(options: &Map) -> Result<(), QueryError> {
    let threshold = |name: &str, default: i32| {
        let Some(text) = options.get(name) else { return Ok(default) };
        match text.parse::<i32>() {
            Ok(number) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
            _ => refuse(format!(
                "Invalid value {text} for '{name}' compaction sub-option - must be an integer"
            )),
        }
    };
    let min = threshold("min_threshold", 4)?;
    let max = threshold("max_threshold", 32)?;
    if min <= 0 || max <= 0 {
        return refuse(
            "Disabling compaction by setting compaction thresholds to 0 has been removed, set the compaction option \
             'enabled' to false instead."
                .to_owned(),
        );
    }
    if min <= 1 {
        return refuse(format!("Min compaction threshold cannot be less than 2 (got {min})"));
    }
    if min > max {
        return refuse(format!(
            "Min compaction threshold (got {min}) cannot be greater than max compaction threshold (got {max})"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(map: &[(&str, &str)], expected: &str) {
        let answer = read(map).and_then(|options| validate(&options));
        let message = answer.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(message, expected, "{map:?}");
    }

    #[test]
    fn thresholds_are_filled_in_where_a_strategy_has_them() {
        let tiered =
            read(&[("class", "SizeTieredCompactionStrategy"), ("min_threshold", "6")]).expect("read");
        assert_eq!(
            tiered,
            CompactionOptions {
                class: "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy".into(),
                options: [("max_threshold".into(), "32".into()), ("min_threshold".into(), "6".into())].into(),
            }
        );
        let unified = read(&[("class", "UnifiedCompactionStrategy")]).expect("read");
        assert!(unified.options.is_empty());
    }

    #[test]
    fn options_of_other_strategies_are_not_understood() {
        check(&[("class", "LeveledCompactionStrategy"), ("sstable_size_in_mb", "160")], "");
        check(
            &[("class", "SizeTieredCompactionStrategy"), ("sstable_size_in_mb", "160"), ("b", "")],
            "Properties specified [b, sstable_size_in_mb] are not understood by SizeTieredCompactionStrategy",
        );
        check(
            &[("class", "UnifiedCompactionStrategy"), ("min_threshold", "4")],
            "Properties specified [min_threshold] are not understood by UnifiedCompactionStrategy",
        );
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let tiered = |name, value, expected| {
            check(&[("class", "SizeTieredCompactionStrategy"), (name, value)], expected)
        };
        tiered(
            "tombstone_threshold",
            "-0.5",
            "tombstone_threshold must be greater than 0, but was -0.500000",
        );
        tiered("enabled", "perhaps", "enabled should either be 'true' or 'false', not perhaps");
        tiered("min_sstable_size", "1.5", "1.5 is not a parsable int (base10) for min_sstable_size");
        check(
            &[("class", "LeveledCompactionStrategy"), ("fanout_size", "1000")],
            "At most 9223372036854775807 bytes may be in a compaction level; your maxSSTableSize must be absurdly \
             high to compute 1048576000000000000000000000000",
        );
    }
}
