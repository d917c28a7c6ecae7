//! How often something took how long, counted in few numbers, by any thread and for any thread to read.
//!
//! ```text
//!   µs      0 1 2 3 │ 4 5 6 7 │ 8 10 12 14 │ 16 20 24 28 │ 32 …     where each bucket begins
//! ```
//!
//! From four on, times between two powers of two are counted in four buckets, so that a time is known to a quarter of
//! it.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets between two powers of two: so many bits of a time tell which.
const PART_BITS: u32 = 2;
const PART_COUNT: usize = 1 << PART_BITS;
/// The last one has all that took more than eleven days.
const BUCKET_COUNT: usize = PART_COUNT * 39;
const _: () = assert!(BUCKET_COUNT / PART_COUNT < u64::BITS as usize, "each bucket begins at a number");

/// Counts while there is more to count.
#[derive(Debug)]
pub struct Histogram {
    counts: [AtomicU64; BUCKET_COUNT],
    micros: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: [const { AtomicU64::new(0) }; BUCKET_COUNT], micros: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// So many things have each taken so long.
    pub fn note(&self, time: Duration, count: u64) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket_of(micros)].fetch_add(count, Ordering::Relaxed);
        self.micros.fetch_add(micros.saturating_mul(count), Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        let counts = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        Counts { counts: counts.to_vec(), micros: self.micros.load(Ordering::Relaxed) }
    }

    /// Forgets what was counted.
    pub fn clear(&self) {
        self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        self.micros.store(0, Ordering::Relaxed);
    }
}

/// Counts at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By the index of the bucket; none where nothing was counted.
    counts: Vec<u64>,
    micros: u64,
}

impl Counts {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What all of them took together.
    pub fn total(&self) -> Duration {
        Duration::from_micros(self.micros)
    }

    /// The time within which so many of a hundred were over, rounded up; `None` when there were none.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let wanted = (self.count() as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(Duration::from_micros(end_of(bucket)))
    }

    /// What the shortest took, rounded down; `None` when there were none.
    pub fn shortest(&self) -> Option<Duration> {
        let bucket = self.counts.iter().position(|count| *count > 0)?;
        Some(Duration::from_micros(begin_of(bucket)))
    }

    /// How many took less than each power of two of microseconds up to that one.
    pub fn below(&self, power_max: u32) -> impl Iterator<Item = (Duration, u64)> {
        (PART_BITS..=power_max).map(|power| {
            let micros = 1u64 << power;
            let counts = self.counts.iter().take(bucket_of(micros));
            (Duration::from_micros(micros), counts.sum())
        })
    }
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, more: &Counts) {
        self.counts.resize(self.counts.len().max(more.counts.len()), 0);
        self.counts.iter_mut().zip(&more.counts).for_each(|(count, more)| *count += more);
        self.micros += more.micros;
    }
}

fn bucket_of(micros: u64) -> usize {
    let power = micros.max(1).ilog2();
    if power < PART_BITS {
        return micros as usize;
    }
    let part = (micros >> (power - PART_BITS)) as usize % PART_COUNT;
    ((power - PART_BITS + 1) as usize * PART_COUNT + part).min(BUCKET_COUNT - 1)
}

/// The least microseconds that are counted there.
fn begin_of(bucket: usize) -> u64 {
    let (power, part) = (bucket / PART_COUNT, bucket % PART_COUNT);
    match power.checked_sub(1) {
        None => part as u64,
        Some(shift) => ((PART_COUNT + part) as u64) << shift,
    }
}

/// The first microseconds that are not.
fn end_of(bucket: usize) -> u64 {
    begin_of(bucket + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(times: &[(u64, u64)]) -> Counts {
        let histogram = Histogram::default();
        times.iter().for_each(|(micros, count)| histogram.note(Duration::from_micros(*micros), *count));
        histogram.counts()
    }

    #[test]
    fn buckets_follow_each_other_and_each_time_lies_in_its_own() {
        assert_eq!(begin_of(0), 0);
        for bucket in 0..BUCKET_COUNT - 1 {
            let (begin, end) = (begin_of(bucket), end_of(bucket));
            assert!(begin < end && (end - begin) * 4 <= begin.max(4), "{begin} to {end}");
            assert_eq!([bucket_of(begin), bucket_of(end - 1), bucket_of(end)], [bucket, bucket, bucket + 1]);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKET_COUNT - 1);
    }

    #[test]
    fn percentiles_are_rounded_up_to_the_end_of_their_bucket() {
        let micros = |time: Option<Duration>| time.map(|time| time.as_micros() as u64);
        let counts = counted(&[(3, 50), (100, 48), (5_000, 2)]);
        let percentiles =
            [0.0, 50.0, 51.0, 98.0, 99.0, 100.0].map(|percent| micros(counts.percentile(percent)));
        assert_eq!(percentiles, [4, 4, 112, 112, 5_120, 5_120].map(Some));
        assert_eq!((counts.count(), micros(counts.shortest())), (100, Some(3)));
        assert_eq!(counts.total(), Duration::from_micros(3 * 50 + 100 * 48 + 5_000 * 2));
        let none = Counts::default();
        assert_eq!((none.percentile(50.0), none.shortest(), none.count()), (None, None, 0));
    }

    #[test]
    fn as_many_are_below_a_power_of_two_as_took_less() {
        let below = |counts: Counts| -> Vec<(u64, u64)> {
            counts.below(6).map(|(time, count)| (time.as_micros() as u64, count)).collect()
        };
        let counts = counted(&[(0, 1), (5, 2), (7, 4), (8, 8), (40, 16), (64, 32)]);
        assert_eq!(below(counts), [(4, 1), (8, 7), (16, 15), (32, 15), (64, 31)]);
        assert_eq!(below(Counts::default()), [4, 8, 16, 32, 64].map(|micros| (micros, 0)));
    }

    #[test]
    fn counts_of_several_are_added_and_can_be_forgotten() {
        let mut sum = Counts::default();
        for counts in [counted(&[(3, 1), (9, 2)]), counted(&[(9, 4)])] {
            sum += &counts;
        }
        assert_eq!(sum, counted(&[(9, 6), (3, 1)]));
        let histogram = Histogram::default();
        histogram.note(Duration::from_millis(7), 3);
        histogram.clear();
        assert_eq!((histogram.counts().count(), histogram.counts().total()), (0, Duration::ZERO));
    }
}
