//! Envelopes in segments: from version 5 on, once STARTUP was answered.

use std::cmp::Ordering;

use bytes::{Buf, Bytes, BytesMut};

use super::{Decoder, Fate, FrameError, Large, RawHeader, Skipping};
use crate::compression::decompress_lz4_block;
use crate::segment::{Layout, PAYLOAD_BYTES_MAX, SegmentHeader, TRAILER_BYTES, check_payload};
use crate::{Flags, Frame, HEADER_BYTES, Header, ProtocolError, Version};

/// How many malformed messages in a row one segment may hold before all of it is taken to be
/// garbage (Cassandra's `consecutive_message_errors_threshold`).
const ERRORS_IN_A_ROW_MAX: u32 = 1;

impl Decoder {
    pub(super) fn next_in_segments(
        &mut self,
        version: Version,
        layout: Layout,
    ) -> Option<Result<Frame, FrameError>> {
        loop {
            if !self.contained.is_empty() {
                return Some(self.next_contained(version));
            }
            let (header, payload) = match self.next_payload(layout)? {
                Ok(payload) => payload,
                Err(error) => return Some(Err(error)),
            };
            self.errors_in_a_row = 0;
            if header.is_self_contained {
                self.contained = payload;
            } else if let Some(frame) = self.add_to_large(version, &payload) {
                return Some(frame);
            }
        }
    }

    /// The next segment's payload, checked and decompressed.
    fn next_payload(&mut self, layout: Layout) -> Option<Result<(SegmentHeader, Bytes), FrameError>> {
        let header_bytes = layout.header_bytes();
        if self.input.len() < header_bytes {
            return None;
        }
        let header = match layout.decode(&self.input) {
            Ok(header) => header,
            Err(mismatch) => {
                return Some(Err(self.error(0, mismatch.error(self.connection, true), Fate::Close)));
            }
        };
        if self.input.len() < header_bytes + header.payload_bytes + TRAILER_BYTES {
            return None;
        }
        self.input.advance(header_bytes);
        let payload = self.input.split_to(header.payload_bytes).freeze();
        let mut trailer = [0; TRAILER_BYTES];
        self.input.copy_to_slice(&mut trailer);
        if let Err(mismatch) = check_payload(&payload, trailer) {
            return Some(Err(self.error(0, mismatch.error(self.connection, false), Fate::Close)));
        }
        let plain = match header.plain_bytes {
            None => Ok(payload),
            Some(length) => decompress_lz4_block(&payload, length, PAYLOAD_BYTES_MAX)
                .map_err(|error| self.error(0, error, Fate::Close)),
        };
        Some(plain.map(|plain| (header, plain)))
    }

    /// Takes the next envelope off the segment at hand.
    fn next_contained(&mut self, version: Version) -> Result<Frame, FrameError> {
        let remaining = self.contained.len();
        if remaining < HEADER_BYTES {
            let error = ProtocolError::EnvelopeCut { length: HEADER_BYTES as u64, remaining };
            return Err(self.error(0, error, Fate::Close));
        }
        let raw = RawHeader::read(&self.contained);
        if let Some(length) = negative(raw.length) {
            let error = ProtocolError::NegativeBodyLength { length };
            return Err(self.error(raw.stream, error, Fate::Close));
        }
        let total_length = HEADER_BYTES + raw.length as usize;
        let header = match self.judge_contained(&raw, version) {
            Ok(header) => header,
            Err(error) => {
                self.contained.advance(total_length.min(remaining));
                return Err(self.error_in_segment(raw.stream, error));
            }
        };
        if total_length > remaining {
            let error = ProtocolError::EnvelopeCut { length: total_length as u64, remaining };
            return Err(self.error(raw.stream, error, Fate::Close));
        }
        let mut body = self.contained.split_to(total_length);
        body.advance(HEADER_BYTES);
        if body.len() > self.frame_bytes_max {
            let length = body.len() as u64;
            let error = ProtocolError::MessageTooBig { length, length_max: self.frame_bytes_max };
            return Err(self.error(raw.stream, error, Fate::GoOn));
        }
        Ok(Frame { header, body })
    }

