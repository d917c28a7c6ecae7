//! Table options: what `WITH` can say, checked and kept in the form everybody else reads.
//!
//! Checks come in two steps, as in Cassandra: [`read`] reads values, which happens before anything
//! is looked up; [`validate`] asks for names and ranges once the table is known.

mod caching;
mod compaction;
mod compression;
mod human_size;
mod speculative_retry;
mod unified;
mod written;

use schema::{Fraction, SpeculativeRetry, TableOptions};

use super::properties::{Properties, double_text};
use crate::QueryError;

/// Every option there is, `id` beside them.
const KNOWN: [&str; 21] = [
    "additional_write_policy",
    "allow_auto_snapshot",
    "auto_repair",
    "bloom_filter_fp_chance",
    "caching",
    "cdc",
    "comment",
    "compaction",
    "compression",
    "crc_check_chance",
    "default_time_to_live",
    "extensions",
    "gc_grace_seconds",
    "id",
    "incremental_backups",
    "max_index_interval",
    "memtable",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    "read_repair",
    "speculative_retry",
];

/// Names under which memtables are configured. They are names only: there is one memtable.
const MEMTABLES: [&str; 3] = ["default", "skiplist", "trie"];

/// Below this a Bloom filter can not be built.
const BLOOM_FILTER_FP_CHANCE_MIN: f64 = 6.71e-5;
/// Twenty years.
const TIME_TO_LIVE_MAX: u32 = 20 * 365 * 86_400;

const LEVELED: &str = "org.apache.cassandra.db.compaction.LeveledCompactionStrategy";

/// Whole numbers as they were written, to be checked when the table is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbers {
    default_time_to_live: i32,
    gc_grace_seconds: i32,
    max_index_interval: i32,
    memtable_flush_period_in_ms: i32,
    min_index_interval: i32,
}

/// Options that have been read and not yet been checked.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    options: TableOptions,
    numbers: Numbers,
    compaction_is_written: bool,
}

/// The options of a new table: those written over the defaults.
pub(super) fn read_new(properties: Properties<'_>) -> Result<Draft, QueryError> {
    let mut draft = read(properties, &TableOptions::default())?;
    if !properties.has("bloom_filter_fp_chance") && draft.options.compaction.class == LEVELED {
        draft.options.bloom_filter_fp_chance = Fraction(0.1);
    }
    Ok(draft)
}

/// The options written over those of before.
pub(super) fn read(properties: Properties<'_>, before: &TableOptions) -> Result<Draft, QueryError> {
    let mut options = before.clone();
    if let Some(allow) = properties.boolean("allow_auto_snapshot")? {
        options.allow_auto_snapshot = allow;
    }
    if let Some(chance) = properties.double("bloom_filter_fp_chance")? {
        options.bloom_filter_fp_chance = Fraction(chance);
    }
    if let Some(map) = properties.map("caching")? {
        options.caching = caching::read(&map)?;
    }
    if let Some(comment) = properties.string("comment")? {
        comment.clone_into(&mut options.comment);
    }
    if let Some(map) = properties.map("compaction")? {
        options.compaction = compaction::read(&map)?;
    }
    if let Some(map) = properties.map("compression")? {
        options.compression = compression::read(&map)?;
    }
    if let Some(memtable) = properties.string("memtable")? {
        if !MEMTABLES.contains(&memtable) {
            return Err(QueryError::config(format!("Memtable configuration \"{memtable}\" not found.")));
        }
        memtable.clone_into(&mut options.memtable);
    }
    let numbers = read_numbers(properties, &mut options)?;
    read_policies(properties, &mut options)?;
    Ok(Draft { options, numbers, compaction_is_written: properties.has("compaction") })
}

/// The whole numbers, and the one flag that stands among them.
fn read_numbers(properties: Properties<'_>, options: &mut TableOptions) -> Result<Numbers, QueryError> {
    let or_before = |name, before: u32| -> Result<i32, QueryError> {
        Ok(properties.int(name)?.unwrap_or(i32::try_from(before).unwrap_or(i32::MAX)))
    };
    let default_time_to_live = or_before("default_time_to_live", options.default_time_to_live)?;
    let gc_grace_seconds = or_before("gc_grace_seconds", options.gc_grace_seconds)?;
    if let Some(incremental) = properties.boolean("incremental_backups")? {
        options.incremental_backups = incremental;
    }
    Ok(Numbers {
        default_time_to_live,
        gc_grace_seconds,
        max_index_interval: or_before("max_index_interval", options.max_index_interval)?,
        memtable_flush_period_in_ms: or_before(
            "memtable_flush_period_in_ms",
            options.memtable_flush_period_in_ms,
        )?,
        min_index_interval: or_before("min_index_interval", options.min_index_interval)?,
    })
}

