//! Size-tiered compaction: merge files of about the same size, when there are enough of them.
//!
//! Files are put into buckets, smallest first: a file joins a bucket when its size is within
//! `bucket_low`..`bucket_high` of the bucket's average, or both are below `min_sstable_size`. A bucket
//! of `min_threshold` files or more is merged, at most `max_threshold` at once; of several, the one
//! with the smallest files first, because it is paid for soonest. Options and defaults are
//! Cassandra's.

use schema::CompactionOptions;

use super::FileFacts;

/// The strategy with its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SizeTiered {
    min_threshold: usize,
    max_threshold: usize,
    bucket_low: f64,
    bucket_high: f64,
    min_sstable_bytes: f64,
}

impl SizeTiered {
    /// From a table's options; `None` when the table asks not to be compacted. Tables with another
    /// strategy are compacted so, too, until theirs is built.
    pub(crate) fn from_options(options: &CompactionOptions) -> Option<Self> {
        let text = |name: &str| options.options.get(name).map(String::as_str);
        if text("enabled").is_some_and(|enabled| enabled.eq_ignore_ascii_case("false")) {
            return None;
        }
        fn number<T: std::str::FromStr>(text: Option<&str>, default: T) -> T {
            text.and_then(|text| text.parse().ok()).unwrap_or(default)
        }
        Some(SizeTiered {
            min_threshold: number(text("min_threshold"), 4).max(2),
            max_threshold: number(text("max_threshold"), 32).max(2),
            bucket_low: number(text("bucket_low"), 0.5),
            bucket_high: number(text("bucket_high"), 1.5),
            min_sstable_bytes: number(text("min_sstable_size"), 50.0 * 1024.0 * 1024.0),
        })
    }

    /// Indexes of the files to merge now; `None` when nothing is due.
    pub(crate) fn choose(&self, files: &[FileFacts]) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..files.len()).collect();
        order.sort_by_key(|index| (files[*index].repair, files[*index].data_bytes, *index));
        let mut buckets: Vec<Bucket> = Vec::new();
        for index in order {
            let bytes = files[index].data_bytes as f64;
            let fits = |bucket: &&mut Bucket| {
                bucket.repair == files[index].repair
                    && ((bytes > bucket.average * self.bucket_low
                        && bytes < bucket.average * self.bucket_high)
                        || (bytes < self.min_sstable_bytes && bucket.average < self.min_sstable_bytes))
            };
            match buckets.iter_mut().find(fits) {
                Some(bucket) => bucket.add(index, bytes),
                None => {
                    buckets.push(Bucket { repair: files[index].repair, average: bytes, files: vec![index] })
                }
            }
        }
        let due = buckets.into_iter().filter(|bucket| bucket.files.len() >= self.min_threshold);
        let mut chosen = due.min_by(|a, b| a.average.total_cmp(&b.average))?.files;
        chosen.truncate(self.max_threshold);
        Some(chosen)
    }
}

struct Bucket {
    repair: (bool, Option<uuid::Uuid>),
    average: f64,
    files: Vec<usize>,
}

impl Bucket {
    fn add(&mut self, index: usize, bytes: f64) {
        let count = self.files.len() as f64;
        self.average = (self.average * count + bytes) / (count + 1.0);
        self.files.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn check(sizes_mb: &[u64], expected: Option<&[usize]>) {
        let strategy = SizeTiered::from_options(&CompactionOptions::default()).expect("enabled");
        let files: Vec<_> =
            sizes_mb.iter().map(|mb| FileFacts { data_bytes: mb * MB, repair: (false, None) }).collect();
        assert_eq!(strategy.choose(&files).as_deref(), expected, "{sizes_mb:?}");
    }

    #[test]
    fn four_files_of_a_size_are_merged() {
        check(&[], None);
        check(&[10, 11, 12], None);
        check(&[10, 11, 12, 1], Some(&[3, 0, 1, 2]));
        check(&[100, 110, 1000, 120, 95], Some(&[4, 0, 1, 3]));
        check(&[100, 400, 1600, 6400], None);
    }

    #[test]
    fn repaired_and_unrepaired_files_do_not_mix() {
        let strategy = SizeTiered::from_options(&CompactionOptions::default()).expect("enabled");
        let file = |repaired| FileFacts { data_bytes: MB, repair: (repaired, None) };
        assert_eq!(strategy.choose(&[file(true), file(true), file(false), file(false)]), None);
    }

    #[test]
    fn a_table_may_ask_not_to_be_compacted() {
        let mut options = CompactionOptions::default();
        options.options.insert("enabled".into(), "false".into());
        assert_eq!(SizeTiered::from_options(&options), None);
    }
}
