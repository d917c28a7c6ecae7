//! How many values of about which size: Cassandra's `EstimatedHistogram`.
//!
//! Bucket bounds grow by 1.2 from 1 on: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, … A bucket
//! counts the values above the bound before it up to its own; one more counts what is beyond all.
//!
//! ```text
//!   u32 bucket count | for each bucket: u64 bound before it (the first bound for the first), u64 count
//! ```

use stdx::cursor::{Cursor, EndOfInput};

/// Counts values by their size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EstimatedHistogram {
    bounds: Vec<u64>,
    /// One longer than the bounds.
    counts: Vec<u64>,
}

/// Cassandra's histograms have at most 155 buckets; a file may not make us allocate much more.
const BUCKET_COUNT_MAX: usize = 4096;

impl EstimatedHistogram {
    /// With that many bounds, at least one.
    pub fn new(bound_count: usize) -> Self {
        let mut bounds = Vec::with_capacity(bound_count);
        let mut bound = 1u64;
        for _ in 0..bound_count.clamp(1, BUCKET_COUNT_MAX) {
            bounds.push(bound);
            let next = (bound as f64 * 1.2).round() as u64;
            bound = next.max(bound.saturating_add(1));
        }
        assert!(bounds.is_sorted_by(|a, b| a < b), "bounds rise");
        let counts = vec![0; bounds.len() + 1];
        EstimatedHistogram { bounds, counts }
    }

    /// For bytes of partitions: up to 3.5 TB.
    pub fn of_partition_bytes() -> Self {
        Self::new(155)
    }

    /// For cells of partitions: up to 4 · 10⁹.
    pub fn of_cell_counts() -> Self {
        Self::new(118)
    }

    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let index = self.bounds.partition_point(|bound| *bound < value);
        self.counts[index] += 1;
    }

    /// Adds the counts of another one with the same bounds; others are counted at their bounds.
    pub fn merge(&mut self, other: &EstimatedHistogram) {
        for (index, count) in other.counts.iter().enumerate() {
            let bound = other.bounds.get(index).copied().unwrap_or(u64::MAX);
            let here = self.bounds.partition_point(|own| *own < bound);
            self.counts[here] = self.counts[here].saturating_add(*count);
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The mean, rounded up; values beyond all bounds are left out.
    pub fn mean(&self) -> u64 {
        let (mut elements, mut sum) = (0u128, 0u128);
        for (count, bound) in self.counts.iter().zip(&self.bounds) {
            elements += u128::from(*count);
            sum += u128::from(*count) * u128::from(*bound);
        }
        if elements == 0 { 0 } else { u64::try_from(sum.div_ceil(elements)).unwrap_or(u64::MAX) }
    }

    /// The bound below which that fraction of the values lies.
    pub fn percentile(&self, fraction: f64) -> u64 {
        let wanted = (self.count() as f64 * fraction).ceil() as u64;
        if wanted == 0 {
            return 0;
        }
        let mut elements = 0u64;
        for (count, bound) in self.counts.iter().zip(&self.bounds) {
            elements = elements.saturating_add(*count);
            if elements >= wanted {
                return *bound;
            }
        }
        u64::MAX
    }

    /// The least value that may have been counted.
    pub fn min(&self) -> u64 {
        match self.counts.iter().position(|count| *count > 0) {
            None | Some(0) => 0,
            Some(index) => self.bounds[index - 1] + 1,
        }
    }

    /// The greatest value that may have been counted; `u64::MAX` beyond all bounds.
    pub fn max(&self) -> u64 {
        let index = self.counts.iter().rposition(|count| *count > 0);
        index.map_or(0, |index| self.bounds.get(index).copied().unwrap_or(u64::MAX))
    }

    /// Upper bound and count of each bucket; `u64::MAX` bounds the last.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bounds.iter().copied().chain([u64::MAX]).zip(self.counts.iter().copied())
    }

    /// Appends it as Statistics.db keeps it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.counts.len() as u32).to_be_bytes());
        for (index, count) in self.counts.iter().enumerate() {
            out.extend_from_slice(&self.bounds[index.saturating_sub(1)].to_be_bytes());
            out.extend_from_slice(&count.to_be_bytes());
        }
    }

    /// Reads what [`Self::write`] wrote. `Ok(None)` when it is no histogram.
    pub(crate) fn read(input: &mut Cursor<'_>) -> Result<Option<Self>, EndOfInput> {
        let bucket_count = input.u32()? as usize;
        if !(2..=BUCKET_COUNT_MAX).contains(&bucket_count) {
            return Ok(None);
        }
        let mut bounds = Vec::with_capacity(bucket_count - 1);
        let mut counts = Vec::with_capacity(bucket_count);
        for index in 0..bucket_count {
            let bound = input.u64()?;
            counts.push(input.u64()?);
            if index > 0 {
                bounds.push(bound);
            }
        }
        // Bounds must rise, since they are searched.
        let is_sound = bounds.is_sorted() && bounds.iter().all(|bound| *bound < u64::MAX);
        Ok(is_sound.then_some(EstimatedHistogram { bounds, counts }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_as_cassandras() {
        let histogram = EstimatedHistogram::new(13);
        assert_eq!(histogram.bounds, [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20]);
        assert_eq!(EstimatedHistogram::of_cell_counts().bounds.last(), Some(&4_139_110_981));
        assert_eq!(EstimatedHistogram::of_partition_bytes().bounds.last(), Some(&3_520_571_548_412));
    }

    #[test]
    fn values_are_counted_rounded_up() {
        let mut histogram = EstimatedHistogram::new(10);
        for value in [0, 1, 9, 10, 11, 1000] {
            histogram.add(value);
        }
        assert_eq!(histogram.count(), 6);
        assert_eq!((histogram.min(), histogram.max()), (0, u64::MAX));
        assert_eq!(histogram.percentile(0.5), 10);
        let mut out = Vec::new();
        histogram.write(&mut out);
        assert_eq!(EstimatedHistogram::read(&mut Cursor::new(&out)), Ok(Some(histogram)));
    }
}
