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

mod envelopes;
mod segments;

use bytes::{Buf, Bytes, BytesMut};

use crate::header::RESPONSE_BIT;
use crate::segment::Layout;
use crate::{
    Compression, Direction, ErrorResponse, Flags, Frame, HEADER_BYTES, Opcode, ProtocolError,
    RequestEnvelope, Version,
};

/// Cassandra's `native_transport_max_frame_size`.
pub const FRAME_BYTES_MAX_DEFAULT: usize = 16 * 1024 * 1024;

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

    /// What was fed and not yet understood. A reader that puts more bytes behind a copy of it gives the
    /// whole to [`Decoder::replace_input`].
    pub fn input(&self) -> &[u8] {
        &self.input
    }

    /// How many bytes the memory they lie in has room for, from their first on.
    pub fn input_capacity(&self) -> usize {
        self.input.capacity()
    }

    /// Takes bytes in place of those that wait. Frames are cut out of the same memory, which may be shared.
    pub fn replace_input(&mut self, input: BytesMut) {
        self.input = input;
    }

    /// Moves what waits into memory of its own, no larger than needed, so that none is held on to that was
    /// only lent.
    pub fn own_input(&mut self) {
        self.input = BytesMut::from(&self.input[..]);
        if !self.contained.is_empty() {
            self.contained = Bytes::copy_from_slice(&self.contained);
        }
    }

    /// How long the frame is whose first bytes are here, with its header, if that is known. For frames in
    /// segments only of one that spans several.
    pub fn begun_frame_bytes(&self) -> Option<usize> {
        let begun: &[u8] = match (&self.large, self.phase) {
            (Some(large), _) => &large.bytes,
            (None, Phase::Segments { .. }) => return None,
            (None, _) => &self.input,
        };
        if begun.len() < HEADER_BYTES || self.skipping.is_some() || self.is_closed {
            return None;
        }
        let total = (RawHeader::read(begun).length as usize).saturating_add(HEADER_BYTES);
        (total > begun.len() && total <= self.frame_bytes_max.saturating_add(HEADER_BYTES)).then_some(total)
    }

    /// Sets memory aside for the rest of the frame whose first bytes are here, once: what grows piece by piece is
    /// copied again and again. The system gives the memory as it is filled.
    pub fn reserve_frame(&mut self) {
        let Some(total) = self.begun_frame_bytes() else { return };
        let begun = self.large.as_mut().map_or(&mut self.input, |large| &mut large.bytes);
        begun.reserve(total - begun.len());
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
                self.note_sound_request();
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

    /// The last frame was a request that could be read: it ends a run of bad ones. To be called for those that are not
    /// given to [`Decoder::decode_request`].
    pub fn note_sound_request(&mut self) {
        self.errors_in_a_row = 0;
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
}
