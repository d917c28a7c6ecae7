//! Appends messages to one output buffer, as many as are at hand, to be sent in one write.
//!
//! From version 5 on they are packed into segments in place: room for the segment's header is left
//! before the first envelope, and header and checksum are filled in when the segment is full or
//! the output is taken.

use bytes::{BufMut, Bytes, BytesMut};

use crate::compression::Compressor;
use crate::header::RESPONSE_BIT;
use crate::segment::{Layout, PAYLOAD_BYTES_MAX, SegmentHeader, TRAILER_BYTES, crc32};
use crate::{
    Compression, Direction, ErrorResponse, Flags, FrameError, HEADER_BYTES, Opcode, RequestEnvelope,
    ResponseEnvelope, Version,
};

/// A scratch buffer grown beyond this by one large message is given back.
const SCRATCH_BYTES_KEPT: usize = 256 * 1024;

/// A state machine from messages to bytes.
#[derive(Debug)]
pub struct Encoder {
    direction: Direction,
    out: BytesMut,
    phase: Phase,
    /// Where the open segment begins in `out`; its payload begins a header later.
    segment_start: Option<usize>,
    scratch: BytesMut,
    compressor: Compressor,
}

/// How messages are framed on a connection: what it takes to encode one elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    direction: Direction,
    phase: Phase,
}

impl Framing {
    /// An encoder whose output may follow what the connection's own has put out.
    pub fn encoder(self) -> Encoder {
        Encoder { phase: self.phase, ..Encoder::new(self.direction) }
    }
}

/// Memory for encoders to work in, to be lent to many that work in turns: one that has nothing to send
/// needs none of its own.
#[derive(Debug, Default)]
pub struct Workspace {
    out: BytesMut,
    scratch: BytesMut,
    compressor: Compressor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Plain envelopes, nothing compressed.
    Initial,
    /// Plain envelopes with compressed bodies.
    Compressed(Compression),
    /// One more plain envelope (the answer to STARTUP), then segments.
    BeforeSegments(Layout),
    Segments(Layout),
}

impl Encoder {
    /// An encoder of responses.
    pub fn server() -> Encoder {
        Encoder::new(Direction::Response)
    }

    /// An encoder of requests.
    pub fn client() -> Encoder {
        Encoder::new(Direction::Request)
    }

    fn new(direction: Direction) -> Encoder {
        Encoder {
            direction,
            out: BytesMut::new(),
            phase: Phase::Initial,
            segment_start: None,
            scratch: BytesMut::new(),
            compressor: Compressor::default(),
        }
    }

    /// How it frames messages now.
    pub fn framing(&self) -> Framing {
        Framing { direction: self.direction, phase: self.phase }
    }

    /// The connection uses this version and compression from now on. A server calls it *before*
    /// it appends the answer to STARTUP: in versions 3 and 4 that answer is compressed already, from
    /// version 5 on it is the last one outside of segments. A client calls it when it has received
    /// the answer.
    pub fn establish(&mut self, version: Version, compression: Option<Compression>) {
        self.phase = match (version.uses_segments(), compression) {
            (false, None) => Phase::Initial,
            (false, Some(compression)) => Phase::Compressed(compression),
            (true, compression) => {
                let layout = match compression {
                    Some(Compression::Lz4) => Layout::Lz4,
                    Some(Compression::Snappy) | None => Layout::Plain,
                };
                match self.direction {
                    Direction::Response => Phase::BeforeSegments(layout),
                    Direction::Request => Phase::Segments(layout),
                }
            }
        };
    }

    /// Appends a response.
    pub fn append_response(&mut self, version: Version, stream: i16, envelope: &ResponseEnvelope) {
        let flags = envelope.flags(version);
        self.append_with(version, stream, envelope.response.opcode(), flags, |out| {
            envelope.encode_body(out, version);
        });
    }

    /// Appends a request.
    pub fn append_request(&mut self, version: Version, stream: i16, envelope: &RequestEnvelope) {
        let flags = envelope.flags(version);
        self.append_with(version, stream, envelope.request.opcode(), flags, |out| {
            envelope.encode_body(out, version);
        });
    }

