//! Reads all streams of a directory back, and ends segments that a crash left without an end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use runtime::{DirectoryEntry, Disk, DiskFile, EntryKind, OpenMode};

use crate::error::CommitLogError;
use crate::format::{Found, Kind, MARKER_BYTES, SEGMENT_BYTES_MAX, SegmentName, encode_frame, find_frame_in};
use crate::position::LogPosition;
use crate::roster::{Ids, entered_ids, list_rosters, read_roster, roster_path};
use crate::segment_reader::{Item, SegmentReader, Standing};

/// A record as it was appended. The payload shares the memory of its whole segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Whose log.
    pub stream: u32,
    /// Where in it.
    pub position: LogPosition,
    /// The version of the log's format when it was appended: what its owner's records looked like then.
    pub version: u32,
    /// The record.
    pub payload: Bytes,
}

/// The end of a segment that was being written during a crash. No record that was acknowledged as
/// durable is behind it, unless the bytes of the very last group were changed later, before any
/// marker of it reached the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// Whose log.
    pub stream: u32,
    /// The segment.
    pub path: PathBuf,
    /// Where the torn frame begins.
    pub offset: u32,
    /// How many bytes from there hold anything, if only what another segment has left.
    pub dropped_bytes: u32,
}

/// Reads records: streams by number, each in the order of its appends.
///
/// What is missing as a whole is told first. After an error of [damage](CommitLogError::is_damage) the
/// iterator goes on behind the damaged bytes; whether to use what follows is the caller's choice. After an
/// error of the disk it goes on with the next segment.
#[derive(Debug)]
pub struct Replay<'from> {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    from: Box<dyn Floor + 'from>,
    /// Streams that have a roster.
    rosters: BTreeSet<u32>,
    /// What is missing or can not be read as a whole, to be told before all else.
    lost: Vec<CommitLogError>,
    /// Segments to read, the next one last.
    segments: Vec<Waiting>,
    reading: Option<(SegmentName, SegmentReader)>,
    torn_tails: Vec<TornTail>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    name: SegmentName,
    file_bytes: u64,
    standing: Standing,
}

trait Floor {
    fn floor(&self, stream: u32) -> LogPosition;
}

impl<F: Fn(u32) -> LogPosition> Floor for F {
    fn floor(&self, stream: u32) -> LogPosition {
        self(stream)
    }
}

impl std::fmt::Debug for dyn Floor + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Floor")
    }
}

/// Reads every record of every stream in the directory, which need not exist. Blocks on the disk.
pub fn replay(disk: &Arc<dyn Disk>, directory: &Path) -> Result<Replay<'static>, CommitLogError> {
    replay_from(disk, directory, |_| LogPosition::START)
}

/// As [`replay()`], leaving out what is below the position that `from` gives for a stream; segments
/// that are wholly below are not read.
pub fn replay_from<'from>(
    disk: &Arc<dyn Disk>,
    directory: &Path,
    from: impl Fn(u32) -> LogPosition + 'from,
) -> Result<Replay<'from>, CommitLogError> {
    let listed = list_segments(&**disk, directory)?;
    let (rosters, mut lost) = read_rosters(&**disk, directory)?;
    let is_there = |name: &SegmentName| listed.binary_search_by_key(name, |(there, _)| *there).is_ok();
    let entered = rosters.iter().flat_map(|(stream, ids)| {
        let first = from(*stream).segment;
        ids.range(first..).map(|id| SegmentName { stream: *stream, id: *id })
    });
    let missing = entered.filter(|name| !is_there(name));
    lost.extend(missing.map(|name| CommitLogError::Missing { path: name.path(directory) }));
    lost.reverse();
    let needed = listed.iter().enumerate().filter(|(_, (name, _))| name.id >= from(name.stream).segment);
    let mut segments: Vec<Waiting> = needed
        .map(|(index, (name, file_bytes))| {
            let next = listed.get(index + 1).map(|(next, _)| *next);
            let standing = standing(*name, next, rosters.get(&name.stream));
            Waiting { name: *name, file_bytes: *file_bytes, standing }
        })
        .collect();
    segments.reverse();
    Ok(Replay {
        disk: Arc::clone(disk),
        directory: directory.to_owned(),
        from: Box::new(from),
        rosters: rosters.into_keys().collect(),
        lost,
        segments,
        reading: None,
        torn_tails: Vec::new(),
    })
}

/// The rosters of a directory by stream, and what is wrong with those that are damaged: they name nothing.
fn read_rosters(
    disk: &dyn Disk,
    directory: &Path,
) -> Result<(BTreeMap<u32, Ids>, Vec<CommitLogError>), CommitLogError> {
    let (mut rosters, mut damaged) = (BTreeMap::new(), Vec::new());
    for stream in list_rosters(disk, directory)? {
        let ids = match read_roster(disk, directory, stream) {
            Ok(ids) => ids,
            Err(error @ CommitLogError::Disk { .. }) => return Err(error),
            Err(error) => {
                damaged.push(error);
                None
            }
        };
        rosters.insert(stream, ids.unwrap_or_default());
    }
    Ok((rosters, damaged))
}

