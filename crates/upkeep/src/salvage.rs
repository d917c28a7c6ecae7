//! What can still be read of a damaged table file, and written anew.

use std::sync::Arc;

use rows::{PartitionHeader, PartitionKey, RingPlace, RingRange, Slices, Step, Unfiltered, UnfilteredCursor};
use sstable::{Component, DirectChunks, KeyHash, SstableError, TableFile, TableWriter};
use types::Token;

/// Keys that a file still tells, and what kept it from telling others.
#[derive(Debug, Default)]
pub struct ReadableKeys {
    /// The keys, in the order of the ring.
    pub found: Vec<PartitionKey>,
    /// What was met on the way.
    pub damage: Vec<SstableError>,
}

/// What became of a file's partitions.
#[derive(Debug)]
pub struct Salvaged {
    /// How many were written anew.
    pub kept: u64,
    /// Those whose keys are known and whose rows are not.
    pub lost: Vec<(PartitionKey, SstableError)>,
    /// What was met while the keys were looked for.
    pub damage: Vec<SstableError>,
    /// How many the file says it has.
    pub expected: u64,
}

impl Salvaged {
    /// How many are not there any more.
    pub fn lost_count(&self) -> u64 {
        self.expected.saturating_sub(self.kept).max(self.lost.len() as u64)
    }
}

/// All keys that the file still tells. Behind damage the index finds the next partition. Blocks.
pub fn readable_keys(file: &Arc<TableFile>) -> ReadableKeys {
    let mut keys = ReadableKeys::default();
    let mut start = RingPlace::Start;
    loop {
        let range = RingRange { start: start.clone(), end: RingPlace::End };
        let mut cursor = file.scan(DirectChunks::new(), &range, &Slices::none());
        let error = loop {
            match cursor.step() {
                Ok(Step::Header(header)) => {
                    start = RingPlace::AfterKey(header.key.clone());
                    keys.found.push(header.key);
                }
                Ok(Step::End) => return keys,
                Ok(Step::Item(_) | Step::Need(_)) => {}
                Err(error) => break error,
            }
        };
        keys.damage.push(error);
        // It may be the rows of the last partition that are damaged; then the next one is readable.
        if first(file, &start).is_ok() {
            continue;
        }
        let last = keys.found.last().map_or(i64::MIN, |key| key.token.0);
        let is_readable = |token| first(file, &RingPlace::BeforeToken(token)).is_ok();
        match readable(last, is_readable) {
            Some(token) => start = RingPlace::BeforeToken(token),
            None => return keys,
        }
    }
}

/// Keys of the first partitions from a place on, as many as are wanted and there. Blocks.
///
/// # Errors
/// They can not be read.
pub fn keys_from(
    file: &Arc<TableFile>,
    start: RingPlace,
    count: usize,
) -> Result<Vec<PartitionKey>, SstableError> {
    let range = RingRange { start, end: RingPlace::End };
    let mut cursor = file.scan(DirectChunks::new(), &range, &Slices::none());
    let mut keys = Vec::new();
    while keys.len() < count {
        match cursor.step()? {
            Step::Header(header) => keys.push(header.key),
            Step::End => break,
            Step::Item(_) | Step::Need(_) => {}
        }
    }
    Ok(keys)
}

/// Copies a partition, which there must be.
///
/// # Errors
/// It can not be found, read or written; then the writer is of no use any more.
pub fn copy_partition(
    file: &Arc<TableFile>,
    key: &PartitionKey,
    writer: &mut TableWriter,
) -> Result<(), SstableError> {
    let mut cursor =
        file.partition_cursor(DirectChunks::new(), key, KeyHash::of(&key.bytes), &Slices::all(), false);
    let Step::Header(header) = cursor.step()? else { return Err(not_found(file)) };
    writer.start_partition(&header)?;
    while let Step::Item(item) = cursor.step()? {
        writer.append(&item)?;
    }
    writer.end_partition()
}

/// As [`salvage`], for a file that may well be sound: then it is read once, and no list is made of its keys. `writer`
/// is asked for again if it turns out not to be.
///
/// # Errors
/// As [`salvage`].
pub fn copy_or_salvage(
    file: &Arc<TableFile>,
    counts: impl Fn(Token) -> bool,
    mut writer: impl FnMut() -> Result<TableWriter, SstableError>,
) -> Result<Salvaged, SstableError> {
    match copy_sound(file, &counts, &mut writer)? {
        Some(kept) => Ok(Salvaged { kept, lost: Vec::new(), damage: Vec::new(), expected: kept }),
        None => salvage(file, counts, writer),
    }
}

