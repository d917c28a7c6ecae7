//! Numbers, counted in buckets.

use std::marker::PhantomData;

use crate::PercentileStats;

/// As many numbers of one length in bits share.
const BUCKETS_PER_LENGTH: u64 = 4;
/// So many of the highest bits tell these apart: log2 of the above, and the highest, which is always set.
const BITS_TOLD_APART: u32 = 3;

/// How often numbers were recorded, each as exactly as its bucket. The parameter is that of the crate that this one
/// stands in for, and only ever `()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram<T = ()> {
    /// How many numbers are in each bucket, up to the last that has some.
    counts: Vec<u64>,
    kind: PhantomData<T>,
}

impl<T> Default for Histogram<T> {
    fn default() -> Self {
        Histogram::new()
    }
}

impl<T> Histogram<T> {
    /// Nothing is recorded yet, and nothing allocated.
    pub const fn new() -> Self {
        Histogram { counts: Vec::new(), kind: PhantomData }
    }

    /// Records a number.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Records a number several times.
    pub fn record_n(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        let bucket = bucket_of(value);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += count;
    }

    /// How many were recorded.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The usual percentiles.
    pub fn percentile_stats(&self) -> PercentileStats {
        PercentileStats {
            samples: self.total(),
            p0_1: self.permille(1),
            p1: self.permille(10),
            p5: self.permille(50),
            p10: self.permille(100),
            p50: self.permille(500),
            p90: self.permille(900),
            p99: self.permille(990),
            p99_9: self.permille(999),
        }
    }

    /// The least number of the bucket in which so many thousandths of all numbers are reached; 0 if there are none.
    fn permille(&self, permille: u128) -> u64 {
        let rank = (u128::from(self.total()) * permille).div_ceil(1000);
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += u128::from(*count);
            seen >= rank
        });
        bucket.map_or(0, least_in)
    }
}

/// In which bucket a number is counted.
fn bucket_of(value: u64) -> usize {
    if value < BUCKETS_PER_LENGTH {
        return usize::try_from(value).expect("it is small");
    }
    let shift = u64::BITS - value.leading_zeros() - BITS_TOLD_APART;
    let bucket = u64::from(shift) * BUCKETS_PER_LENGTH + (value >> shift);
    usize::try_from(bucket).expect("there are 252 buckets")
}

/// The least number that is counted in a bucket.
fn least_in(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / BUCKETS_PER_LENGTH).saturating_sub(1);
    (bucket - shift * BUCKETS_PER_LENGTH) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_from_nought_to_the_largest_number() {
        for bucket in 0..252 {
            let least = least_in(bucket);
            assert_eq!(bucket_of(least), bucket);
            if let Some(before) = least.checked_sub(1) {
                assert_eq!(bucket_of(before), bucket - 1);
            }
        }
        assert_eq!(bucket_of(u64::MAX), 251);
    }

    #[test]
    fn a_number_is_off_by_less_than_a_quarter() {
        for value in
            (0..64).flat_map(|shift| [1 << shift, (1 << shift) | (1 << shift >> 1), u64::MAX >> shift])
        {
            let least = least_in(bucket_of(value));
            assert!(least <= value && value - least <= value / 4, "{value} is taken for {least}");
        }
    }

    #[test]
    fn percentiles_of_a_hundred_numbers() {
        let mut histogram = Histogram::<()>::new();
        assert_eq!(histogram.percentile_stats(), PercentileStats::default());
        histogram.record_n(1, 90);
        histogram.record_n(6, 9);
        histogram.record(1000);
        histogram.record_n(u64::MAX, 0);
        let stats = histogram.percentile_stats();
        assert_eq!((stats.samples, histogram.total()), (100, 100));
        assert_eq!((stats.p0_1, stats.p50, stats.p90, stats.p99, stats.p99_9), (1, 1, 1, 6, 896));
    }

    #[test]
    fn nothing_is_allocated_before_something_is_recorded() {
        let mut histogram = Histogram::<()>::new();
        assert_eq!(histogram.counts.capacity(), 0);
        histogram.record(u64::MAX);
        assert_eq!(histogram.counts.len(), 252);
    }

    /// Another version of openraft may want another one, and cargo would go back to that of crates.io.
    #[test]
    fn the_workspace_has_no_other_crate_of_this_name() {
        let lock = include_str!("../../../Cargo.lock");
        let of_name =
            lock.split("[[package]]").filter(|package| package.contains("name = \"base2histogram\""));
        let sources: Vec<bool> = of_name.map(|package| package.contains("source = ")).collect();
        assert_eq!(sources, [false]);
    }
}
