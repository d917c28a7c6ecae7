//! The bytes of a segment. See `docs/formats/commitlog.md` for the drawing.
//!
//! All integers are little-endian. Every check covers the stream, the segment and the offset, so that
//! bytes that belong elsewhere never look valid here.

use std::path::{Path, PathBuf};

/// First bytes of a segment.
const MAGIC: [u8; 8] = *b"PERIclog";
/// The version this program writes; it reads those before, too.
pub(crate) const VERSION: u32 = 2;
/// Length of a segment's header.
pub(crate) const HEADER_BYTES: usize = 32;
/// Length of a frame's header.
pub(crate) const FRAME_HEADER_BYTES: usize = 12;
/// Frames begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 4;
/// What stands behind the last frame: of a segment that is written again, something may follow.
pub(crate) const BLANK: [u8; FRAME_HEADER_BYTES] = [0; FRAME_HEADER_BYTES];
/// Length of the frames that say how much was synced.
pub(crate) const MARKER_BYTES: usize = FRAME_HEADER_BYTES + 4;
/// Kept free behind every record: a marker and the end.
pub(crate) const RESERVED_BYTES: usize = 2 * MARKER_BYTES;
/// Largest segment, and so the most memory that replaying one takes.
pub(crate) const SEGMENT_BYTES_MAX: u32 = 1 << 30;

const KIND_SHIFT: u32 = 28;
const LENGTH_MASK: u32 = (1 << KIND_SHIFT) - 1;
const _: () = assert!(MARKER_BYTES.is_multiple_of(ALIGNMENT));
const _: () = assert!(SEGMENT_BYTES_MAX <= u32::MAX / 2, "no offset in a segment is too large for its field");
const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGNMENT) && FRAME_HEADER_BYTES.is_multiple_of(ALIGNMENT));

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A caller's record in version 1. The frame says so and not the segment's header alone, so that a record is
    /// read for what it is when the header is damaged.
    FirstRecord = 1,
    /// The offset below which the segment was known durable when this was written.
    Synced = 2,
    /// The last frame of a segment; its payload is that of [`Kind::Synced`].
    End = 3,
    /// A caller's record.
    Record = 4,
}

impl Kind {
    /// The version of the format whose records are of this kind; `None` of what is no record.
    pub(crate) fn record_version(self) -> Option<u32> {
        match self {
            Kind::FirstRecord => Some(1),
            Kind::Record => Some(2),
            Kind::Synced | Kind::End => None,
        }
    }
}

/// Which segment; goes into every check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentName {
    pub(crate) stream: u32,
    pub(crate) id: u64,
}

impl SegmentName {
    pub(crate) fn file_name(self) -> String {
        format!("commitlog-{}-{}.log", self.stream, self.id)
    }

    pub(crate) fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.file_name())
    }

    /// Reads a name back; anything that [`SegmentName::file_name`] would not write is not ours.
    pub(crate) fn parse(file_name: &str) -> Option<SegmentName> {
        let name = SegmentName::parse_with(file_name, ".log")?;
        (name.file_name() == file_name).then_some(name)
    }

    /// The name of the file once the segment is needed no more and kept to be written again.
    pub(crate) fn spare_file_name(self) -> String {
        format!("commitlog-{}-{}.spare", self.stream, self.id)
    }

    /// What a spare was.
    pub(crate) fn parse_spare(file_name: &str) -> Option<SegmentName> {
        let name = SegmentName::parse_with(file_name, ".spare")?;
        (name.spare_file_name() == file_name).then_some(name)
    }

    fn parse_with(file_name: &str, suffix: &str) -> Option<SegmentName> {
        let (stream, id) = file_name.strip_prefix("commitlog-")?.strip_suffix(suffix)?.split_once('-')?;
        Some(SegmentName { stream: stream.parse().ok()?, id: id.parse().ok()? })
    }
}

