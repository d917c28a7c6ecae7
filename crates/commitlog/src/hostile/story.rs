//! A log that was written as logs are, then hurt in one place: what comes back is known exactly.
//!
//! ```text
//!   u8 harm | u8 segment | u16 LE place | u8 how much | acts…
//!   harm  its kind, what is behind the end, whether there is a roster
//!   act   0..=199: a record of so many bytes, times four, of version 1 if odd      200..=239: a sync and its frame
//!         240..=255: the segment is full, a new one begins
//! ```
//!
//! Only harm that is bound to be noticed is done: one byte changed, a run turned to zeros, the file cut off,
//! and of a log with a roster the file gone. What is expected then follows from `docs/formats/commitlog.md`,
//! written down here once more and apart from the reader.

use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::{DIRECTORY, Reading, check_floors, check_sealed, check_settled, disk_of};
use crate::format::{BLANK, HEADER_BYTES, Kind, SegmentName, encode_frame, encode_header};
use crate::position::LogPosition;
use crate::roster;
use crate::segment_reader::Standing;

const STREAM: u32 = 1;
const ACT_COUNT_MAX: usize = 256;
/// In the kind of harm.
const IS_WRITTEN_AGAIN: u8 = 4;
const HAS_ROSTER: u8 = 8;
/// What is reserved for the last segment, at least.
const RESERVED_BYTES: usize = 4096;
/// The id of a segment whose file is written again.
const LEFT_ID: u64 = 1 << 40;

/// A frame of the log.
struct Written {
    kind: Kind,
    offset: usize,
    end: usize,
    /// What a frame of a sync says.
    synced: usize,
    payload: Bytes,
}

/// A segment as it was written.
struct Segment {
    id: u64,
    bytes: Vec<u8>,
    frames: Vec<Written>,
    /// Everything below is durable.
    synced: usize,
}

impl Segment {
    fn new(id: u64) -> Segment {
        let bytes = encode_header(SegmentName { stream: STREAM, id }, 4096).to_vec();
        Segment { id, bytes, frames: Vec::new(), synced: HEADER_BYTES }
    }

    fn push(&mut self, kind: Kind, payload: Vec<u8>) {
        let (name, offset) = (SegmentName { stream: STREAM, id: self.id }, self.bytes.len());
        encode_frame(&mut self.bytes, name, offset as u32, kind, &[&payload]);
        let (end, synced) = (self.bytes.len(), self.synced);
        self.frames.push(Written { kind, offset, end, synced, payload: payload.into() });
    }

    fn push_synced(&mut self, kind: Kind) {
        self.push(kind, (self.synced as u32).to_le_bytes().to_vec());
    }

    fn path(&self) -> PathBuf {
        SegmentName { stream: STREAM, id: self.id }.path(Path::new(DIRECTORY))
    }
}

/// Writes the story's log, does the harm, and compares what comes back.
pub(super) fn read(bytes: &[u8]) {
    let [harm, segment, low, high, amount, acts @ ..] = bytes else { return };
    let segments = write_log(acts);
    let index = usize::from(*segment) % segments.len();
    let place = usize::from(u16::from_le_bytes([*low, *high])) % segments[index].bytes.len();
    let hurt = hurt(&segments[index].bytes, *harm, place, *amount);
    let mut files: Vec<(String, Vec<u8>)> = segments
        .iter()
        .map(|segment| (SegmentName { stream: STREAM, id: segment.id }.file_name(), segment.bytes.clone()))
        .collect();
    files[index].1.clone_from(&hurt);
    if index + 1 < segments.len() || *harm % 4 != 2 {
        let last = files.last_mut();
        last.into_iter().for_each(|(_, file)| leave_behind(file, *harm & IS_WRITTEN_AGAIN != 0));
    }
    let is_entered = harm & HAS_ROSTER != 0;
    let gone = (is_entered && harm % 4 == 3 && amount & 1 == 1).then_some(index);
    let expected = expect(&segments, &files, is_entered, gone);
    gone.into_iter().for_each(|index| _ = files.remove(index));
    if is_entered {
        let ids = segments.iter().map(|segment| segment.id).collect();
        files.push((roster::file_name(STREAM), roster::encode(STREAM, &ids)));
    }
    let disk = disk_of(&files);
    let reading = Reading::of(&disk);
    reading.check_places(&files);
    assert_eq!(reading.records, expected.records, "records");
    let first = reading.damage.first().map(|(path, offset, _)| (path.clone(), *offset));
    assert_eq!(first, expected.damage, "the first damage");
    assert_eq!(reading.missing, expected.missing, "what is missing");
    assert_eq!(reading.torn.first(), expected.torn.as_ref(), "the torn tail");
    check_floors(&disk, &reading);
    check_settled(&files, &reading);
    check_sealed(&disk, &reading);
}