    /// Appends an ERROR with nothing before its body.
    pub fn append_error(&mut self, version: Version, stream: i16, error: &ErrorResponse) {
        self.append_with(version, stream, Opcode::Error, Flags::NONE, |out| error.encode(out, version));
    }

    /// Appends the answer to a [`FrameError`], in a header of the version it asks for.
    pub fn append_frame_error(&mut self, frame_error: &FrameError) {
        let number = frame_error.version_number;
        match Version::from_number(number) {
            Some(version) => self.append_error(version, frame_error.stream, &frame_error.error),
            None => self.append_ancient_error(number, frame_error),
        }
    }

    /// Versions 1 and 2 have a stream of one byte.
    fn append_ancient_error(&mut self, number: u8, frame_error: &FrameError) {
        self.close_segment();
        let out = &mut self.out;
        let start = out.len();
        out.put_u8(number | RESPONSE_BIT);
        out.put_u8(0);
        out.put_i8(frame_error.stream as i8);
        out.put_u8(Opcode::Error.code());
        out.put_u32(0);
        let body_start = out.len();
        frame_error.error.encode(out, Version::V3);
        patch_u32(out, start + 4, (out.len() - body_start) as u32);
    }

    /// Appends a message whose body `write` appends to the buffer it is given. For rows, see
    /// [`RowsWriter`](crate::RowsWriter); what goes before a response's body is up to the caller
    /// too, with `flags` to match.
    pub fn append_with(
        &mut self,
        version: Version,
        stream: i16,
        opcode: Opcode,
        flags: Flags,
        write: impl FnOnce(&mut BytesMut),
    ) {
        let flags = if version.is_beta() { flags.with(Flags::USE_BETA) } else { flags };
        match self.phase {
            Phase::Initial | Phase::BeforeSegments(_) => {
                self.put_envelope(version, stream, opcode, flags, write);
                if let Phase::BeforeSegments(layout) = self.phase {
                    self.phase = Phase::Segments(layout);
                }
            }
            // A client's STARTUP is never compressed.
            Phase::Compressed(_) if opcode == Opcode::Startup => {
                self.put_envelope(version, stream, opcode, flags, write);
            }
            Phase::Compressed(compression) => {
                let mut body = std::mem::take(&mut self.scratch);
                body.clear();
                write(&mut body);
                let mut compressor = std::mem::take(&mut self.compressor);
                self.put_envelope(version, stream, opcode, flags.with(Flags::COMPRESSED), |out| {
                    compressor.put_body(compression, &body, out);
                });
                self.compressor = compressor;
                self.keep_scratch(body);
            }
            Phase::Segments(layout) => {
                self.open_segment(layout);
                let envelope_start = self.put_envelope(version, stream, opcode, flags, write);
                self.fit_segment(layout, envelope_start);
            }
        }
    }

    /// How many bytes wait to be sent.
    pub fn pending_bytes(&self) -> usize {
        self.out.len()
    }

    /// All that was appended, ready to be sent.
    pub fn take(&mut self) -> Bytes {
        self.close_segment();
        self.out.split().freeze()
    }

    /// All that was appended, ready to be sent, left in the buffer: send it from there and advance
    /// or clear it.
    pub fn output(&mut self) -> &mut BytesMut {
        self.close_segment();
        &mut self.out
    }

    /// Has it work in memory that is lent to it, until [`Encoder::give_back`].
    pub fn lend(&mut self, space: &mut Workspace) {
        std::mem::swap(&mut self.scratch, &mut space.scratch);
        std::mem::swap(&mut self.compressor, &mut space.compressor);
        if self.out.is_empty() {
            std::mem::swap(&mut self.out, &mut space.out);
        }
    }

    /// Gives back what was lent. What waits to be sent is kept in memory no larger than it is.
    pub fn give_back(&mut self, space: &mut Workspace) {
        self.close_segment();
        std::mem::swap(&mut self.scratch, &mut space.scratch);
        std::mem::swap(&mut self.compressor, &mut space.compressor);
        let kept = if self.out.is_empty() { BytesMut::new() } else { BytesMut::from(&self.out[..]) };
        let mut out = std::mem::replace(&mut self.out, kept);
        out.clear();
        // Of two buffers the larger one is kept, unless it is huge.
        let is_better = out.capacity() > space.out.capacity() || space.out.capacity() > SCRATCH_BYTES_KEPT;
        if is_better && out.capacity() <= SCRATCH_BYTES_KEPT {
            space.out = out;
        }
    }

