//! How long the chunks of a table with `'chunk_length_in_kb': 'auto'` are: what its reads ask for.
//!
//! Counted is every read that had to go to the disk for Data, by how many bytes of rows it wanted there.
//! What such a read costs with chunks of some length is a small model, in bytes that could have been read and
//! decompressed instead:
//!
//! ```text
//!   the read wants          ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
//!   chunks it touches    |________|________|________|   each whole: its bytes, and CHUNK_BYTES for handling it
//!   reads of the disk     1st      2nd      3rd, 4th    each READ_BYTES; the same reading ahead as in fetch.rs
//! ```
//!
//! The length with the least sum over all that was counted is the best. It takes the place of the present
//! one only if it saves an eighth, so that two lengths which are about as good do not alternate: every
//! change means that files of both lengths lie side by side until compaction has come by.
//! Why this model: `docs/internals/chunk-length.md`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use schema::{ChunkLength, CompressionOptions};
use sstable::{Component, TableFile};

/// What is chosen from.
const CHOICES: [u32; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// Below so many reads nothing is chosen anew.
const READS_MIN: u64 = 1024;
/// At so many all counts are halved: what was long ago fades.
const READS_MAX: u64 = 64 * 1024;
/// What a read of the disk costs beside its bytes.
const READ_BYTES: u64 = 16 << 10;
/// What a chunk costs beside its bytes: its checksum's end, its memory, its places in cache and index.
const CHUNK_BYTES: u64 = 2 << 10;
/// A change has to save one part in so many.
const SAVED_PART: u128 = 8;
/// No read counts for more.
const WANTED_BYTES_MAX: u64 = 64 << 20;
/// How far a sequential reader is read ahead for, in uncompressed bytes.
pub const READ_AHEAD_BYTES_MAX: u64 = 256 << 10;
/// Classes of wanted bytes: up to 512, 1 K, 2 K … and all that is more.
const CLASS_COUNT: usize = 16;
const CLASS_BYTES_MIN: u64 = 512;

const _: () = assert!(READS_MIN < READS_MAX, "there is a choice before counts are halved");
const _: () = assert!(CLASS_BYTES_MIN << (CLASS_COUNT - 2) <= WANTED_BYTES_MAX, "each class has reads");
const _: () = {
    let mut choice = 0;
    while choice < CHOICES.len() {
        assert!(CHOICES[choice].is_power_of_two(), "a length that a chunk may have");
        assert!(CHOICES[choice] as u64 <= READ_AHEAD_BYTES_MAX, "a whole chunk is read ahead");
        assert!(choice == 0 || CHOICES[choice - 1] < CHOICES[choice], "choices rise");
        choice += 1;
    }
};

/// How much of Data reads wanted that had to go to the disk for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColdReads {
    classes: [Class; CLASS_COUNT],
    /// Reads.
    pub read_count: u64,
    /// Of them, reads of a range of partitions.
    pub range_count: u64,
}

/// Reads that wanted about the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Class {
    read_count: u64,
    wanted_bytes: u64,
}

impl ColdReads {
    fn note(&mut self, wanted_bytes: u64, is_range: bool) {
        let wanted_bytes = wanted_bytes.min(WANTED_BYTES_MAX);
        let class = wanted_bytes.div_ceil(CLASS_BYTES_MIN).max(1).next_power_of_two().ilog2() as usize;
        let class = &mut self.classes[class.min(CLASS_COUNT - 1)];
        class.read_count += 1;
        class.wanted_bytes += wanted_bytes;
        self.read_count += 1;
        self.range_count += u64::from(is_range);
        if self.read_count >= READS_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        for class in &mut self.classes {
            class.wanted_bytes =
                class.wanted_bytes.checked_div(class.read_count).unwrap_or(0) * (class.read_count / 2);
            class.read_count /= 2;
        }
        self.read_count = self.classes.iter().map(|class| class.read_count).sum();
        self.range_count = (self.range_count / 2).min(self.read_count);
    }

    fn add(&mut self, other: &ColdReads) {
        for (class, other) in self.classes.iter_mut().zip(&other.classes) {
            class.read_count += other.read_count;
            class.wanted_bytes += other.wanted_bytes;
        }
        self.read_count += other.read_count;
        self.range_count += other.range_count;
    }

    /// Bytes that a read wanted, on the average.
    pub fn wanted_bytes_mean(&self) -> u64 {
        let wanted: u64 = self.classes.iter().map(|class| class.wanted_bytes).sum();
        wanted.checked_div(self.read_count).unwrap_or(0)
    }

    /// What a read costs with chunks of that length, on the average, in bytes.
    pub fn cost_mean(&self, chunk_bytes: u32) -> u64 {
        let mean = self.cost(chunk_bytes).checked_div(u128::from(self.read_count)).unwrap_or(0);
        u64::try_from(mean).unwrap_or(u64::MAX)
    }

