//! What a merge writes: one file after another, cut between partitions.

use std::sync::Arc;

use rows::{EncodingStats, PartitionHeader, PartitionKey, Unfiltered};
use sstable::{Descriptor, TableFile, TableWriter, WriterOptions, delete_table_file};
use types::Token;

use super::MergeJob;
use super::rising::Rising;
use crate::{LEVEL_COUNT, MergeError, Split};

/// A file of halves is not smaller than this, in bytes of the inputs.
const HALF_BYTES_MIN: f64 = 50_000_000.0;
/// Halvings, at most.
const HALVES_MAX: i32 = 20;
const _: () = assert!(HALVES_MAX < 63, "halvings of a number of bytes");

/// Writes the result. A partition begins in a file only once there is something to write, and a file
/// once there is a partition.
pub(super) struct Output {
    job: Arc<MergeJob>,
    cut: Cut,
    writer: Option<(TableWriter, Descriptor)>,
    files: Vec<Arc<TableFile>>,
    pending: Option<PartitionHeader>,
    is_open: bool,
    counts: OutputCounts,
    rising: Rising,
    /// The partition that was begun last.
    last_key: Option<PartitionKey>,
    /// Partitions of the files that are closed.
    closed_count: u64,
}

/// What became of the partitions of a merge.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutputCounts {
    /// So many are in the result.
    pub(super) written: u64,
    /// Of so many nothing was left.
    pub(super) purged: u64,
}

impl Output {
    pub(super) fn new(job: Arc<MergeJob>) -> Self {
        Output {
            rising: Rising::new(&job.table),
            cut: Cut::new(&job),
            job,
            writer: None,
            files: Vec::new(),
            pending: None,
            is_open: false,
            counts: OutputCounts::default(),
            last_key: None,
            closed_count: 0,
        }
    }

    pub(super) fn start_partition(&mut self, header: PartitionHeader) -> Result<(), MergeError> {
        assert!(self.pending.is_none() && !self.is_open, "a partition is ended before the next begins");
        let last = self.last_key.replace(header.key.clone());
        // So that no two files of the result share a key.
        assert!(last.is_none_or(|last| last < header.key), "partitions that are merged rise");
        self.rising.begin_partition();
        let is_full = !header.deletion.is_live() || header.static_row.is_some();
        self.pending = Some(header);
        if is_full { self.write_pending() } else { Ok(()) }
    }

    pub(super) fn append(&mut self, item: &Unfiltered) -> Result<(), MergeError> {
        if self.pending.is_some() {
            self.write_pending()?;
        }
        assert!(self.is_open, "what is written is in a partition");
        assert!(self.rising.is_behind(item), "rows that are merged rise");
        match &mut self.writer {
            Some((writer, _)) => Ok(writer.append(item)?),
            None => unreachable!("an open partition is in a file"),
        }
    }

    pub(super) fn end_partition(&mut self) -> Result<(), MergeError> {
        self.counts.purged += u64::from(self.pending.take().is_some());
        match &mut self.writer {
            Some((writer, _)) if std::mem::take(&mut self.is_open) => Ok(writer.end_partition()?),
            _ => Ok(()),
        }
    }

    /// What became of those partitions that are ended.
    pub(super) fn counts(&self) -> OutputCounts {
        self.counts
    }

    /// The files, all durable.
    pub(super) fn finish(mut self) -> Result<Vec<Arc<TableFile>>, MergeError> {
        assert!(self.pending.is_none() && !self.is_open, "every partition is ended before the result is");
        match self.close_file() {
            Ok(()) => {
                assert_eq!(
                    self.closed_count, self.counts.written,
                    "what is written is in a file of the result"
                );
                Ok(std::mem::take(&mut self.files))
            }
            Err(error) => {
                self.abandon();
                Err(error)
            }
        }
    }

    /// Deletes what was written.
    pub(super) fn abandon(self) {
        if let Some((writer, _)) = self.writer {
            _ = writer.abort();
        }
        for file in self.files {
            _ = delete_table_file(&*self.job.disk, file.descriptor());
        }
    }

    fn write_pending(&mut self) -> Result<(), MergeError> {
        let Some(header) = self.pending.take() else { return Ok(()) };
        let written = self.writer.as_ref().map_or(0, |(writer, _)| writer.data_bytes_written());
        if self.cut.is_before(header.key.token, written) {
            self.close_file()?;
        }
        if self.writer.is_none() {
            self.writer = Some(self.create()?);
        }
        if let Some((writer, _)) = &mut self.writer {
            writer.start_partition(&header)?;
            self.is_open = true;
            self.counts.written += 1;
        }
        Ok(())
    }

