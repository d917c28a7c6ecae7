//! The options of unified compaction, and the sums done with them.

use super::options::Named;
use super::overlaps::Inclusion;

/// A part of the ring is cut in two so often, at most.
const SPLITS_MAX: u32 = 20;

/// The options.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnifiedOptions {
    /// One for each level, the last for all above: 0 is N, w > 0 is T(w + 2), w < 0 is L(2 - w).
    scaling: Vec<i32>,
    target_bytes: f64,
    min_bytes: u64,
    flush_bytes: u64,
    base_parts: u32,
    growth: f64,
    files_max: usize,
    pub(crate) inclusion: Inclusion,
    pub(crate) expired_check_ms: u64,
}

impl UnifiedOptions {
    pub(crate) fn of(named: Named<'_>) -> Self {
        let scaling = named.text("scaling_parameters").unwrap_or("T4");
        let scaling: Vec<i32> = scaling.split(',').filter_map(scaling_parameter).collect();
        UnifiedOptions {
            scaling: if scaling.is_empty() { vec![2] } else { scaling },
            target_bytes: named.bytes("target_sstable_size", 1 << 30).max(1) as f64,
            min_bytes: named.bytes("min_sstable_size", 100 << 20),
            flush_bytes: named.bytes("flush_size_override", 0),
            base_parts: named.number("base_shard_count", 4u32).clamp(1, 1 << 10),
            growth: named.text("sstable_growth").and_then(fraction).unwrap_or(0.333).clamp(0.0, 1.0),
            files_max: match named.number("max_sstables_to_compact", 0i64) {
                count if count > 0 => usize::try_from(count).unwrap_or(usize::MAX),
                _ => usize::MAX,
            },
            inclusion: match named.text("overlap_inclusion_method").map(str::to_uppercase).as_deref() {
                Some("NONE") => Inclusion::None,
                Some("SINGLE") => Inclusion::Single,
                _ => Inclusion::Transitive,
            },
            expired_check_ms: named
                .number("expired_sstable_check_frequency_seconds", 600u64)
                .saturating_mul(1_000),
        }
    }

    /// The scaling parameter of a level.
    pub(crate) fn scaling(&self, level: usize) -> i32 {
        self.scaling.get(level).or(self.scaling.last()).copied().unwrap_or(2)
    }

    /// How many times as dense a level may be as the one below.
    pub(crate) fn fanout(&self, level: usize) -> usize {
        2 + self.scaling(level).unsigned_abs() as usize
    }

    /// How many files that overlap are merged.
    pub(crate) fn threshold(&self, level: usize) -> usize {
        2 + usize::try_from(self.scaling(level)).unwrap_or(0)
    }

    /// Files that one compaction takes of those that overlap, at most.
    pub(crate) fn files_max(&self, fanout: usize) -> usize {
        self.files_max.max(fanout)
    }

    /// The density at which the 0th level ends, given what flushes are like.
    pub(crate) fn first_level_max(&self, flushed_bytes: f64) -> f64 {
        const MIB: f64 = 1_048_576.0;
        let flush = match self.flush_bytes {
            0 => (flushed_bytes / MIB).ceil() * MIB,
            bytes => bytes as f64,
        };
        let fanout = self.fanout(0) as f64;
        self.next_level_max(0, flush.max(MIB) * (1.0 - 0.9 / fanout))
    }

    /// The density at which a level ends that begins at `min`.
    pub(crate) fn next_level_max(&self, level: usize, min: f64) -> f64 {
        (min * self.fanout(level) as f64).floor()
    }

    /// Into how many parts data of a density is cut: few and small files at first, then more and larger
    /// ones, as `sstable_growth` says.
    pub(crate) fn parts(&self, density: f64) -> u32 {
        let base = self.base_parts;
        if self.min_bytes > 0 {
            let count = density / self.min_bytes as f64;
            if count < f64::from(base) || count.is_nan() {
                // The greatest power of two that is not too many and divides the base.
                let fitting = 1 << (31 - ((count as u32) | 1).leading_zeros());
                return u32::min(fitting, base & base.wrapping_neg());
            }
        }
        if self.growth == 1.0 {
            return base;
        }
        if self.growth == 0.0 {
            let count = density / (self.target_bytes * std::f64::consts::FRAC_1_SQRT_2 * f64::from(base));
            let count = count.min(f64::from(1u32 << SPLITS_MAX)) as u32;
            return base << (31 - (count | 1).leading_zeros());
        }
        let count = density / (self.target_bytes * f64::from(base));
        let power = count.log2() * (1.0 - self.growth) + 0.5;
        base << if power >= 0.0 { (power as u32).min(SPLITS_MAX) } else { 0 }
    }
}

/// `N`, `T4`, `L10`, or a number.
fn scaling_parameter(text: &str) -> Option<i32> {
    let text = text.trim();
    let fan = |digits: &str| digits.parse::<i32>().ok().filter(|fan| (2..1 << 20).contains(fan));
    match text.as_bytes().first()? {
        b'N' => Some(0),
        b'T' => fan(&text[1..]).map(|fan| fan - 2),
        b'L' => fan(&text[1..]).map(|fan| 2 - fan),
        _ => text.parse::<i32>().ok().map(|number| number.clamp(-(1 << 20), 1 << 20)),
    }
}

/// `0.5` or `50%`.
fn fraction(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn options(pairs: &[(&str, &str)]) -> UnifiedOptions {
        let map: BTreeMap<String, String> =
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        UnifiedOptions::of(Named(&map))
    }

    #[test]
    fn scaling_parameters_make_fanouts_and_thresholds() {
        let options = options(&[("scaling_parameters", "T4, N, L10, -3")]);
        let all: Vec<_> = (0..5).map(|level| (options.fanout(level), options.threshold(level))).collect();
        assert_eq!(all, [(4, 4), (2, 2), (10, 2), (5, 2), (5, 2)]);
    }

    #[test]
    fn parts_follow_density() {
        const GIB: f64 = 1_073_741_824.0;
        const MIB: f64 = 1_048_576.0;
        let check = |pairs: &[(&str, &str)], density: f64, parts: u32| {
            assert_eq!(options(pairs).parts(density), parts, "{pairs:?} {density}");
        };
        // As Cassandra's Controller.getNumShards has it, by hand.
        check(&[], 50.0 * MIB, 1);
        check(&[], 250.0 * MIB, 2);
        check(&[], 400.0 * MIB, 4);
        check(&[], 100.0 * GIB, 4 << 3);
        check(&[("sstable_growth", "0")], 100.0 * GIB, 4 << 5);
        check(&[("sstable_growth", "100%")], 100.0 * GIB, 4);
        check(&[("min_sstable_size", "0B")], 0.0, 4);
        check(&[("base_shard_count", "6")], 250.0 * MIB, 2);
        check(&[("base_shard_count", "6")], 450.0 * MIB, 2);
        check(&[("sstable_growth", "0")], f64::MAX, 4 << 20);
        check(&[("min_sstable_size", "0B")], f64::NAN, 4);
    }
}
