//! Cuts a stream of bytes into frames, whatever pieces it arrives in.
//!
//! ```text
//!                 +-- plain envelopes (before STARTUP; versions 3 and 4) --+
//!   bytes --------+                                                         +--> frames
//!                 +-- segments --> payloads --> envelopes (version 5 on) ---+
//! ```
//!
//! After STARTUP was answered the owner calls [`Decoder::establish`]: from then on every frame
//! must have that version, and from version 5 on come segments. Frames are handed out one at a
//! time, so that a STARTUP is acted upon before the bytes behind it are looked at.
//!
//! What is held is bounded: at most one envelope of the largest size allowed, besides what was
//! fed and not yet taken out.

use bytes::{Buf, Bytes, BytesMut};

use crate::compression::{decompress_body, decompress_lz4_block};
use crate::header::RESPONSE_BIT;
use crate::segment::{Layout, PAYLOAD_BYTES_MAX, SegmentHeader, TRAILER_BYTES, check_payload};
use crate::{
    Compression, Direction, ErrorResponse, Flags, Frame, HEADER_BYTES, Header, Opcode, ProtocolError,
    RequestEnvelope, Version,
};

/// Cassandra's `native_transport_max_frame_size`.
pub const FRAME_BYTES_MAX_DEFAULT: usize = 16 * 1024 * 1024;

/// How many malformed messages in a row one segment may hold before all of it is taken to be
/// garbage (Cassandra's `consecutive_message_errors_threshold`).
const ERRORS_IN_A_ROW_MAX: u32 = 1;

/// Something wrong with what a peer sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameError {
    /// Stream to answer on.
    pub stream: i16,
    /// Version number for the answer's header: the connection's, or before STARTUP one the client
    /// may learn from. Give it to [`Encoder::append_frame_error`](crate::Encoder::append_frame_error).
    pub version_number: u8,
    /// What to answer.
    pub error: ErrorResponse,
    /// What happens to the connection.
    pub fate: Fate,
}

/// What happens to a connection after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It goes on: answer.
    GoOn,
    /// It cannot go on: answer and close.
    Close,
    /// There is nobody to answer: just close.
    CloseSilently,
}

/// A state machine from bytes to frames.
#[derive(Debug)]
pub struct Decoder {
    /// Which direction's frames are taken.
    direction: Direction,
    frame_bytes_max: usize,
    /// Shown in errors about checksums, so that a log line can be found.
    connection: u32,
    /// What was fed and not yet understood.
    input: BytesMut,
    phase: Phase,
    /// The rest of the segment being taken apart: whole envelopes.
    contained: Bytes,
    /// An envelope being put together from segments.
    large: Option<Large>,
    /// An envelope being skipped, and the error to give after it.
    skipping: Option<Skipping>,
    errors_in_a_row: u32,
    /// May envelopes span segments? Not before authentication.
    is_ready: bool,
    /// A fatal error was given; nothing follows it.
    is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before STARTUP: envelopes of any version.
    Initial,
    /// Envelopes of one version.
    Envelopes { version: Version, compression: Option<Compression> },
    /// Segments of envelopes of one version.
    Segments { version: Version, layout: Layout },
}

#[derive(Debug)]
struct Large {
    /// From the header on.
    bytes: BytesMut,
}

#[derive(Debug)]
struct Skipping {
    bytes_left: u64,
    error_after: Option<FrameError>,
}

/// What the nine bytes say, before any of it is judged.
struct RawHeader {
    version_byte: u8,
    flags: Flags,
    stream: i16,
    opcode: u8,
    length: u32,
}

impl RawHeader {
    fn read(bytes: &[u8]) -> RawHeader {
        let mut bytes = &bytes[..HEADER_BYTES];
        RawHeader {
            version_byte: bytes.get_u8(),
            flags: Flags::from_bits(bytes.get_u8()),
            stream: bytes.get_i16(),
            opcode: bytes.get_u8(),
            length: bytes.get_u32(),
        }
    }

    fn direction(&self) -> Direction {
        match self.version_byte & RESPONSE_BIT {
            0 => Direction::Request,
            _ => Direction::Response,
        }
    }

    fn version(&self) -> Result<Version, ProtocolError> {
        let number = self.version_byte & !RESPONSE_BIT;
        let version = Version::from_number(number).ok_or(ProtocolError::UnsupportedVersion { number })?;
        match version.is_beta() && !self.flags.contains(Flags::USE_BETA) {
            true => Err(ProtocolError::BetaWithoutFlag { version }),
            false => Ok(version),
        }
    }

    fn opcode(&self, expected: Direction) -> Result<Opcode, ProtocolError> {
        let opcode = Opcode::from_code(self.opcode, self.direction())?;
        match self.direction() == expected {
            true => Ok(opcode),
            false => Err(ProtocolError::UnsupportedMessage),
        }
    }
}

impl Decoder {
    /// A decoder of requests, for a server.
    pub fn server(frame_bytes_max: usize) -> Decoder {
        Decoder::new(Direction::Request, frame_bytes_max)
    }

    /// A decoder of responses, for a client.
    pub fn client(frame_bytes_max: usize) -> Decoder {
        Decoder::new(Direction::Response, frame_bytes_max)
    }