fn read_policies(properties: Properties<'_>, options: &mut TableOptions) -> Result<(), QueryError> {
    if let Some(policy) = properties.string("speculative_retry")? {
        options.speculative_retry = SpeculativeRetry(speculative_retry::canonical(policy)?);
    }
    if let Some(policy) = properties.string("additional_write_policy")? {
        options.additional_write_policy = SpeculativeRetry(speculative_retry::canonical(policy)?);
    }
    if let Some(chance) = properties.double("crc_check_chance")? {
        options.crc_check_chance = Fraction(chance);
    }
    if let Some(cdc) = properties.boolean("cdc")? {
        options.cdc = cdc;
    }
    if let Some(strategy) = properties.string("read_repair")? {
        let upper = strategy.to_uppercase();
        if !matches!(upper.as_str(), "NONE" | "BLOCKING") {
            return Err(QueryError::config(format!(
                "Invalid value {strategy} for option 'read_repair': must be BLOCKING or NONE"
            )));
        }
        options.read_repair = upper;
    }
    properties.map("auto_repair")?;
    Ok(())
}

/// Checks names, then the values of these options.
pub(super) fn validate(properties: Properties<'_>, draft: &Draft) -> Result<(), QueryError> {
    properties.check_known(&KNOWN)?;
    if properties.has("auto_repair") {
        return Err(QueryError::config(
            "auto_repair option is not supported unless auto-repair is enabled with \
             -Dcassandra.autorepair.enable=true",
        ));
    }
    if draft.compaction_is_written {
        compaction::validate(&draft.options.compaction)?;
    }
    validate_chances(&draft.options)?;
    validate_numbers(&draft.numbers)
}

/// Cassandra lets `NaN` through, which is no chance; and no JSON either, which the log is kept in.
fn validate_chances(options: &TableOptions) -> Result<(), QueryError> {
    let chance = options.bloom_filter_fp_chance.0;
    if chance <= BLOOM_FILTER_FP_CHANCE_MIN || chance > 1.0 || chance.is_nan() {
        return Err(QueryError::config(format!(
            "bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 (got {})",
            double_text(chance)
        )));
    }
    let chance = options.crc_check_chance.0;
    if !(0.0..=1.0).contains(&chance) {
        return Err(QueryError::config(format!(
            "crc_check_chance must be larger than or equal to 0 and smaller than or equal to 1.0 (got {})",
            double_text(chance)
        )));
    }
    Ok(())
}

fn validate_numbers(numbers: &Numbers) -> Result<(), QueryError> {
    let at_least = |name: &str, value: i32, least: i32| {
        if value < least {
            let message = format!("{name} must be greater than or equal to {least} (got {value})");
            return Err(QueryError::config(message));
        }
        Ok(())
    };
    let time_to_live = numbers.default_time_to_live;
    at_least("default_time_to_live", time_to_live, 0)?;
    if u32::try_from(time_to_live).is_ok_and(|seconds| seconds > TIME_TO_LIVE_MAX) {
        return Err(QueryError::config(format!(
            "default_time_to_live must be less than or equal to {TIME_TO_LIVE_MAX} (got {time_to_live})"
        )));
    }
    at_least("gc_grace_seconds", numbers.gc_grace_seconds, 0)?;
    at_least("min_index_interval", numbers.min_index_interval, 1)?;
    let (min, max) = (numbers.min_index_interval, numbers.max_index_interval);
    if max < min {
        return Err(QueryError::config(format!(
            "max_index_interval must be greater than or equal to min_index_interval ({min}) (got {max})"
        )));
    }
    at_least("memtable_flush_period_in_ms", numbers.memtable_flush_period_in_ms, 0)
}

impl Draft {
    /// The options, which have been checked.
    pub(super) fn finish(self) -> TableOptions {
        let unsigned = |number: i32| u32::try_from(number).unwrap_or(0);
        TableOptions {
            default_time_to_live: unsigned(self.numbers.default_time_to_live),
            gc_grace_seconds: unsigned(self.numbers.gc_grace_seconds),
            max_index_interval: unsigned(self.numbers.max_index_interval),
            memtable_flush_period_in_ms: unsigned(self.numbers.memtable_flush_period_in_ms),
            min_index_interval: unsigned(self.numbers.min_index_interval),
            ..self.options
        }
    }

    pub(super) fn default_time_to_live(&self) -> i32 {
        self.numbers.default_time_to_live
    }
}

/// The id written as an option, if there is one.
pub(super) fn table_id(properties: Properties<'_>) -> Result<Option<uuid::Uuid>, QueryError> {
    let Some(text) = properties.string("id")? else { return Ok(None) };
    let wrong = |_| QueryError::config("Invalid table id");
    types::uuid::parse(text).map(|bytes| Some(uuid::Uuid::from_bytes(bytes))).map_err(wrong)
}