    /// Of all that was counted.
    fn cost(&self, chunk_bytes: u32) -> u128 {
        let seen = self.classes.iter().filter(|class| class.read_count > 0);
        let cost = |class: &Class| {
            let wanted_bytes = class.wanted_bytes / class.read_count;
            u128::from(class.read_count) * u128::from(cost_of_read(wanted_bytes, u64::from(chunk_bytes)))
        };
        seen.map(cost).sum()
    }

    /// The length to write with from now on.
    fn choose(&self, present: u32) -> u32 {
        let counted: u64 = self.classes.iter().map(|class| class.read_count).sum();
        assert_eq!(self.read_count, counted, "a read is in one class");
        let best = CHOICES.into_iter().min_by_key(|choice| self.cost(*choice));
        let saves_enough = |best: u32| {
            let (cost, before) = (self.cost(best), self.cost(present));
            cost * SAVED_PART <= before * (SAVED_PART - 1)
        };
        match best {
            Some(best) if self.read_count >= READS_MIN && saves_enough(best) => best,
            _ => present,
        }
    }
}

/// What a read of that many bytes, which begin anywhere in a chunk, costs on the average.
fn cost_of_read(wanted_bytes: u64, chunk_bytes: u64) -> u64 {
    let behind_first = wanted_bytes.clamp(1, WANTED_BYTES_MAX) - 1;
    let (whole, rest) = (behind_first / chunk_bytes, behind_first % chunk_bytes);
    let cost =
        |chunks: u64| read_count(chunks, chunk_bytes) * READ_BYTES + chunks * (CHUNK_BYTES + chunk_bytes);
    // One border more is crossed by those that begin in the last `rest` bytes of a chunk.
    let (fewer, more) = (u128::from(cost(whole + 1)), u128::from(cost(whole + 2)));
    let (rest, all) = (u128::from(rest), u128::from(chunk_bytes));
    u64::try_from((fewer * (all - rest) + more * rest) / all).unwrap_or(u64::MAX)
}

/// In how many reads of the disk neighbouring chunks come: one, one, two, four, up to the limit.
fn read_count(mut chunks: u64, chunk_bytes: u64) -> u64 {
    let most = (READ_AHEAD_BYTES_MAX / chunk_bytes).max(1);
    let (mut reads, mut next) = (1, 1);
    chunks -= chunks.min(1);
    while chunks > 0 && next < most {
        reads += 1;
        chunks -= chunks.min(next);
        next *= 2;
    }
    reads + chunks.div_ceil(most)
}

/// The part of a table's metrics that this is about. Plain cells: only the table's own shard touches them.
#[derive(Debug)]
pub struct AutoChunkLength {
    present: Cell<u32>,
    cold: RefCell<ColdReads>,
}

impl AutoChunkLength {
    /// Goes on from files that there are.
    pub fn of_files(files: &[Arc<TableFile>]) -> Self {
        let length = AutoChunkLength { present: Cell::default(), cold: RefCell::default() };
        length.go_on_from(files);
        length
    }

    /// Goes on with the length that most of Data has, after a start or a change of the table's options;
    /// without files with the default.
    pub fn go_on_from(&self, files: &[Arc<TableFile>]) {
        let mut bytes_by_length = CHOICES.map(|choice| (0, choice));
        for file in files {
            let length = file.chunk_bytes(Component::Data);
            if let Some((bytes, _)) =
                bytes_by_length.iter_mut().find(|(_, choice)| *choice as usize == length)
            {
                *bytes += file.summary().data_file_bytes;
            }
        }
        let most = bytes_by_length.into_iter().max().filter(|(bytes, _)| *bytes > 0);
        self.present.set(most.map_or(ChunkLength::DEFAULT_BYTES, |(_, choice)| choice));
    }

    /// Notes a read that had to go to the disk for Data.
    pub fn note(&self, wanted_bytes: u64, is_range: bool) {
        self.cold.borrow_mut().note(wanted_bytes, is_range);
    }

    /// How a file that is written now is compressed: by the table's options, with a length chosen where
    /// they say `auto`.
    pub fn settle(&self, options: &CompressionOptions) -> CompressionOptions {
        let mut options = options.clone();
        if options.chunk_length == ChunkLength::Auto {
            self.present.set(self.cold.borrow().choose(self.present.get()));
            options.chunk_length = ChunkLength::Fixed(self.present.get());
        }
        options
    }

    /// What is chosen and why; `None` when it is not for us to choose.
    pub fn stats(&self, options: &CompressionOptions) -> Option<ChunkLengthStats> {
        let is_auto = options.class.is_some() && options.chunk_length == ChunkLength::Auto;
        let cold_reads = self.cold.borrow().clone();
        let shards_by_bytes = BTreeMap::from([(cold_reads.choose(self.present.get()), 1)]);
        is_auto.then_some(ChunkLengthStats { shards_by_bytes, cold_reads })
    }
}