    fn new(direction: Direction, frame_bytes_max: usize) -> Decoder {
        Decoder {
            direction,
            frame_bytes_max,
            connection: 0,
            input: BytesMut::new(),
            phase: Phase::Initial,
            contained: Bytes::new(),
            large: None,
            skipping: None,
            errors_in_a_row: 0,
            is_ready: direction == Direction::Response,
            is_closed: false,
        }
    }

    /// Names the connection in errors about checksums.
    #[must_use]
    pub fn with_connection_id(mut self, id: u32) -> Decoder {
        self.connection = id;
        self
    }

    /// From the next frame on: this version, this compression, and segments if the version uses
    /// them. A server calls it when it has decided on the answer to a STARTUP it could read
    /// (an ERROR too, then without compression); a client when it has received the answer.
    pub fn establish(&mut self, version: Version, compression: Option<Compression>) {
        self.phase = match version.uses_segments() {
            false => Phase::Envelopes { version, compression },
            true => {
                let layout = match compression {
                    Some(Compression::Lz4) => Layout::Lz4,
                    Some(Compression::Snappy) | None => Layout::Plain,
                };
                Phase::Segments { version, layout }
            }
        };
    }

    /// The client is authenticated: envelopes may span segments.
    pub fn set_ready(&mut self) {
        self.is_ready = true;
    }

    /// Which direction's frames it takes.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The established version.
    pub fn version(&self) -> Option<Version> {
        match self.phase {
            Phase::Initial => None,
            Phase::Envelopes { version, .. } | Phase::Segments { version, .. } => Some(version),
        }
    }

    /// Takes bytes in.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Where to read into, with room for `room_bytes` more; the same as feeding, without the copy.
    pub fn read_buffer(&mut self, room_bytes: usize) -> &mut BytesMut {
        self.input.reserve(room_bytes);
        &mut self.input
    }

    /// How many bytes are held for frames that are not complete.
    pub fn held_bytes(&self) -> usize {
        self.input.len() + self.contained.len() + self.large.as_ref().map_or(0, |large| large.bytes.len())
    }

    /// The next frame, an error, or `None` until more is fed (for good after a fatal error).
    pub fn next_frame(&mut self) -> Option<Result<Frame, FrameError>> {
        if self.is_closed {
            self.input.clear();
            return None;
        }
        let next = match self.phase {
            Phase::Initial | Phase::Envelopes { .. } => self.next_envelope(),
            Phase::Segments { version, layout } => self.next_in_segments(version, layout),
        };
        if let Some(Err(error)) = &next
            && error.fate != Fate::GoOn
        {
            self.close();
        }
        next
    }

    /// Reads the request in a frame, and keeps count of bad ones.
    ///
    /// # Errors
    /// The body is malformed. From version 5 on a second one in a row in one segment is fatal.
    pub fn decode_request(&mut self, frame: &Frame) -> Result<RequestEnvelope, FrameError> {
        match RequestEnvelope::decode(frame) {
            Ok(request) => {
                self.errors_in_a_row = 0;
                Ok(request)
            }
            Err(error) => {
                let error = match self.phase {
                    Phase::Segments { .. } => self.error_in_segment(frame.header.stream, error),
                    _ => self.error(frame.header.stream, error, Fate::GoOn),
                };
                if error.fate != Fate::GoOn {
                    self.close();
                }
                Err(error)
            }
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.input = BytesMut::new();
        self.contained = Bytes::new();
        self.large = None;
        self.skipping = None;
    }

    fn error(&self, stream: i16, error: ProtocolError, fate: Fate) -> FrameError {
        let version_number = match (&error, self.phase) {
            (_, Phase::Segments { version, .. }) => version.number(),
            // A client of versions 1 and 2 is answered in its own layout, one of a beta in the beta.
            (ProtocolError::UnsupportedVersion { number: number @ (1 | 2) }, _) => *number,
            (ProtocolError::BetaWithoutFlag { version }, _) => version.number(),
            (_, Phase::Envelopes { version, .. }) => version.number(),
            (_, Phase::Initial) => Version::CURRENT.number(),
        };
        FrameError { stream, version_number, error: error.into(), fate }
    }

    // Plain envelopes

    fn next_envelope(&mut self) -> Option<Result<Frame, FrameError>> {
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
            // Versions 1 and 2 have shorter headers, so nine bytes may never come.
            let number = version_byte & !RESPONSE_BIT;
            if Version::from_number(number).is_some() {
                return None;
            }
            let error = ProtocolError::UnsupportedVersion { number };
            return Some(Err(self.error(0, error, Fate::CloseSilently)));
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

    // Segments

    fn next_in_segments(&mut self, version: Version, layout: Layout) -> Option<Result<Frame, FrameError>> {
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
    fn error_in_segment(&mut self, stream: i16, error: ProtocolError) -> FrameError {
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
            std::cmp::Ordering::Less => {
                self.large = Some(large);
                None
            }
            std::cmp::Ordering::Equal => {
                let mut body = large.bytes.freeze();
                body.advance(HEADER_BYTES);
                Some(Ok(Frame { header, body }))
            }
            std::cmp::Ordering::Greater => {
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