/// How a segment stands that is followed by another one on the disk. One that is missing may have followed it too.
fn standing(name: SegmentName, next: Option<SegmentName>, roster: Option<&Ids>) -> Standing {
    let is_followed = next.is_some_and(|next| next.stream == name.stream);
    let last_entered = roster.and_then(|ids| ids.last().copied()).unwrap_or(0);
    Standing {
        is_last: !is_followed && last_entered <= name.id,
        is_entered: roster.is_some_and(|ids| ids.contains(&name.id)),
    }
}

impl Replay<'_> {
    /// The torn tails met so far; complete once the iterator has ended.
    pub fn torn_tails(&self) -> &[TornTail] {
        &self.torn_tails
    }

    /// Has the replay tell of streams that have no roster, though they had one: with it, what the
    /// stream's segments were is gone.
    pub fn require_rosters(&mut self, streams: impl IntoIterator<Item = u32>) {
        let without = streams.into_iter().filter(|stream| !self.rosters.contains(stream));
        let missing = without.map(|stream| roster_path(&self.directory, stream));
        self.lost.extend(missing.map(|path| CommitLogError::Missing { path }));
    }

    /// Makes durable what this gives: of what a killed process left, the end may be in the system's
    /// cache alone. Call it before anything is done that relies on a record, or on the absence of
    /// one; opening a stream does the same to it. Blocks on the disk.
    ///
    /// # Errors
    /// The disk failed.
    pub fn settle(&mut self) -> Result<(), CommitLogError> {
        let mut last = BTreeMap::new();
        for (name, _) in list_segments(&*self.disk, &self.directory)? {
            last.insert(name.stream, name);
        }
        for name in last.into_values() {
            let sealed = seal_last_segment(&*self.disk, &self.directory, name)?;
            // The tail of the segment being read is met there, and that of one still to come is gone.
            let Some(waiting) = self.segments.iter().position(|waiting| waiting.name == name) else {
                continue;
            };
            self.torn_tails.extend(sealed.torn);
            match sealed.file_bytes {
                Some(file_bytes) => self.segments[waiting].file_bytes = file_bytes,
                None => _ = self.segments.remove(waiting),
            }
        }
        Ok(())
    }

    fn open_segment(&mut self, waiting: Waiting) -> Result<(), CommitLogError> {
        let path = waiting.name.path(&self.directory);
        let segment = read_whole(&*self.disk, &path, waiting.file_bytes)?;
        let reader = SegmentReader::new(segment, waiting.name, path, waiting.standing);
        self.reading = Some((waiting.name, reader));
        Ok(())
    }
}

impl Iterator for Replay<'_> {
    type Item = Result<Replayed, CommitLogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.lost.pop() {
            return Some(Err(error));
        }
        loop {
            let Some((name, reader)) = &mut self.reading else {
                let waiting = self.segments.pop()?;
                if let Err(error) = self.open_segment(waiting) {
                    return Some(Err(error));
                }
                continue;
            };
            let SegmentName { stream, id } = *name;
            match reader.next() {
                None => self.reading = None,
                Some(Item::Damage(error)) => return Some(Err(error)),
                Some(Item::Torn { offset, dropped_bytes }) => {
                    let path = name.path(&self.directory);
                    self.torn_tails.push(TornTail { stream, path, offset, dropped_bytes });
                }
                Some(Item::Record { offset, version, payload }) => {
                    let position = LogPosition { segment: id, offset };
                    if position >= self.from.floor(stream) {
                        return Some(Ok(Replayed { stream, position, version, payload }));
                    }
                }
            }
        }
    }
}

/// Where a segment of a stream is.
pub fn segment_path(directory: &Path, stream: u32, segment: u64) -> PathBuf {
    SegmentName { stream, id: segment }.path(directory)
}

/// The segments of a directory, by stream and id, with their sizes.
pub(crate) fn list_segments(
    disk: &dyn Disk,
    directory: &Path,
) -> Result<Vec<(SegmentName, u64)>, CommitLogError> {
    let entries = list_entries(disk, directory)?;
    let mut segments: Vec<(SegmentName, u64)> = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::File)
        .filter_map(|entry| Some((SegmentName::parse(&entry.name)?, entry.file_bytes)))
        .collect();
    segments.sort_unstable();
    Ok(segments)
}

/// What a directory holds, which need not exist.
pub(crate) fn list_entries(disk: &dyn Disk, directory: &Path) -> Result<Vec<DirectoryEntry>, CommitLogError> {
    match disk.list(directory) {
        Ok(entries) => Ok(entries),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(CommitLogError::disk("list segments")(error)),
    }
}

