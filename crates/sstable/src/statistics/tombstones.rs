//! When tombstones fall due: Cassandra's streaming tombstone histogram.
//!
//! Points in time (seconds, rounded up to a minute) with a count each. When there are more than a
//! hundred, the two nearest become one at their weighted mean (Ben-Haim and Tom-Tov, 2010). A
//! spool of many more points comes first, so that most files lose nothing but the rounding.
//!
//! ```text
//!   u32 point count, twice | for each: u64 seconds, u32 count
//! ```

use std::collections::BTreeMap;

use stdx::cursor::{Cursor, EndOfInput};

/// Points in a finished histogram.
const POINT_COUNT_MAX: usize = 100;
/// Points before nearest ones are merged.
const SPOOL_POINT_COUNT_MAX: usize = 100_000;
const ROUND_SECONDS: u64 = 60;
const _: () = assert!(POINT_COUNT_MAX < SPOOL_POINT_COUNT_MAX, "merging makes room in the spool");
const _: () = assert!(POINT_COUNT_MAX <= READ_POINT_COUNT_MAX, "what is written can be read");
/// Points a foreign file may make us keep.
const READ_POINT_COUNT_MAX: usize = 1 << 16;

/// A finished histogram.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TombstoneHistogram {
    /// Seconds since 1970 and count, in rising order.
    points: Vec<(u64, u32)>,
}

impl TombstoneHistogram {
    /// Seconds and counts, in rising order.
    pub fn points(&self) -> &[(u64, u32)] {
        &self.points
    }

    /// About how many fall due up to that time (seconds); counts are spread between points.
    pub fn sum(&self, until: u32) -> f64 {
        let until = u64::from(until);
        let index = self.points.partition_point(|(point, _)| *point <= until);
        let mut sum: f64 = self.points[..index].iter().map(|(_, count)| f64::from(*count)).sum();
        let (Some(&(next, next_count)), Some(&(last, last_count))) =
            (self.points.get(index), index.checked_sub(1).and_then(|last| self.points.get(last)))
        else {
            return sum;
        };
        let (next_count, last_count) = (f64::from(next_count), f64::from(last_count));
        let weight = (until - last) as f64 / (next - last) as f64;
        let here = last_count + (next_count - last_count) * weight;
        sum -= last_count;
        sum + (last_count + here) * weight / 2.0 + last_count / 2.0
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let count = (self.points.len() as u32).to_be_bytes();
        out.extend_from_slice(&count);
        out.extend_from_slice(&count);
        for (point, count) in &self.points {
            out.extend_from_slice(&point.to_be_bytes());
            out.extend_from_slice(&count.to_be_bytes());
        }
    }

    /// `Ok(None)` when it is no histogram.
    pub(crate) fn read(input: &mut Cursor<'_>) -> Result<Option<Self>, EndOfInput> {
        Self::read_points(input, |input| Ok((input.u64()?, input.u32()?)))
    }

    /// As [`Self::read`], of a file of version `nb`: points are floating, counts longer.
    pub(crate) fn read_of_nb(input: &mut Cursor<'_>) -> Result<Option<Self>, EndOfInput> {
        Self::read_points(input, |input| {
            let point = f64::from_bits(input.u64()?) as u64;
            Ok((point, u32::try_from(input.u64()?).unwrap_or(u32::MAX >> 1)))
        })
    }

    fn read_points(
        input: &mut Cursor<'_>,
        read: impl Fn(&mut Cursor<'_>) -> Result<(u64, u32), EndOfInput>,
    ) -> Result<Option<Self>, EndOfInput> {
        input.u32()?;
        let count = input.u32()? as usize;
        if count > READ_POINT_COUNT_MAX {
            return Ok(None);
        }
        let mut points = BTreeMap::new();
        for _ in 0..count {
            let (point, count) = read(input)?;
            let point = point.min(u64::from(u32::MAX) - 1);
            let sum = points.entry(point).or_insert(0u32);
            *sum = sum.saturating_add(count);
        }
        Ok(Some(TombstoneHistogram { points: points.into_iter().collect() }))
    }
}

/// Builds a [`TombstoneHistogram`] from a stream of times.
#[derive(Clone, Debug, Default)]
pub struct TombstoneHistogramBuilder {
    points: BTreeMap<u64, u64>,
    /// Most times follow an equal one.
    latest: Option<(u64, u64)>,
}

impl TombstoneHistogramBuilder {
    /// Counts nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a local deletion time (seconds).
    pub fn add(&mut self, seconds: u32) {
        let point = u64::from(seconds).next_multiple_of(ROUND_SECONDS);
        match &mut self.latest {
            Some((latest, count)) if *latest == point => *count += 1,
            _ => {
                self.spool();
                self.latest = Some((point, 1));
            }
        }
    }