/// Writes every partition that counts and can be read whole through `writer`, which is asked for when there is one,
/// and finished. Blocks, for long.
///
/// # Errors
/// Writing fails. That reading does is told in what is given.
pub fn salvage(
    file: &Arc<TableFile>,
    counts: impl Fn(Token) -> bool,
    writer: impl FnOnce() -> Result<TableWriter, SstableError>,
) -> Result<Salvaged, SstableError> {
    let ReadableKeys { found, damage } = readable_keys(file);
    let mut expected = file.summary().partition_count;
    let (mut kept, mut lost) = (Vec::new(), Vec::new());
    for key in found {
        if !counts(key.token) {
            expected = expected.saturating_sub(1);
            continue;
        }
        match is_whole(file, &key) {
            Ok(()) => kept.push(key),
            Err(error) => lost.push((key, error)),
        }
    }
    if !kept.is_empty() {
        let mut writer = writer()?;
        if let Err(error) = kept.iter().try_for_each(|key| copy_partition(file, key, &mut writer)) {
            _ = writer.abort();
            return Err(error);
        }
        finish(writer, kept.len() as u64)?;
    }
    Ok(Salvaged { kept: kept.len() as u64, lost, damage, expected })
}

/// Copies what counts of a sound file as it comes, and gives how many partitions that were; `None`, and nothing is
/// left of the copy, when some of it can not be read.
fn copy_sound(
    file: &Arc<TableFile>,
    counts: impl Fn(Token) -> bool,
    mut new_writer: impl FnMut() -> Result<TableWriter, SstableError>,
) -> Result<Option<u64>, SstableError> {
    let mut copy = SoundCopy { writer: None, is_open: false, kept: 0 };
    let mut met = 0;
    let mut cursor = file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all());
    let is_sound = loop {
        let step = match cursor.step() {
            Ok(Step::End) => break met == file.summary().partition_count,
            Ok(step) => step,
            Err(_) => break false,
        };
        let written = match step {
            Step::Header(header) => {
                met += 1;
                copy.begin(&header, counts(header.key.token), &mut new_writer)
            }
            Step::Item(item) => copy.append(&item),
            Step::Need(_) | Step::End => Ok(()),
        };
        if let Err(error) = written {
            copy.abort();
            return Err(error);
        }
    };
    if !is_sound {
        copy.abort();
        return Ok(None);
    }
    copy.finish().map(Some)
}

/// Finishes a copy of so many partitions, for which the file they are of is given up.
fn finish(writer: TableWriter, kept: u64) -> Result<(), SstableError> {
    assert_eq!(writer.partition_count(), kept, "every partition that is told to be kept is written");
    writer.finish().map(drop)
}

/// A copy of a file as it grows.
struct SoundCopy {
    writer: Option<TableWriter>,
    /// Is a partition being written?
    is_open: bool,
    kept: u64,
}

impl SoundCopy {
    fn begin(
        &mut self,
        header: &PartitionHeader,
        counts: bool,
        new_writer: impl FnOnce() -> Result<TableWriter, SstableError>,
    ) -> Result<(), SstableError> {
        self.end()?;
        if !counts {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(new_writer()?),
        };
        (self.is_open, self.kept) = (true, self.kept + 1);
        writer.start_partition(header)
    }