    fn create(&self) -> Result<(TableWriter, Descriptor), MergeError> {
        let job = &self.job;
        let summaries = || job.inputs.iter().map(|(file, _)| file.summary());
        let partitions: u64 = summaries().map(|summary| summary.partition_count).sum();
        let options = WriterOptions {
            estimated_partitions: (partitions / self.cut.file_count().max(1)).max(1),
            encoding_stats: summaries()
                .map(|summary| summary.encoding_stats)
                .reduce(EncodingStats::merge)
                .unwrap_or(EncodingStats::NONE),
            repaired_at: summaries().map(|summary| summary.repaired_at).min().unwrap_or(0),
            // Files of different sessions are not merged.
            pending_repair: summaries().next().and_then(|summary| summary.pending_repair),
            level: self.cut.level,
            kept_room: job.kept_room.clone(),
            compression: job.compression.clone(),
            ..WriterOptions::for_table(&job.table)
        };
        // The inputs may all lie in another data directory.
        job.disk
            .create_dir_all(&job.directory)
            .map_err(|source| MergeError::Disk { act: "create table directory", source })?;
        let descriptor = Descriptor::new(job.directory.clone(), job.new_id());
        let (disk, table) = (Arc::clone(&job.disk), Arc::clone(&job.table));
        Ok((TableWriter::create(disk, descriptor.clone(), table, options)?, descriptor))
    }

    fn close_file(&mut self) -> Result<(), MergeError> {
        let Some((writer, descriptor)) = self.writer.take() else { return Ok(()) };
        assert!(!self.is_open, "a file is cut between partitions");
        assert!(writer.partition_count() > 0, "a file of the result has a partition");
        self.closed_count += writer.partition_count();
        let kept = writer.finish_keeping()?;
        let job = &self.job;
        let opened = TableFile::open(Arc::clone(&job.disk), descriptor.clone(), &job.table)
            .and_then(|file| file.keep(kept).map(|()| file));
        match opened {
            Ok(file) => self.files.push(file),
            Err(error) => {
                _ = delete_table_file(&*job.disk, &descriptor);
                return Err(error.into());
            }
        }
        Ok(())
    }
}

/// Where the result is cut.
#[derive(Debug)]
struct Cut {
    split: Split,
    /// Bytes of the inputs as they lie on the disk.
    total_bytes: u64,
    /// The first and the last of the inputs.
    tokens: (Token, Token),
    /// Bytes on the disk by uncompressed bytes, as in the inputs.
    ratio: f64,
    level: u32,
    level_bytes: f64,
    halvings: i32,
    part: Option<u32>,
}

impl Cut {
    fn new(job: &MergeJob) -> Self {
        let sum = |of: fn(&sstable::TableSummary) -> u64| -> u64 {
            job.inputs.iter().map(|(file, _)| of(file.summary())).sum()
        };
        let total_bytes = sum(|summary| summary.data_file_bytes);
        let ratio = total_bytes as f64 / sum(|summary| summary.uncompressed_bytes).max(1) as f64;
        let first = job.inputs.iter().map(|(file, _)| file.summary().first_key.token).min();
        let last = job.inputs.iter().map(|(file, _)| file.summary().last_key.token).max();
        let tokens = (first.unwrap_or(Token(i64::MIN)), last.unwrap_or(Token(i64::MAX)));
        Cut { tokens, ..Cut::of(job.split, job.level, total_bytes, ratio) }
    }

    fn of(split: Split, level: u32, total_bytes: u64, ratio: f64) -> Self {
        let tokens = (Token(i64::MIN), Token(i64::MAX));
        Cut { split, total_bytes, tokens, ratio, level, level_bytes: 0.0, halvings: 1, part: None }
    }

    /// About how many files there will be.
    fn file_count(&self) -> u64 {
        match self.split {
            Split::Whole => 1,
            Split::Bytes(bytes) | Split::Levels { bytes, .. } => self.total_bytes.div_ceil(bytes.max(1)),
            // The first is half of all.
            Split::Halves => 2u64.saturating_pow(self.halvings.unsigned_abs()),
            // Of the ring, those that the inputs lie in.
            Split::Parts(count) => {
                let (first, last) = self.tokens;
                u64::from(part_of(last, count).saturating_sub(part_of(first, count))) + 1
            }
        }
    }

    /// Does a partition of that token begin a new file, when so much (uncompressed) is in the present one?
    fn is_before(&mut self, token: Token, written: u64) -> bool {
        let on_disk = written as f64 * self.ratio;
        match self.split {
            Split::Whole => false,
            Split::Bytes(bytes) => on_disk > bytes as f64,
            Split::Levels { bytes, fanout } => {
                let is_full = on_disk > bytes as f64;
                if is_full {
                    self.level_bytes += on_disk;
                    let max = bytes as f64 * f64::from(fanout).powi(i32::try_from(self.level).unwrap_or(0));
                    if self.level_bytes > max && (self.level as usize) < LEVEL_COUNT - 1 {
                        self.level_bytes = 0.0;
                        self.level += 1;
                    }
                }
                is_full
            }
            Split::Halves => {
                let share = |halvings: i32| self.total_bytes as f64 / 2f64.powi(halvings);
                let is_full = on_disk > share(self.halvings)
                    && self.halvings < HALVES_MAX
                    && share(self.halvings) >= HALF_BYTES_MIN;
                self.halvings += i32::from(is_full);
                is_full
            }
            Split::Parts(count) => {
                let part = part_of(token, count);
                self.part.replace(part).is_some_and(|before| before != part) && written > 0
            }
        }
    }
}