    fn spool(&mut self) {
        if let Some((point, count)) = self.latest.take() {
            *self.points.entry(point).or_insert(0) += count;
            if self.points.len() > SPOOL_POINT_COUNT_MAX {
                self.merge_nearest();
            }
        }
    }

    /// Merges neighbours, the nearest first, until few enough are left.
    fn merge_nearest(&mut self) {
        let mut points: Vec<(u64, u64)> = std::mem::take(&mut self.points).into_iter().collect();
        let mut reach = ROUND_SECONDS;
        while points.len() > POINT_COUNT_MAX {
            let gaps = points.windows(2).map(|pair| pair[1].0 - pair[0].0);
            reach = gaps.min().unwrap_or(reach).max(reach);
            let before = points.len();
            merge_within(&mut points, reach);
            assert!(points.len() < before, "the two nearest become one");
            reach = reach.saturating_mul(2);
        }
        self.points = points.into_iter().collect();
    }

    /// The histogram of all that was counted.
    pub fn finish(mut self) -> TombstoneHistogram {
        self.spool();
        self.merge_nearest();
        let latest = u64::from(u32::MAX) - 1;
        let points = self.points.into_iter();
        let points =
            points.map(|(point, count)| (point.min(latest), u32::try_from(count).unwrap_or(u32::MAX >> 1)));
        TombstoneHistogram { points: points.collect() }
    }
}

/// Joins points no further apart than `reach`, from the left, until few enough are left.
fn merge_within(points: &mut Vec<(u64, u64)>, reach: u64) {
    let mut surplus = points.len().saturating_sub(POINT_COUNT_MAX);
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(points.len());
    let mut is_fresh = false;
    for &(point, count) in points.iter() {
        match merged.last_mut() {
            // A joined point is not joined again in the same round: its neighbours may be nearer.
            Some((last, last_count)) if surplus > 0 && !is_fresh && point - *last <= reach => {
                let sum = u128::from(*last_count) + u128::from(count);
                let weighted =
                    u128::from(*last) * u128::from(*last_count) + u128::from(point) * u128::from(count);
                let mean = (weighted / sum.max(1)) as u64;
                *last = mean.next_multiple_of(ROUND_SECONDS).min(point);
                *last_count = sum as u64;
                surplus -= 1;
                is_fresh = true;
            }
            _ => {
                merged.push((point, count));
                is_fresh = false;
            }
        }
    }
    *points = merged;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_to_minutes() {
        let mut builder = TombstoneHistogramBuilder::new();
        for seconds in [1, 60, 61, 59, 120] {
            builder.add(seconds);
        }
        let histogram = builder.finish();
        assert_eq!(histogram.points(), [(60, 3), (120, 2)]);
        assert_eq!(histogram.sum(30), 0.0);
        assert_eq!(histogram.sum(120), 5.0);
        assert!(histogram.sum(90) > 1.5 && histogram.sum(90) < 3.0);
    }

    #[test]
    fn many_points_become_a_hundred_and_keep_their_count() {
        let mut builder = TombstoneHistogramBuilder::new();
        for index in 0..10_000u32 {
            builder.add(index * 977 % 10_000_000);
        }
        let histogram = builder.finish();
        assert!(histogram.points().len() <= POINT_COUNT_MAX);
        assert_eq!(histogram.points().iter().map(|(_, count)| u64::from(*count)).sum::<u64>(), 10_000);
        assert!(histogram.points().is_sorted());
        let mut out = Vec::new();
        histogram.write(&mut out);
        assert_eq!(TombstoneHistogram::read(&mut Cursor::new(&out)), Ok(Some(histogram)));
    }

    #[test]
    fn latest_time_does_not_overflow() {
        let mut builder = TombstoneHistogramBuilder::new();
        builder.add(u32::MAX - 1);
        assert_eq!(builder.finish().points(), [(u64::from(u32::MAX) - 1, 1)]);
    }
}