/// Is a file compressed as its table's options ask? Where they leave the length of chunks to us, each that we
/// may choose is right: a new choice alone does not make a whole table be written anew (decision 0009).
pub fn is_compressed_as_asked(options: &CompressionOptions, file: &TableFile) -> bool {
    let mut asked = options.clone();
    if asked.chunk_length == ChunkLength::Auto {
        let present = u32::try_from(file.chunk_bytes(Component::Data)).ok();
        let chosen = present.filter(|present| CHOICES.contains(present));
        asked.chunk_length = ChunkLength::Fixed(chosen.unwrap_or(ChunkLength::DEFAULT_BYTES));
    }
    file.is_compressed_as(&asked)
}

/// What is chosen for a table with `'chunk_length_in_kb': 'auto'`, and from what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkLengthStats {
    /// Bytes of a chunk in the next file, and how many shards write so.
    pub shards_by_bytes: BTreeMap<u32, u64>,
    /// What it is chosen from.
    pub cold_reads: ColdReads,
}

impl ChunkLengthStats {
    /// What is chosen from.
    pub const CHOICES: [u32; 4] = CHOICES;
    /// A shard that counted fewer reads chooses nothing anew.
    pub const READS_MIN: u64 = READS_MIN;

    /// Adds what another shard says.
    pub fn add(&mut self, other: &ChunkLengthStats) {
        for (bytes, shards) in &other.shards_by_bytes {
            *self.shards_by_bytes.entry(*bytes).or_default() += shards;
        }
        self.cold_reads.add(&other.cold_reads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(wanted_bytes: u64, count: u64) -> ColdReads {
        let mut reads = ColdReads::default();
        (0..count).for_each(|_| reads.note(wanted_bytes, false));
        reads
    }

    #[test]
    fn the_more_a_read_wants_the_longer_are_the_chunks() {
        let best = |wanted_bytes| {
            let reads = reads(wanted_bytes, READS_MIN);
            CHOICES.into_iter().min_by_key(|choice| reads.cost(*choice)).map(|bytes| bytes >> 10)
        };
        let kib = |kib: u64| best(kib << 10);
        assert_eq!([best(0), best(100), kib(1), kib(2)], [Some(4); 4]);
        assert_eq!([kib(4), kib(16), kib(64), kib(128)], [Some(16); 4]);
        assert_eq!([kib(256), kib(512), kib(1024), kib(4096)], [Some(64); 4]);
        assert_eq!([kib(16 << 10), kib(64 << 10)], [Some(256); 2]);
    }

    #[test]
    fn a_change_needs_reads_enough_and_must_be_worth_it() {
        let default = 16 << 10;
        assert_eq!(reads(1000, READS_MIN - 1).choose(default), default);
        assert_eq!(reads(1000, READS_MIN).choose(default), 4 << 10);
        // Four KiB are a little better here, and not by an eighth.
        let about_as_good = reads(3000, READS_MIN);
        assert!(about_as_good.cost(4 << 10) < about_as_good.cost(16 << 10));
        assert_eq!(about_as_good.choose(default), default);
        assert_eq!(about_as_good.choose(4 << 10), 4 << 10);
    }

    #[test]
    fn what_was_long_ago_fades() {
        let mut reads = reads(1000, READS_MAX * 4);
        assert!(reads.read_count < READS_MAX);
        assert_eq!(reads.wanted_bytes_mean(), 1000);
        (0..READS_MAX * 8).for_each(|_| reads.note(1 << 20, true));
        assert_eq!(reads.choose(4 << 10), 64 << 10);
    }

    #[test]
    fn some_scans_outweigh_many_rows() {
        let mut mixed = reads(1000, 1000);
        (0..1000).for_each(|_| mixed.note(1 << 20, true));
        assert_eq!(mixed.choose(4 << 10), 64 << 10);
        let mut mixed = reads(1000, 50_000);
        (0..20).for_each(|_| mixed.note(1 << 20, true));
        assert_eq!(mixed.choose(16 << 10), 4 << 10);
    }

    #[test]
    fn reads_of_the_disk_are_counted_as_they_are_made() {
        let counts =
            |chunk_bytes: u64| [1, 2, 3, 4, 5, 8, 17, 65, 1000].map(|chunks| read_count(chunks, chunk_bytes));
        assert_eq!(counts(4 << 10), [1, 2, 3, 3, 4, 4, 6, 8, 22]);
        assert_eq!(counts(64 << 10), [1, 2, 3, 3, 4, 4, 7, 19, 252]);
        assert_eq!(counts(256 << 10), [1, 2, 3, 4, 5, 8, 17, 65, 1000]);
        assert_eq!(read_count(0, 4096), 1);
    }

    #[test]
    fn costs_stay_in_bounds_however_large_a_read_was() {
        let mut reads = reads(u64::MAX, READS_MIN);
        reads.note(0, true);
        assert!(CHOICES.into_iter().all(|choice| reads.cost_mean(choice) > 0));
        assert_eq!(reads.choose(4 << 10), 256 << 10);
    }
}