/// Reads a file that is no larger than a segment may be.
pub(crate) fn read_whole(disk: &dyn Disk, path: &Path, file_bytes: u64) -> Result<Bytes, CommitLogError> {
    let file_bytes_max = u64::from(SEGMENT_BYTES_MAX);
    if file_bytes > file_bytes_max {
        return Err(CommitLogError::SegmentTooLarge { path: path.to_owned(), file_bytes, file_bytes_max });
    }
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; file_bytes as usize];
        disk.open(path, OpenMode::Read)?.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map(Bytes::from).map_err(CommitLogError::disk("read a file"))
}

/// What became of a segment that was ended.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// The file's size; `None` when it is gone.
    pub(crate) file_bytes: Option<u64>,
    /// What was cut off.
    pub(crate) torn: Option<TornTail>,
}

/// Gives a stream's last segment its end frame if a crash left it without, so that from now on every
/// byte of it is known durable. A segment that was never begun is removed, a damaged one is left as it is.
pub(crate) fn seal_last_segment(
    disk: &dyn Disk,
    directory: &Path,
    name: SegmentName,
) -> Result<Sealed, CommitLogError> {
    let path = name.path(directory);
    let failed = || CommitLogError::disk("end the last segment");
    let file = disk.open(&path, OpenMode::ReadWrite).map_err(failed())?;
    // Of a process that was killed, all of this may still be in the system's cache alone, the name
    // included. And if a sync failed before, bytes may be in the cache, marked clean, and on no disk:
    // only writing them again helps. All must be durable before a later segment relies on it.
    disk.sync_dir(directory).map_err(failed())?;
    let file_bytes = file.len().map_err(failed())?;
    let as_it_is = Sealed { file_bytes: Some(file_bytes), torn: None };
    if file_bytes > u64::from(SEGMENT_BYTES_MAX) {
        return Ok(as_it_is);
    }
    if let Some((frame, offset)) = read_settled_end(&*file, name, file_bytes).map_err(failed())? {
        file.write_all_at(&frame, offset).and_then(|()| file.sync_all()).map_err(failed())?;
        return Ok(as_it_is);
    }
    let segment = read_whole(disk, &path, file_bytes)?;
    let standing = standing(name, None, Some(&entered_ids(disk, directory, name.stream)?));
    let mut reader = SegmentReader::new(segment.clone(), name, path.clone(), standing);
    let mut torn = None;
    for item in &mut reader {
        match item {
            Item::Damage(_) => return Ok(as_it_is),
            Item::Record { .. } => {}
            Item::Torn { offset, dropped_bytes } => {
                torn = Some(TornTail { stream: name.stream, path: path.clone(), offset, dropped_bytes });
            }
        }
    }
    let end = reader.end_offset();
    if end == 0 {
        disk.remove_file(&path).and_then(|()| disk.sync_dir(directory)).map_err(failed())?;
        return Ok(Sealed { file_bytes: None, torn });
    }
    let mut frame = Vec::new();
    encode_frame(&mut frame, name, end as u32, Kind::End, &[&(end as u32).to_le_bytes()]);
    let sealed_bytes = (end + frame.len()) as u64;
    file.write_all_at(&segment[..end], 0)
        .and_then(|()| file.sync_all())
        .and_then(|()| file.write_all_at(&frame, end as u64))
        .and_then(|()| file.sync_all())
        // Only what has a durable end may be shorter than it was reserved.
        .and_then(|()| file.set_len(sealed_bytes))
        .and_then(|()| file.sync_all())
        .map_err(failed())?;
    Ok(Sealed { file_bytes: Some(sealed_bytes), torn })
}

/// The file's last bytes and their offset, if they are an end frame that was written when all before
/// it was durable: by closing the log or by [`seal_last_segment`]. One of a roll-over is not.
fn read_settled_end(
    file: &dyn DiskFile,
    name: SegmentName,
    file_bytes: u64,
) -> io::Result<Option<([u8; MARKER_BYTES], u64)>> {
    let Some(offset) = file_bytes.checked_sub(MARKER_BYTES as u64) else { return Ok(None) };
    let mut tail = [0; MARKER_BYTES];
    file.read_exact_at(&mut tail, offset)?;
    let Found::Frame(frame) = find_frame_in(&tail, name, 0, offset as usize) else { return Ok(None) };
    let is_sound = frame.kind == Kind::End && frame.check_payload(&tail).is_ok();
    let is_settled = is_sound && frame.synced_offset(&tail) == Some(offset as usize);
    Ok(is_settled.then_some((tail, offset)))
}

#[cfg(test)]
mod tests {
    use runtime::MemoryDisk;

    use super::*;

    #[test]
    fn a_file_may_be_as_large_as_a_segment_and_no_larger() {
        let (disk, path, bytes_max) = (MemoryDisk::new(), Path::new("/none"), u64::from(SEGMENT_BYTES_MAX));
        let is_too_large = |file_bytes| {
            let error = read_whole(&disk, path, file_bytes).expect_err("there is none");
            matches!(error, CommitLogError::SegmentTooLarge { .. })
        };
        assert_eq!([is_too_large(bytes_max), is_too_large(bytes_max + 1)], [false, true]);
    }
}
