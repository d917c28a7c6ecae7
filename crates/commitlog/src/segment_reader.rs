//! Reads one segment's bytes and judges what does not fit.
//!
//! Group sync permits this: bytes behind the last synced offset may be torn in any order, since no
//! write of them was known durable. Bytes below it may not. So the question for a bad frame at some
//! offset is whether that offset is below what any sound marker in the segment calls synced, and for
//! every segment but the last of its stream the answer is yes, since a segment is ended and synced
//! before the next is created. And a segment that the roster names was durable with its header, and as long
//! as the header says, until its end was durable too: one that is shorter and has no end was cut off.

use std::path::PathBuf;

use bytes::Bytes;

use crate::error::CommitLogError;
use crate::format::{
    Found, HEADER_BYTES, Header, Kind, SegmentName, VERSION, check_header, find_frame, find_sound_frame,
};

/// What a segment holds, in order.
#[derive(Debug)]
pub(crate) enum Item {
    Record {
        offset: u32,
        /// The version of the format it was written in.
        version: u32,
        payload: Bytes,
    },
    /// Durable bytes have changed; reading goes on behind them.
    Damage(CommitLogError),
    /// The segment was being written when the power went; nothing behind this is a record.
    Torn { offset: u32, dropped_bytes: u32 },
}

/// What is known of a segment beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// The stream has no later segment.
    pub(crate) is_last: bool,
    /// The roster names it.
    pub(crate) is_entered: bool,
}

#[derive(Debug)]
pub(crate) struct SegmentReader {
    segment: Bytes,
    name: SegmentName,
    path: PathBuf,
    standing: Standing,
    /// A last segment without an end is at least so long.
    reserved_bytes: usize,
    /// Everything below this offset was durable when the segment was written.
    known_synced: usize,
    offset: usize,
    finished: bool,
}

impl SegmentReader {
    pub(crate) fn new(segment: Bytes, name: SegmentName, path: PathBuf, standing: Standing) -> SegmentReader {
        let known_synced = if standing.is_last { known_synced(&segment, name) } else { usize::MAX };
        let (offset, reserved_bytes, finished) = (0, 0, false);
        SegmentReader { segment, name, path, standing, reserved_bytes, known_synced, offset, finished }
    }

    /// After the last item: where the sound frames end, without the end frame.
    pub(crate) fn end_offset(&self) -> usize {
        self.offset
    }

    fn header(&mut self) -> Option<Item> {
        self.offset = HEADER_BYTES;
        match check_header(&self.segment, self.name) {
            Header::Sound { segment_bytes } => {
                if self.standing.is_entered {
                    self.reserved_bytes = segment_bytes as usize;
                }
                None
            }
            Header::Newer { version } => {
                self.finished = true;
                let (path, supported) = (self.path.clone(), VERSION);
                Some(Item::Damage(CommitLogError::UnsupportedVersion { path, version, supported }))
            }
            Header::Bad { expected, got } => {
                // The header was durable before anything was written behind it, and before it was entered.
                let Standing { is_last, is_entered } = self.standing;
                if is_last && !is_entered && self.is_zero_from(HEADER_BYTES) {
                    return self.torn(0);
                }
                if self.segment.len() < HEADER_BYTES {
                    return Some(self.truncated(self.segment.len()));
                }
                Some(self.damaged(0, expected, got))
            }
        }
    }

    /// A frame that is not what it should be: torn, or damaged with reading going on at `resume`.
    fn bad(&mut self, expected: u32, got: u32, resume: Option<usize>) -> Option<Item> {
        let offset = self.offset;
        if self.may_end(offset) {
            return self.torn(offset);
        }
        match resume.or_else(|| find_sound_frame(&self.segment, self.name, offset + 1)) {
            Some(next) => self.offset = next,
            None => self.finished = true,
        }
        Some(self.damaged(offset, expected, got))
    }

    /// May the sound frames of the last segment end here?
    fn may_end(&self, offset: usize) -> bool {
        self.standing.is_last && offset >= self.known_synced && self.segment.len() >= self.reserved_bytes
    }

    fn torn(&mut self, offset: usize) -> Option<Item> {
        self.finished = true;
        self.offset = offset;
        let written = self.segment[offset.min(self.segment.len())..].iter().rposition(|byte| *byte != 0)?;
        Some(Item::Torn { offset: offset as u32, dropped_bytes: written as u32 + 1 })
    }

    fn nothing(&mut self) -> Option<Item> {
        if self.may_end(self.offset) {
            // Behind the end there may be what another segment has left in the file.
            if find_sound_frame(&self.segment, self.name, self.offset + 1).is_some() {
                return self.torn(self.offset);
            }
            self.finished = true;
            return None;
        }
        if !self.is_zero_from(self.offset) {
            return self.bad(0, 0, None);
        }
        Some(self.truncated(self.offset))
    }

    fn truncated(&mut self, offset: usize) -> Item {
        self.finished = true;
        let (path, offset) = (self.path.clone(), offset as u64);
        Item::Damage(CommitLogError::Truncated { path, offset })
    }

    fn is_zero_from(&self, offset: usize) -> bool {
        self.segment.get(offset..).unwrap_or_default().iter().all(|byte| *byte == 0)
    }

    fn damaged(&self, offset: usize, expected: u32, got: u32) -> Item {
        let (path, offset) = (self.path.clone(), offset as u64);
        Item::Damage(CommitLogError::Damaged { path, offset, expected, got })
    }
}

impl Iterator for SegmentReader {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.offset == 0
            && !self.finished
            && let Some(item) = self.header()
        {
            return Some(item);
        }
        while !self.finished {
            let offset = self.offset;
            match find_frame(&self.segment, self.name, offset) {
                Found::Nothing => return self.nothing(),
                Found::Garbage { expected, got } => return self.bad(expected, got, None),
                Found::Frame(frame) => {
                    if let Err((expected, got)) = frame.check_payload(&self.segment) {
                        return self.bad(expected, got, Some(frame.end));
                    }
                    if frame.kind == Kind::End {
                        // What follows was reserved, or is what another segment has left: the file is cut off
                        // behind its end, which need not be durable.
                        self.finished = true;
                        return None;
                    }
                    self.offset = frame.end;
                    if let Some(version) = frame.kind.record_version() {
                        let range = frame.payload_offset..frame.payload_offset + frame.payload_bytes;
                        let payload = self.segment.slice(range);
                        return Some(Item::Record { offset: offset as u32, version, payload });
                    }
                }
            }
        }
        None
    }
}

/// The greatest offset that a sound marker calls synced.
fn known_synced(segment: &[u8], name: SegmentName) -> usize {
    let (mut known, mut offset) = (0, HEADER_BYTES);
    loop {
        match find_frame(segment, name, offset) {
            Found::Frame(frame) => {
                if let Some(synced) = frame.synced_offset(segment)
                    && frame.check_payload(segment).is_ok()
                {
                    known = known.max(synced.min(offset));
                }
                offset = frame.end;
            }
            Found::Nothing | Found::Garbage { .. } => match find_sound_frame(segment, name, offset + 1) {
                Some(next) => offset = next,
                None => return known,
            },
        }
    }
}