/// Which of so many equal parts of the ring a token is in. A part ends with the token that is its bound.
fn part_of(token: Token, count: u32) -> u32 {
    let offset = (i128::from(token.0) - i128::from(i64::MIN) - 1).max(0).unsigned_abs();
    let part = u32::try_from((offset * u128::from(count)) >> 64).unwrap_or(0);
    assert!(part < count.max(1), "a token is in one of the parts");
    part
}

#[cfg(test)]
mod tests {
    use rows::DeletionTime;

    use super::super::testing::job;
    use super::*;

    #[test]
    fn parts_of_the_ring_are_equal_and_end_with_their_bound() {
        assert_eq!(part_of(Token(i64::MIN), 4), 0);
        assert_eq!(part_of(Token(0), 2), 0);
        assert_eq!(part_of(Token(1), 2), 1);
        assert_eq!(part_of(Token(i64::MAX), 4), 3);
        assert_eq!(part_of(Token(i64::MIN / 2), 4), 0);
        assert_eq!(part_of(Token(i64::MIN / 2 + 1), 4), 1);
        assert_eq!(part_of(Token(77), 1), 0);
    }

    #[test]
    fn files_are_cut_where_the_split_says() {
        let cuts = |split: Split, total: u64, steps: &[(i64, u64)]| -> Vec<bool> {
            let mut cut = Cut::of(split, 1, total, 0.5);
            steps.iter().map(|(token, written)| cut.is_before(Token(*token), *written)).collect()
        };
        assert_eq!(cuts(Split::Whole, 100, &[(0, 0), (1, u64::MAX)]), [false, false]);
        // Half of what is written, by the ratio of the inputs.
        assert_eq!(cuts(Split::Bytes(10), 100, &[(0, 0), (1, 20), (2, 21)]), [false, false, true]);
        assert_eq!(
            cuts(Split::Parts(2), 100, &[(-5, 0), (-4, 9), (4, 18), (5, 0)]),
            [false, false, true, false]
        );
        let large = 400_000_000;
        assert_eq!(
            cuts(Split::Halves, large, &[(0, large + 1), (1, large / 2), (2, large / 2 + 1)]),
            [true, false, true]
        );
    }

    #[test]
    fn only_the_parts_that_the_inputs_lie_in_become_files() {
        let count = |first, last| {
            let tokens = (Token(first), Token(last));
            Cut { tokens, ..Cut::of(Split::Parts(4), 0, 100, 1.0) }.file_count()
        };
        assert_eq!(count(i64::MIN, i64::MAX), 4);
        assert_eq!(count(1, i64::MAX / 2), 1, "a quarter");
        assert_eq!(count(-1, 1), 2, "two that meet");
    }

    #[test]
    fn a_level_that_is_full_is_followed_by_the_next() {
        let mut cut = Cut::of(Split::Levels { bytes: 10, fanout: 2 }, 1, 1_000, 1.0);
        let levels: Vec<u32> = (0..7)
            .map(|token| {
                cut.is_before(Token(token), 11);
                cut.level
            })
            .collect();
        assert_eq!(levels, [1, 2, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn the_last_level_is_followed_by_none() {
        let mut cut = Cut::of(Split::Levels { bytes: 10, fanout: 1 }, LEVEL_COUNT as u32 - 2, 1_000, 1.0);
        let levels = [0, 1, 2].map(|token| {
            assert!(cut.is_before(Token(token), 11));
            cut.level as usize
        });
        assert_eq!(levels, [LEVEL_COUNT - 1; 3]);
    }

    /// A partition of that key, which is deleted, is written to a result.
    fn write(output: &mut Output, key: i32) {
        let deletion = DeletionTime { timestamp: 1, local_deletion_time: 1 };
        let key = PartitionKey::new(key.to_be_bytes().to_vec().into());
        output.start_partition(PartitionHeader { key, deletion, static_row: None }).expect("begun");
        output.end_partition().expect("ended");
    }

    #[test]
    #[should_panic(expected = "partitions that are merged rise")]
    fn a_partition_that_comes_twice_is_seen_whatever_file_it_would_be_in() {
        let mut output = Output::new(Arc::new(job()));
        write(&mut output, 1);
        output.close_file().expect("closed");
        write(&mut output, 1);
    }

    #[test]
    #[should_panic(expected = "what is written is in a file of the result")]
    fn a_file_of_the_result_that_is_forgotten_is_seen() {
        let mut output = Output::new(Arc::new(job()));
        write(&mut output, 1);
        output.writer = None;
        _ = output.finish();
    }
}
