//! Reads bytes that may be anything as a commit log: what the fuzzer and the damage tests call.
//!
//! Nothing may panic, loop, or take memory beyond what the bytes are worth; what is said of damage names
//! a file and a place in it; and what a first start found, every later one finds.
//!
//! ```text
//!   byte 0   bit 0: files as they are, or a story (`story.rs`)
//!            bit 1: the checks of the files are set right first, so that what they guard is reached
//!   files    (u8 stream in the lower 2 bits, id above | u24 LE bytes | bytes)*      id 0: the stream's roster
//! ```

mod story;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use runtime::{Disk, MemoryDisk, OpenMode};

use crate::error::CommitLogError;
use crate::format::{
    ALIGNMENT, FRAME_HEADER_BYTES, Found, HEADER_BYTES, SegmentName, correct_frame, encode_header, find_frame,
};
use crate::position::LogPosition;
use crate::replay::{list_segments, replay, replay_from, seal_last_segment};
use crate::roster;

const DIRECTORY: &str = "/hostile";
/// Files read of one input, at most.
const FILE_COUNT_MAX: usize = 8;
const IS_STORY: u8 = 1;
const IS_CORRECTED: u8 = 2;

/// The id that stands for a stream's roster here; no segment has it.
const ROSTER_ID: u64 = 0;

/// Puts a log's files together as [`read`] takes them apart; other names are left out.
pub fn join<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut out = vec![0];
    for (file_name, bytes) in files {
        let roster = || Some(SegmentName { stream: roster::parse_file_name(file_name)?, id: ROSTER_ID });
        let Some(name) = SegmentName::parse(file_name).or_else(roster) else { continue };
        out.push((name.stream as u8 & 3) | ((name.id as u8) << 2));
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes()[..3]);
        out.extend_from_slice(bytes);
    }
    out
}

/// Takes apart what [`join`] put together, for a look at what is in it.
pub fn split(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut rest = bytes.get(1..).unwrap_or_default();
    let mut files = BTreeMap::new();
    while let [place, a, b, c, tail @ ..] = rest
        && files.len() < FILE_COUNT_MAX
    {
        let (file, tail) = tail.split_at(tail.len().min(u32::from_le_bytes([*a, *b, *c, 0]) as usize));
        files.insert(SegmentName { stream: u32::from(place & 3), id: u64::from(place >> 2) }, file.to_vec());
        rest = tail;
    }
    files.into_iter().map(|(name, file)| (file_name(name), file)).collect()
}

fn file_name(name: SegmentName) -> String {
    if name.id == ROSTER_ID { roster::file_name(name.stream) } else { name.file_name() }
}

/// Replays a log of those bytes, every way there is.
///
/// # Panics
/// When a promise of the log is broken: that is what it is for.
pub fn read(bytes: &[u8]) {
    let Some(settings) = bytes.first() else { return };
    if settings & IS_STORY != 0 {
        return story::read(&bytes[1..]);
    }
    let mut files = split(bytes);
    for (file_name, file) in &mut files {
        if settings & IS_CORRECTED == 0 {
            continue;
        }
        match (SegmentName::parse(file_name), roster::parse_file_name(file_name)) {
            (Some(name), _) => correct(file, name),
            (None, Some(stream)) => {
                *file = roster::encode(stream, &file.iter().map(|id| u64::from(*id)).collect())
            }
            (None, None) => {}
        }
    }
    let disk = disk_of(&files);
    let first = Reading::of(&disk);
    first.check_places(&files);
    assert_eq!(first, Reading::of(&disk), "the same bytes read twice");
    check_floors(&disk, &first);
    check_settled(&files, &first);
    check_sealed(&disk, &first);
}

/// What a replay gives.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reading {
    records: Vec<(u32, LogPosition, Bytes)>,
    /// Where, and what.
    damage: Vec<(PathBuf, u64, String)>,
    /// What the rosters name and nobody has.
    missing: Vec<PathBuf>,
    torn: Vec<(PathBuf, u64)>,
}

impl Reading {
    fn of(disk: &Arc<dyn Disk>) -> Reading {
        Reading::settled_after(disk, usize::MAX)
    }

    /// What a replay gives that is settled after so many records.
    fn settled_after(disk: &Arc<dyn Disk>, settle_after: usize) -> Reading {
        let mut reading = Reading::default();
        let Ok(mut replay) = replay(disk, Path::new(DIRECTORY)) else { return reading };
        let mut is_settled = false;
        loop {
            if reading.records.len() == settle_after && !is_settled {
                is_settled = true;
                let settled = replay.settle();
                assert!(settled.is_ok(), "{settled:?}");
            }
            let Some(replayed) = replay.next() else { break };
            match replayed {
                Ok(record) => reading.records.push((record.stream, record.position, record.payload)),
                Err(CommitLogError::Missing { path }) => reading.missing.push(path),
                Err(error) => {
                    let (path, offset) = place(&error);
                    reading.damage.push((path, offset, error.to_string()));
                }
            }
        }
        reading.torn =
            replay.torn_tails().iter().map(|torn| (torn.path.clone(), u64::from(torn.offset))).collect();
        reading.torn.sort();
        reading
    }

