//! Size-tiered compaction: merge files of about the same size, when there are enough of them.
//!
//! Files are put into buckets, smallest first: a file joins a bucket when its size is within
//! `bucket_low`..`bucket_high` of the bucket's average, or both are below `min_sstable_size`. A bucket
//! of `min_threshold` files or more is merged, at most `max_threshold` at once; of several, the one
//! with the smallest files first, because it is paid for soonest.

use super::options::Named;
use super::tombstones::TombstoneOptions;
use super::{Choice, FileFacts, Picture, Task};

/// The strategy with its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SizeTiered {
    pub(crate) min_threshold: usize,
    pub(crate) max_threshold: usize,
    bucket_low: f64,
    bucket_high: f64,
    min_sstable_bytes: u64,
}

impl SizeTiered {
    pub(crate) fn of(named: Named<'_>) -> Self {
        SizeTiered {
            min_threshold: named.number("min_threshold", 4usize).max(2),
            max_threshold: named.number("max_threshold", 32usize).max(2),
            bucket_low: named.number("bucket_low", 0.5),
            bucket_high: named.number("bucket_high", 1.5),
            min_sstable_bytes: named.number("min_sstable_size", 50 << 20),
        }
    }

    pub(crate) fn choose(
        &self,
        free: &[&FileFacts],
        picture: Picture<'_>,
        tombstones: &TombstoneOptions,
    ) -> Choice {
        let buckets = self.buckets(free);
        let due = buckets.iter().filter(|bucket| bucket.len() >= self.min_threshold);
        let pending = due.map(|bucket| bucket.len().div_ceil(self.max_threshold)).sum();
        let task = match self.most_interesting(buckets) {
            Some(bucket) => Some(Task::of(&bucket)),
            None => {
                let worth = tombstones.worth(free, picture);
                worth.into_iter().max_by_key(|file| file.data_bytes).map(Task::tombstones)
            }
        };
        Choice { task, pending }
    }

    /// The files in groups of about the same size, smallest first.
    pub(crate) fn buckets<'a>(&self, files: &[&'a FileFacts]) -> Vec<Vec<&'a FileFacts>> {
        let mut files = files.to_vec();
        files.sort_by_key(|file| (file.data_bytes, file.id));
        let mut buckets: Vec<(u64, Vec<&FileFacts>)> = Vec::new();
        for file in files {
            let bytes = file.data_bytes;
            let fits = |(average, _): &&mut (u64, Vec<&FileFacts>)| {
                let (size, average) = (bytes as f64, *average as f64);
                (size > average * self.bucket_low && size < average * self.bucket_high)
                    || (bytes < self.min_sstable_bytes && average < self.min_sstable_bytes as f64)
            };
            match buckets.iter_mut().find(fits) {
                Some((average, bucket)) => {
                    let count = bucket.len() as u64;
                    *average = average.saturating_mul(count).saturating_add(bytes) / (count + 1);
                    bucket.push(file);
                }
                None => buckets.push((bytes, vec![file])),
            }
        }
        buckets.into_iter().map(|(_, bucket)| bucket).collect()
    }

    /// The bucket to merge now, if one is full.
    pub(crate) fn most_interesting<'a>(
        &self,
        buckets: Vec<Vec<&'a FileFacts>>,
    ) -> Option<Vec<&'a FileFacts>> {
        let trimmed = buckets.into_iter().map(|mut bucket| {
            bucket.truncate(self.max_threshold);
            bucket
        });
        let average =
            |bucket: &Vec<&FileFacts>| super::facts::total_bytes(bucket) / bucket.len().max(1) as u64;
        trimmed.filter(|bucket| bucket.len() >= self.min_threshold).min_by_key(average)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing::*;

    fn check(options: &[(&str, &str)], sizes_mb: &[u64], expected: Option<&[u128]>) {
        let files: Vec<FileFacts> = (0..).zip(sizes_mb).map(|(number, mb)| file(number, mb * MB)).collect();
        let settings = settings("SizeTieredCompactionStrategy", options);
        assert_eq!(chosen(&settings, &files).as_deref(), expected, "{sizes_mb:?}");
    }

    #[test]
    fn four_files_of_a_size_are_merged() {
        check(&[], &[], None);
        check(&[], &[10, 11, 12], None);
        check(&[], &[10, 11, 12, 1], Some(&[0, 1, 2, 3]));
        check(&[], &[100, 110, 1000, 120, 95], Some(&[0, 1, 3, 4]));
        check(&[], &[100, 400, 1600, 6400], None);
    }

    #[test]
    fn options_move_the_bounds() {
        check(&[("min_threshold", "2")], &[100, 400, 410], Some(&[1, 2]));
        check(&[("max_threshold", "4")], &[1, 2, 3, 4, 5, 6], Some(&[0, 1, 2, 3]));
        check(&[("min_sstable_size", "0")], &[1, 10, 100, 1000], None);
        check(&[("bucket_high", "20"), ("min_sstable_size", "0")], &[1, 2, 3, 4], Some(&[0, 1, 2, 3]));
        // The smallest of several full buckets comes first.
        check(&[("min_threshold", "2")], &[1000, 1100, 100, 110], Some(&[2, 3]));
    }

    #[test]
    fn one_file_full_of_tombstones_is_rewritten_when_there_is_nothing_else() {
        let rotten = |number, mb| FileFacts { droppable_ratio: 0.9, ..part(number, 0, mb * MB, 0, 10) };
        let other = FileFacts { droppable_ratio: 0.9, ..part(2, 0, 900 * MB, 11, 20) };
        let settings = settings("SizeTieredCompactionStrategy", &[]);
        assert_eq!(chosen(&settings, &[rotten(1, 100), other]), Some(vec![2]));
    }

    proptest::proptest! {
        #[test]
        fn a_choice_is_between_the_thresholds_and_of_about_one_size(
            sizes in proptest::collection::vec(1u64..5_000, 0..60)
        ) {
            let files: Vec<FileFacts> = (0..).zip(&sizes).map(|(number, mb)| file(number, mb * MB)).collect();
            let settings = settings("SizeTieredCompactionStrategy", &[]);
            if let Some(chosen) = chosen(&settings, &files) {
                proptest::prop_assert!((4..=32).contains(&chosen.len()));
                let mut sizes: Vec<u64> = chosen.iter().map(|number| sizes[*number as usize]).collect();
                sizes.sort_unstable();
                for (count, size) in sizes.iter().enumerate().skip(1) {
                    let before = sizes[..count].iter().sum::<u64>() as f64 / count as f64;
                    proptest::prop_assert!(*size < 50 || (*size as f64) < before * 1.5, "{:?}", sizes);
                }
            }
        }
    }
}