/// Behind what was written there are zeros that were reserved; or in a segment that is written again a blank, and
/// what another of the stream has left.
fn leave_behind(file: &mut Vec<u8>, is_written_again: bool) {
    let end = file.len();
    file.resize((end + 64).max(RESERVED_BYTES), 0);
    if is_written_again {
        let mut left = Segment::new(LEFT_ID);
        while left.bytes.len() < (end + 200).max(RESERVED_BYTES) {
            left.push(Kind::Record, vec![7; 44]);
        }
        file.truncate(end + BLANK.len());
        file.extend_from_slice(&left.bytes[file.len()..]);
    }
}

fn write_log(acts: &[u8]) -> Vec<Segment> {
    let mut segments = vec![Segment::new(1)];
    for (number, act) in acts.iter().take(ACT_COUNT_MAX).enumerate() {
        let id = segments.len() as u64;
        let Some(segment) = segments.last_mut() else { return segments };
        match act {
            0..=199 => {
                // Both versions of records, as in a segment that an earlier version began.
                let kind = if act.is_multiple_of(2) { Kind::Record } else { Kind::FirstRecord };
                segment.push(kind, vec![number as u8 | 1; usize::from(*act) * 4]);
            }
            200..=239 => {
                segment.synced = segment.bytes.len();
                segment.push_synced(Kind::Synced);
            }
            240.. => {
                segment.push_synced(Kind::End);
                segments.push(Segment::new(id + 1));
            }
        }
    }
    segments
}

fn hurt(bytes: &[u8], harm: u8, place: usize, amount: u8) -> Vec<u8> {
    let mut hurt = bytes.to_vec();
    match harm % 4 {
        0 => hurt[place] ^= amount,
        1 => {
            let end = bytes.len().min(place + usize::from(amount) * 4);
            hurt[place..end].fill(0);
        }
        2 => hurt.truncate(place),
        _ => {}
    }
    hurt
}

/// What must come back.
#[derive(Default)]
struct Expected {
    records: Vec<(u32, LogPosition, Bytes)>,
    /// The first of it.
    damage: Option<(PathBuf, u64)>,
    missing: Vec<PathBuf>,
    torn: Option<(PathBuf, u64)>,
}

fn expect(
    segments: &[Segment],
    files: &[(String, Vec<u8>)],
    is_entered: bool,
    gone: Option<usize>,
) -> Expected {
    let mut expected = Expected::default();
    for (index, (segment, (_, bytes))) in segments.iter().zip(files).enumerate() {
        if gone == Some(index) {
            expected.missing.push(segment.path());
            continue;
        }
        let is_last = index + 1 == segments.len();
        expect_segment(&mut expected, segment, bytes, Standing { is_last, is_entered });
    }
    expected
}

fn expect_segment(expected: &mut Expected, segment: &Segment, bytes: &[u8], standing: Standing) {
    let Standing { is_last, is_entered } = standing;
    let is_whole = |from: usize, to: usize| bytes.get(from..to) == Some(&segment.bytes[from..to]);
    let holds_any = |from: usize| bytes.get(from..).unwrap_or_default().iter().any(|byte| *byte != 0);
    let mut damaged = |offset: usize| {
        expected.damage.get_or_insert((segment.path(), offset as u64));
    };
    // What was entered had its header, and all that was reserved for it.
    let is_headed = is_whole(0, HEADER_BYTES);
    let is_cut = is_entered && is_headed && bytes.len() < RESERVED_BYTES;
    if !is_headed {
        if is_last && !is_entered && !holds_any(HEADER_BYTES) {
            expected.torn = holds_any(0).then(|| (segment.path(), 0));
            return;
        }
        if bytes.len() < HEADER_BYTES {
            return damaged(bytes.len());
        }
        damaged(0);
    }
    let whole = |frame: &&Written| is_whole(frame.offset, frame.end);
    let is_marker = |frame: &&Written| frame.kind.record_version().is_none();
    let markers = segment.frames.iter().filter(is_marker).filter(whole);
    let known_synced = markers.map(|frame| frame.synced).max().unwrap_or(0);
    for frame in &segment.frames {
        if whole(&frame) {
            if frame.kind.record_version().is_some() {
                let position = LogPosition { segment: segment.id, offset: frame.offset as u32 };
                expected.records.push((STREAM, position, frame.payload.clone()));
            }
            continue;
        }
        if is_last && !is_cut && frame.offset >= known_synced {
            // Blank, it is the end, unless more of the segment follows.
            let head = bytes.get(frame.offset..).unwrap_or_default();
            let is_blank = head.iter().take(BLANK.len()).all(|byte| *byte == 0);
            let follows = segment.frames.iter().any(|other| other.offset > frame.offset && whole(&other));
            expected.torn = (!is_blank || follows).then(|| (segment.path(), frame.offset as u64));
            return;
        }
        damaged(frame.offset);
        // Nothing sound follows what is cut off.
        if bytes.len() < frame.end {
            return;
        }
    }
}