    /// What is reported is in one of the files; records come in the order of their places.
    fn check_places(&self, files: &[(String, Vec<u8>)]) {
        let lengths: BTreeMap<PathBuf, u64> =
            files.iter().map(|(name, file)| (Path::new(DIRECTORY).join(name), file.len() as u64)).collect();
        let damage = self.damage.iter().map(|(path, offset, _)| (path, *offset));
        for (path, offset) in damage.chain(self.torn.iter().map(|(path, offset)| (path, *offset))) {
            let length = lengths.get(path).copied();
            assert!(
                length.is_some_and(|length| offset <= length.max(HEADER_BYTES as u64)),
                "{path:?}: {offset}"
            );
        }
        assert!(self.missing.iter().all(|path| !lengths.contains_key(path)), "{:?}", self.missing);
        let payload_bytes: usize = self.records.iter().map(|(_, _, payload)| payload.len()).sum();
        assert!(payload_bytes as u64 <= lengths.values().sum(), "more was returned than there is");
        let places: Vec<_> = self.records.iter().map(|(stream, position, _)| (*stream, *position)).collect();
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "out of order");
    }
}

/// Damage has a file and an offset; a memory disk has no errors of its own.
fn place(error: &CommitLogError) -> (PathBuf, u64) {
    match error {
        CommitLogError::Damaged { path, offset, .. } | CommitLogError::Truncated { path, offset } => {
            assert!(error.is_damage());
            (path.clone(), *offset)
        }
        CommitLogError::UnsupportedVersion { path, .. } => (path.clone(), 0),
        other => panic!("a memory disk gave {other}"),
    }
}

/// Replay from a place gives the records from there.
fn check_floors(disk: &Arc<dyn Disk>, all: &Reading) {
    for (_, floor, _) in all.records.iter().step_by(all.records.len() / 4 + 1) {
        let Ok(replay) = replay_from(disk, Path::new(DIRECTORY), |_| *floor) else { continue };
        let places: Vec<_> = replay.flatten().map(|record| (record.stream, record.position)).collect();
        let records = all.records.iter().filter(|(_, position, _)| position >= floor);
        let expected: Vec<_> = records.map(|(stream, position, _)| (*stream, *position)).collect();
        assert_eq!(places, expected, "from {floor}");
    }
}

/// Settled on the way, a replay gives the same.
fn check_settled(files: &[(String, Vec<u8>)], all: &Reading) {
    for settle_after in [0, all.records.len() / 2] {
        let settled = Reading::settled_after(&disk_of(files), settle_after);
        assert_eq!(*all, settled, "settled after {settle_after} records");
    }
}

/// What a start does to the last segments changes no record, and leaves no torn tail that a later
/// start, when they are no longer the last, would take for damage.
fn check_sealed(disk: &Arc<dyn Disk>, before: &Reading) {
    let directory = Path::new(DIRECTORY);
    let Ok(segments) = list_segments(&**disk, directory) else { return };
    let last: BTreeMap<u32, u64> = segments.iter().map(|(name, _)| (name.stream, name.id)).collect();
    for (stream, id) in last {
        let sealed = seal_last_segment(&**disk, directory, SegmentName { stream, id });
        assert!(sealed.is_ok(), "{sealed:?}");
        let next = SegmentName { stream, id: id + 1 };
        write(&**disk, &next.path(directory), &encode_header(next, 4096));
    }
    // Nobody goes on with a damaged log, so it is left as it is and may look worse next time.
    if before.damage.is_empty() && before.missing.is_empty() {
        let after = Reading::of(disk);
        assert_eq!(before.records, after.records, "after the last segments were ended");
        assert_eq!(after.damage, [], "what was torn became damage");
    }
}

/// Sets the header's and the frames' checks right, as far as frames follow each other.
fn correct(file: &mut Vec<u8>, name: SegmentName) {
    file.resize(file.len().max(HEADER_BYTES), 0);
    file[..HEADER_BYTES].copy_from_slice(&encode_header(name, 4096));
    let mut offset = HEADER_BYTES;
    while offset + FRAME_HEADER_BYTES <= file.len() {
        correct_frame(file, name, offset);
        offset = match find_frame(file, name, offset) {
            Found::Frame(frame) => frame.end,
            Found::Nothing | Found::Garbage { .. } => offset + ALIGNMENT,
        };
    }
}

fn disk_of(files: &[(String, Vec<u8>)]) -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    for (name, file) in files {
        write(&*disk, &Path::new(DIRECTORY).join(name), file);
    }
    disk
}

fn write(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    let written = disk
        .create_dir_all(Path::new(DIRECTORY))
        .and_then(|()| disk.open(path, OpenMode::CreateNew)?.write_all_at(bytes, 0));
    assert!(written.is_ok(), "a memory disk has room: {written:?}");
}