/// The header of a segment.
pub(crate) fn encode_header(name: SegmentName, segment_bytes: u32) -> [u8; HEADER_BYTES] {
    encode_header_of(VERSION, name, segment_bytes)
}

fn encode_header_of(version: u32, name: SegmentName, segment_bytes: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[0..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[12..16].copy_from_slice(&name.stream.to_le_bytes());
    header[16..24].copy_from_slice(&name.id.to_le_bytes());
    header[24..28].copy_from_slice(&segment_bytes.to_le_bytes());
    let check = crc32fast::hash(&header[..28]);
    header[28..32].copy_from_slice(&check.to_le_bytes());
    header
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// `segment_bytes` were reserved before the first record.
    Sound {
        segment_bytes: u32,
    },
    /// Sound, of a version we do not read.
    Newer {
        version: u32,
    },
    Bad {
        expected: u32,
        got: u32,
    },
}

pub(crate) fn check_header(segment: &[u8], name: SegmentName) -> Header {
    let Some(header) = segment.get(..HEADER_BYTES) else {
        return Header::Bad { expected: 0, got: crc32fast::hash(segment) };
    };
    let (expected, got) = (u32_at(header, 28), crc32fast::hash(&header[..28]));
    if expected != got || header[0..8] != MAGIC {
        return Header::Bad { expected, got };
    }
    let version = u32_at(header, 8);
    if !(1..=VERSION).contains(&version) {
        return Header::Newer { version };
    }
    let segment_bytes = u32_at(header, 24);
    let ours = encode_header_of(version, name, segment_bytes);
    if ours != header {
        return Header::Bad { expected: u32_at(&ours, 28), got };
    }
    Header::Sound { segment_bytes }
}

/// Length of a frame with so long a payload.
pub(crate) fn frame_bytes(payload_bytes: usize) -> usize {
    FRAME_HEADER_BYTES + payload_bytes.next_multiple_of(ALIGNMENT)
}

/// The longest record of a segment: its frame takes at most half of the room.
pub(crate) const fn record_bytes_max(segment_bytes: u32) -> usize {
    let half = (segment_bytes as usize - HEADER_BYTES - RESERVED_BYTES) / 2;
    let longest = half - FRAME_HEADER_BYTES - ALIGNMENT;
    if longest < LENGTH_MASK as usize { longest } else { LENGTH_MASK as usize }
}

/// Appends a frame that will lie at `offset` of the segment.
pub(crate) fn encode_frame(
    target: &mut Vec<u8>,
    name: SegmentName,
    offset: u32,
    kind: Kind,
    parts: &[&[u8]],
) {
    let payload_bytes: usize = parts.iter().map(|part| part.len()).sum();
    assert!(payload_bytes <= LENGTH_MASK as usize, "the caller checks the record's length");
    assert!((offset as usize).is_multiple_of(ALIGNMENT), "frames begin at multiples of the alignment");
    let word = (kind as u32) << KIND_SHIFT | payload_bytes as u32;
    let head_check = head_check(name, offset, word);
    let start = target.len();
    target.reserve(frame_bytes(payload_bytes));
    target.extend_from_slice(&word.to_le_bytes());
    target.extend_from_slice(&head_check.to_le_bytes());
    target.extend_from_slice(&[0; 4]);
    parts.iter().for_each(|part| target.extend_from_slice(part));
    target.resize(start + frame_bytes(payload_bytes), 0);
    let check = payload_check(head_check, &target[start + FRAME_HEADER_BYTES..]);
    target[start + 8..start + 12].copy_from_slice(&check.to_le_bytes());
}

/// A frame whose header is sound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    /// Where the payload begins in the segment.
    pub(crate) payload_offset: usize,
    pub(crate) payload_bytes: usize,
    /// Where the next frame begins.
    pub(crate) end: usize,
    head_check: u32,
    expected: u32,
}

/// What is at an offset where a frame should begin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    Frame(Frame),
    /// Nothing was written here: the length word is zero, or the file ends.
    Nothing,
    /// Something that is no frame header.
    Garbage {
        expected: u32,
        got: u32,
    },
}