    /// Appends one envelope and tells where it begins.
    fn put_envelope(
        &mut self,
        version: Version,
        stream: i16,
        opcode: Opcode,
        flags: Flags,
        write: impl FnOnce(&mut BytesMut),
    ) -> usize {
        let out = &mut self.out;
        let start = out.len();
        let direction_bit = if self.direction == Direction::Response { RESPONSE_BIT } else { 0 };
        out.reserve(HEADER_BYTES);
        out.put_u8(version.number() | direction_bit);
        out.put_u8(flags.bits());
        out.put_i16(stream);
        out.put_u8(opcode.code());
        out.put_u32(0);
        write(out);
        patch_u32(out, start + HEADER_BYTES - 4, (out.len() - start - HEADER_BYTES) as u32);
        start
    }

    fn open_segment(&mut self, layout: Layout) {
        if self.segment_start.is_none() {
            self.segment_start = Some(self.out.len());
            self.out.put_bytes(0, layout.header_bytes());
        }
    }

    /// Keeps the open segment within its size: an envelope that does not fit moves to the next
    /// one, and one that fits none is cut.
    fn fit_segment(&mut self, layout: Layout, envelope_start: usize) {
        let Some(segment_start) = self.segment_start else { return };
        let payload_start = segment_start + layout.header_bytes();
        if self.out.len() - payload_start <= PAYLOAD_BYTES_MAX {
            return;
        }
        let mut envelope = std::mem::take(&mut self.scratch);
        envelope.clear();
        envelope.extend_from_slice(&self.out[envelope_start..]);
        self.out.truncate(envelope_start);
        if envelope_start == payload_start {
            self.out.truncate(segment_start);
            self.segment_start = None;
        } else {
            self.close_segment();
        }
        if envelope.len() <= PAYLOAD_BYTES_MAX {
            self.open_segment(layout);
            self.out.extend_from_slice(&envelope);
        } else {
            for piece in envelope.chunks(PAYLOAD_BYTES_MAX) {
                let start = self.out.len();
                self.out.put_bytes(0, layout.header_bytes());
                self.out.extend_from_slice(piece);
                self.seal(layout, start, false);
            }
        }
        self.keep_scratch(envelope);
    }

    fn close_segment(&mut self) {
        if let Phase::Segments(layout) = self.phase
            && let Some(start) = self.segment_start.take()
        {
            self.seal(layout, start, true);
        }
    }

    /// Compresses the payload at the end of the output if that makes it smaller, and writes the
    /// segment's header and trailer.
    fn seal(&mut self, layout: Layout, start: usize, is_self_contained: bool) {
        let payload_start = start + layout.header_bytes();
        let mut plain_bytes = None;
        if layout == Layout::Lz4 {
            let length = self.out.len() - payload_start;
            let mut block = BytesMut::new();
            self.compressor.put_lz4_block(&self.out[payload_start..], &mut block);
            if block.len() < length {
                self.out.truncate(payload_start);
                self.out.extend_from_slice(&block);
                plain_bytes = Some(length);
            }
        }
        let payload_bytes = self.out.len() - payload_start;
        let header = layout.encode(SegmentHeader { payload_bytes, plain_bytes, is_self_contained });
        self.out[start..payload_start].copy_from_slice(&header[..layout.header_bytes()]);
        let checksum = crc32(&self.out[payload_start..]);
        self.out.reserve(TRAILER_BYTES);
        self.out.put_u32_le(checksum);
    }

    /// Gives a used scratch buffer back, unless one huge message has made it huge.
    fn keep_scratch(&mut self, scratch: BytesMut) {
        if scratch.capacity() <= SCRATCH_BYTES_KEPT {
            self.scratch = scratch;
        }
    }
}

fn patch_u32(out: &mut BytesMut, position: usize, value: u32) {
    out[position..position + 4].copy_from_slice(&value.to_be_bytes());
}
