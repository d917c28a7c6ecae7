//! Plain envelopes: before STARTUP, and in versions 3 and 4.

use bytes::Buf;

use super::{Decoder, Fate, FrameError, Phase, RawHeader, Skipping};
use crate::compression::decompress_body;
use crate::header::RESPONSE_BIT;
use crate::{Flags, Frame, HEADER_BYTES, Header, ProtocolError, Version};

impl Decoder {
    pub(super) fn next_envelope(&mut self) -> Option<Result<Frame, FrameError>> {
        if let Some(skipping) = &mut self.skipping {
            let skipped = skipping.bytes_left.min(self.input.len() as u64);
            self.input.advance(skipped as usize);
            skipping.bytes_left -= skipped;
            if skipping.bytes_left > 0 {
                return None;
            }
            if let Some(error) = self.skipping.take().and_then(|skipping| skipping.error_after) {
                return Some(Err(error));
            }
        }
        let version_byte = *self.input.first()?;
        if self.input.len() < HEADER_BYTES {
            return self.judge_first_byte(version_byte & !RESPONSE_BIT).map(Err);
        }
        let raw = RawHeader::read(&self.input);
        match self.judge_envelope(&raw) {
            Ok(header) => self.take_envelope(header, raw.length),
            Err(error) => match self.refuse_envelope(&raw, error) {
                Some(error) => Some(Err(error)),
                // What there is of it may be skipped at once.
                None => self.next_envelope(),
            },
        }
    }

    /// Of a version that is not supported nine bytes may never come: the headers of versions 1 and 2 are shorter.
    /// Their clients are told, which Cassandra 5.0.9 does from nine bytes on alone; whoever else begins like
    /// that may speak another protocol.
    fn judge_first_byte(&self, number: u8) -> Option<FrameError> {
        if Version::from_number(number).is_some() {
            return None;
        }
        // Where they have their stream, a byte; it may not have come.
        let stream = self.input.get(2).map_or(0, |stream| i16::from(stream.cast_signed()));
        let fate = if matches!(number, 1 | 2) { Fate::Close } else { Fate::CloseSilently };
        Some(self.error(stream, ProtocolError::UnsupportedVersion { number }, fate))
    }

    fn judge_envelope(&self, raw: &RawHeader) -> Result<Header, ProtocolError> {
        let version = raw.version()?;
        let opcode = raw.opcode(self.direction)?;
        let total_length = u64::from(raw.length) + HEADER_BYTES as u64;
        if total_length > self.frame_bytes_max as u64 {
            return Err(ProtocolError::RequestTooBig {
                length: total_length,
                length_max: self.frame_bytes_max,
            });
        }
        Ok(Header { version, flags: raw.flags, stream: raw.stream, opcode })
    }

    /// Decides how to go on after an envelope that will not be taken.
    fn refuse_envelope(&mut self, raw: &RawHeader, error: ProtocolError) -> Option<FrameError> {
        if matches!(error, ProtocolError::UnsupportedVersion { .. } | ProtocolError::BetaWithoutFlag { .. }) {
            // What follows cannot be told apart; the client is expected to hang up and try another.
            self.input.clear();
            let stream = match raw.version_byte & !RESPONSE_BIT {
                // Their stream is one byte.
                0..=2 => raw.stream >> 8,
                _ => raw.stream,
            };
            return Some(self.error(stream, error, Fate::GoOn));
        }
        let is_too_big = matches!(error, ProtocolError::RequestTooBig { .. });
        let error = self.error(raw.stream, error, Fate::GoOn);
        let bytes_left = u64::from(raw.length) + HEADER_BYTES as u64;
        // As Cassandra does, a request that is too big is answered once it has gone by; its client
        // would not read an answer before.
        let (error, error_after) = if is_too_big { (None, Some(error)) } else { (Some(error), None) };
        self.skipping = Some(Skipping { bytes_left, error_after });
        error
    }

    fn take_envelope(&mut self, header: Header, length: u32) -> Option<Result<Frame, FrameError>> {
        let total_length = HEADER_BYTES + length as usize;
        if self.input.len() < total_length {
            return None;
        }
        let mut body = self.input.split_to(total_length).freeze();
        body.advance(HEADER_BYTES);
        Some(self.finish_envelope(Frame { header, body }))
    }

    /// Compares with what was established, and decompresses.
    fn finish_envelope(&self, mut frame: Frame) -> Result<Frame, FrameError> {
        let Phase::Envelopes { version, compression } = self.phase else { return Ok(frame) };
        let header = &mut frame.header;
        if header.version != version {
            let error = ProtocolError::VersionChanged { got: header.version, established: version };
            return Err(self.error(header.stream, error, Fate::GoOn));
        }
        // Without an algorithm the flag is ignored, as by Cassandra.
        if let Some(compression) = compression
            && header.flags.contains(Flags::COMPRESSED)
        {
            let stream = header.stream;
            header.flags = header.flags.without(Flags::COMPRESSED);
            frame.body = decompress_body(compression, &frame.body, self.frame_bytes_max)
                .map_err(|error| self.error(stream, error, Fate::Close))?;
        }
        Ok(frame)
    }
}