/// Looks at a frame's header; the payload's check is left to [`Frame::check_payload`].
pub(crate) fn find_frame(segment: &[u8], name: SegmentName, offset: usize) -> Found {
    find_frame_in(segment, name, offset, offset)
}

/// As [`find_frame`], when only a piece of the segment is at hand: the frame is `index` bytes into the
/// piece and `offset` bytes into the segment.
pub(crate) fn find_frame_in(piece: &[u8], name: SegmentName, index: usize, offset: usize) -> Found {
    let Some(header) = piece.get(index..index.saturating_add(FRAME_HEADER_BYTES)) else {
        let rest = piece.get(index..).unwrap_or_default();
        if rest.iter().all(|byte| *byte == 0) {
            return Found::Nothing;
        }
        return Found::Garbage { expected: 0, got: crc32fast::hash(rest) };
    };
    let word = u32_at(header, 0);
    if header.iter().all(|byte| *byte == 0) {
        return Found::Nothing;
    }
    let (expected, got) = (u32_at(header, 4), head_check(name, offset as u32, word));
    let garbage = Found::Garbage { expected, got };
    let kind = match word >> KIND_SHIFT {
        1 => Kind::FirstRecord,
        2 => Kind::Synced,
        3 => Kind::End,
        4 => Kind::Record,
        _ => return garbage,
    };
    let payload_bytes = (word & LENGTH_MASK) as usize;
    let end = index + frame_bytes(payload_bytes);
    if end > piece.len() || expected != got {
        return garbage;
    }
    Found::Frame(Frame {
        kind,
        payload_offset: index + FRAME_HEADER_BYTES,
        payload_bytes,
        end,
        head_check: got,
        expected: u32_at(header, 8),
    })
}

impl Frame {
    /// Compares the payload's checksum; the error holds the two, written and found.
    pub(crate) fn check_payload(&self, segment: &[u8]) -> Result<(), (u32, u32)> {
        let got = payload_check(self.head_check, &segment[self.payload_offset..self.end]);
        if got == self.expected { Ok(()) } else { Err((self.expected, got)) }
    }

    /// The offset that a [`Kind::Synced`] or [`Kind::End`] frame carries.
    pub(crate) fn synced_offset(&self, segment: &[u8]) -> Option<usize> {
        if self.kind.record_version().is_some() || self.payload_bytes != 4 {
            return None;
        }
        Some(u32_at(segment, self.payload_offset) as usize)
    }
}

/// The first wholly sound frame at or after `offset`.
pub(crate) fn find_sound_frame(segment: &[u8], name: SegmentName, offset: usize) -> Option<usize> {
    let mut offset = offset.max(HEADER_BYTES).next_multiple_of(ALIGNMENT);
    while offset < segment.len() {
        // Most places are told apart by their first word, without a check.
        if !may_begin_frame(segment, offset) {
            offset += ALIGNMENT;
            continue;
        }
        if let Found::Frame(frame) = find_frame(segment, name, offset)
            && frame.check_payload(segment).is_ok()
        {
            return Some(offset);
        }
        offset += ALIGNMENT;
    }
    None
}

/// May there be a frame of a known kind that fits, by its word alone?
fn may_begin_frame(segment: &[u8], offset: usize) -> bool {
    let rest = &segment[offset..];
    if rest.len() < FRAME_HEADER_BYTES {
        return false;
    }
    let word = u32_at(rest, 0);
    let payload_bytes = (word & LENGTH_MASK) as usize;
    match word >> KIND_SHIFT {
        1 | 4 => frame_bytes(payload_bytes) <= rest.len(),
        2 | 3 => frame_bytes(payload_bytes) == MARKER_BYTES && MARKER_BYTES <= rest.len(),
        _ => false,
    }
}