    fn append(&mut self, item: &Unfiltered) -> Result<(), SstableError> {
        match &mut self.writer {
            Some(writer) if self.is_open => writer.append(item),
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), SstableError> {
        match &mut self.writer {
            Some(writer) if std::mem::take(&mut self.is_open) => writer.end_partition(),
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<u64, SstableError> {
        self.end()?;
        if let Some(writer) = self.writer {
            finish(writer, self.kept)?;
        }
        Ok(self.kept)
    }

    fn abort(self) {
        // What is left of it is swept up at the next start.
        self.writer.into_iter().for_each(|writer| _ = writer.abort());
    }
}

/// Can the first partition behind a place be read (or is there none)?
fn first(file: &Arc<TableFile>, start: &RingPlace) -> Result<(), SstableError> {
    let range = RingRange { start: start.clone(), end: RingPlace::End };
    file.scan(DirectChunks::new(), &range, &Slices::none()).step().map(drop)
}

/// A token near behind another from which on a partition can be read again: looked for in strides that
/// double, and then between the last two. Of partitions that begin in damage, the tokens are not known.
fn readable(last: i64, is_readable: impl Fn(Token) -> bool) -> Option<Token> {
    // Wide enough to go from one end of the ring to the other.
    let (mut bad, mut stride) = (last, 1_i128);
    let mut good = loop {
        if bad == i64::MAX {
            return None;
        }
        let token = (i128::from(last) + stride).min(i128::from(i64::MAX)) as i64;
        if is_readable(Token(token)) {
            break token;
        }
        (bad, stride) = (token, stride * 2);
    };
    while i128::from(good) - i128::from(bad) > 1 {
        let middle = ((i128::from(good) + i128::from(bad)) / 2) as i64;
        if is_readable(Token(middle)) { good = middle } else { bad = middle }
    }
    assert!(last < good, "reading goes on behind what was read, so that it comes to an end");
    Some(Token(good))
}

/// Reads a partition through without writing it.
fn is_whole(file: &Arc<TableFile>, key: &PartitionKey) -> Result<(), SstableError> {
    let mut cursor =
        file.partition_cursor(DirectChunks::new(), key, KeyHash::of(&key.bytes), &Slices::all(), false);
    // A scan may come upon a key that the index, or what the file says of its last key, has lost.
    let Step::Header(_) = cursor.step()? else { return Err(not_found(file)) };
    while !matches!(cursor.step()?, Step::End) {}
    Ok(())
}

fn not_found(file: &TableFile) -> SstableError {
    let (path, what) = (file.descriptor().path(Component::Data), "a partition is not found by its key");
    SstableError::Damaged { path, offset: 0, what }
}

#[cfg(test)]
mod tests {
    use rows::DeletionTime;
    use runtime::{Disk, MemoryDisk};
    use schema::{ColumnKind, Table, TableBuilder, TableId};
    use sstable::{Descriptor, WriterOptions};
    use types::CqlType;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_place_to_go_on_from_is_behind_what_was_read() {
        for (last, sound, expected) in [
            (5, 6, Some(6)),
            (5, 1_000, Some(1_000)),
            (i64::MIN, i64::MAX, Some(i64::MAX)),
            (i64::MAX - 1, i64::MIN, Some(i64::MAX)),
            // It was read to its end: there is no place behind, however readable the last one is.
            (i64::MAX, i64::MIN, None),
        ] {
            let found = readable(last, |token| token.0 >= sound).map(|token| token.0);
            assert_eq!(found, expected, "behind {last}, readable from {sound} on");
        }
        // A file without a readable key was looked at for ever, since no stride led to the other half of the ring.
        for last in [i64::MIN, -1, 0, i64::MAX - 1] {
            assert_eq!(readable(last, |_| false), None, "behind {last}");
        }
    }

    fn table() -> Arc<Table> {
        let table = TableBuilder::new(TableId(Uuid::from_u128(1)), "k", "t").column(
            "pk",
            ColumnKind::PartitionKey(0),
            CqlType::Int,
        );
        Arc::new(table.build().expect("a sound table"))
    }

    fn key(number: u8) -> PartitionKey {
        PartitionKey::new(vec![0, 0, 0, number].into())
    }

    /// A new file with one partition, which is deleted.
    fn writer(disk: &Arc<MemoryDisk>, target: &Descriptor, number: u8) -> TableWriter {
        disk.create_dir_all(&target.directory).expect("made");
        let (disk, options) = (Arc::<MemoryDisk>::clone(disk), WriterOptions::for_table(&table()));
        let mut writer = TableWriter::create(disk, target.clone(), table(), options).expect("created");
        let deletion = DeletionTime { timestamp: 1, local_deletion_time: 1 };
        let header = PartitionHeader { key: key(number), deletion, static_row: None };
        writer.start_partition(&header).expect("begun");
        writer.end_partition().expect("ended");
        writer
    }

    #[test]
    #[should_panic(expected = "every partition that is told to be kept is written")]
    fn a_copy_that_is_short_of_a_partition_is_not_finished() {
        let target = Descriptor::new("/t", Uuid::from_u128(2));
        _ = finish(writer(&Arc::default(), &target, 1), 2);
    }

    /// A partition that only a scan came upon was told to be kept, and was not.
    #[test]
    fn a_partition_that_is_not_found_by_its_key_is_told_to_be_lost() {
        let (disk, [one, other]) =
            (Arc::default(), [2, 3].map(|id| Descriptor::new("/t", Uuid::from_u128(id))));
        writer(&disk, &one, 1).finish().expect("written");
        let file = TableFile::open(Arc::<MemoryDisk>::clone(&disk), one, &table()).expect("opens");
        assert!(is_whole(&file, &key(1)).is_ok());
        let mut copy = writer(&disk, &other, 7);
        for told in [is_whole(&file, &key(2)), copy_partition(&file, &key(2), &mut copy)] {
            let told = told.expect_err("there is none").to_string();
            assert!(told.contains("a partition is not found by its key"), "{told}");
        }
    }
}