    fn judge_contained(&self, raw: &RawHeader, version: Version) -> Result<Header, ProtocolError> {
        let got = raw.version()?;
        let opcode = raw.opcode(self.direction)?;
        if got != version {
            return Err(ProtocolError::VersionChanged { got, established: version });
        }
        Ok(Header { version, flags: raw.flags.without(Flags::COMPRESSED), stream: raw.stream, opcode })
    }

    /// An error that leaves the rest of the segment readable, unless it is one too many.
    pub(super) fn error_in_segment(&mut self, stream: i16, error: ProtocolError) -> FrameError {
        self.errors_in_a_row += 1;
        let fate = match self.errors_in_a_row > ERRORS_IN_A_ROW_MAX {
            true => Fate::Close,
            false => Fate::GoOn,
        };
        self.error(stream, error, fate)
    }

    /// Adds a payload to the large envelope at hand; gives it when it is complete.
    fn add_to_large(&mut self, version: Version, payload: &[u8]) -> Option<Result<Frame, FrameError>> {
        if let Some(skipping) = &mut self.skipping {
            skipping.bytes_left = skipping.bytes_left.saturating_sub(payload.len() as u64);
            return match skipping.bytes_left {
                0 => self.skipping.take().and_then(|skipping| skipping.error_after).map(Err),
                _ => None,
            };
        }
        let mut large = self.large.take().unwrap_or_else(|| Large { bytes: BytesMut::new() });
        let had_header = large.bytes.len() >= HEADER_BYTES;
        large.bytes.extend_from_slice(payload);
        if large.bytes.len() < HEADER_BYTES {
            self.large = Some(large);
            return None;
        }
        let raw = RawHeader::read(&large.bytes);
        let header = match self.judge_large(&raw, version) {
            Ok(header) => header,
            Err(error) => return Some(Err(self.error(raw.stream, error, Fate::Close))),
        };
        let total_length = HEADER_BYTES + raw.length as usize;
        if !had_header && raw.length as usize > self.frame_bytes_max {
            self.skip_large(&raw, large.bytes.len());
            return None;
        }
        match large.bytes.len().cmp(&total_length) {
            Ordering::Less => {
                self.large = Some(large);
                None
            }
            Ordering::Equal => {
                let mut body = large.bytes.freeze();
                body.advance(HEADER_BYTES);
                Some(Ok(Frame { header, body }))
            }
            Ordering::Greater => {
                let error =
                    ProtocolError::EnvelopeCut { length: total_length as u64, remaining: large.bytes.len() };
                Some(Err(self.error(raw.stream, error, Fate::Close)))
            }
        }
    }

    fn judge_large(&self, raw: &RawHeader, version: Version) -> Result<Header, ProtocolError> {
        let header = self.judge_contained(raw, version)?;
        if let Some(length) = negative(raw.length) {
            return Err(ProtocolError::NegativeBodyLength { length });
        }
        if !self.is_ready {
            let length = u64::from(raw.length);
            return Err(ProtocolError::LargeBeforeReady { opcode: header.opcode, length });
        }
        Ok(header)
    }

    /// Drops an envelope that is too large; its error is given once all of it has gone by.
    fn skip_large(&mut self, raw: &RawHeader, received_bytes: usize) {
        let length = u64::from(raw.length);
        let error = ProtocolError::MessageTooBig { length, length_max: self.frame_bytes_max };
        let error_after = Some(self.error(raw.stream, error, Fate::GoOn));
        let bytes_left = (length + HEADER_BYTES as u64).saturating_sub(received_bytes as u64);
        self.skipping = Some(Skipping { bytes_left, error_after });
    }
}

/// The length as the signed number Cassandra takes it for, if that is negative.
fn negative(length: u32) -> Option<i32> {
    Some(length as i32).filter(|length| *length < 0)
}