/// Sets the checks of a frame right, if its word may stand for one there; for hostile input.
pub(crate) fn correct_frame(segment: &mut [u8], name: SegmentName, offset: usize) {
    let word = u32_at(segment, offset);
    let end = offset + frame_bytes((word & LENGTH_MASK) as usize);
    if word == 0 || end > segment.len() {
        return;
    }
    let head_check = head_check(name, offset as u32, word);
    let check = payload_check(head_check, &segment[offset + FRAME_HEADER_BYTES..end]);
    segment[offset + 4..offset + 8].copy_from_slice(&head_check.to_le_bytes());
    segment[offset + 8..offset + 12].copy_from_slice(&check.to_le_bytes());
}

fn head_check(name: SegmentName, offset: u32, word: u32) -> u32 {
    let mut covered = [0; 20];
    covered[0..8].copy_from_slice(&name.id.to_le_bytes());
    covered[8..12].copy_from_slice(&name.stream.to_le_bytes());
    covered[12..16].copy_from_slice(&offset.to_le_bytes());
    covered[16..20].copy_from_slice(&word.to_le_bytes());
    crc32fast::hash(&covered)
}

fn payload_check(head_check: u32, padded_payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(head_check);
    hasher.update(padded_payload);
    hasher.finalize()
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: SegmentName = SegmentName { stream: 3, id: 7 };

    #[test]
    fn names_round_trip_and_strangers_are_not_ours() {
        assert_eq!(SegmentName::parse("commitlog-3-7.log"), Some(NAME));
        for stranger in
            ["commitlog-3-7.log.tmp", "commitlog-03-7.log", "commitlog-3.log", "LOCK", "commitlog--1-2.log"]
        {
            assert_eq!(SegmentName::parse(stranger), None, "{stranger}");
        }
    }

    #[test]
    fn a_header_is_valid_for_its_own_segment_alone() {
        let earlier = encode_header_of(1, NAME, 4096);
        assert_eq!(check_header(&earlier, NAME), Header::Sound { segment_bytes: 4096 });
        for version in [0, VERSION + 1] {
            let strange = encode_header_of(version, NAME, 4096);
            assert_eq!(check_header(&strange, NAME), Header::Newer { version });
        }
        let header = encode_header(NAME, 4096);
        assert_eq!(check_header(&header, NAME), Header::Sound { segment_bytes: 4096 });
        assert!(matches!(check_header(&header, SegmentName { id: 8, ..NAME }), Header::Bad { .. }));
        for index in 0..HEADER_BYTES {
            let mut flipped = header;
            flipped[index] ^= 0x10;
            assert!(matches!(check_header(&flipped, NAME), Header::Bad { .. }), "byte {index}");
        }
        assert!(matches!(check_header(&header[..31], NAME), Header::Bad { .. }));
    }

    #[test]
    fn a_frame_is_valid_at_its_own_place_alone() {
        for payload in [&b""[..], b"a", b"abcd", b"abcdefg"] {
            let mut segment = encode_header(NAME, 4096).to_vec();
            encode_frame(&mut segment, NAME, 32, Kind::Record, &[payload]);
            let Found::Frame(frame) = find_frame(&segment, NAME, 32) else { panic!("no frame") };
            assert_eq!(frame.check_payload(&segment), Ok(()));
            assert_eq!(&segment[frame.payload_offset..][..frame.payload_bytes], payload);
            assert_eq!(frame.end, segment.len());
            let moved = [&segment[..32], &[0; 4], &segment[32..]].concat();
            assert!(matches!(find_frame(&moved, NAME, 36), Found::Garbage { .. }));
            for index in 32..segment.len() {
                let mut flipped = segment.clone();
                flipped[index] ^= 1;
                let sound = match find_frame(&flipped, NAME, 32) {
                    Found::Frame(frame) => frame.check_payload(&flipped).is_ok(),
                    _ => false,
                };
                assert!(!sound, "byte {index} of {payload:?}");
            }
        }
    }
}
