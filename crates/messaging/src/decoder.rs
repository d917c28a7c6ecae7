//! Frames out of a stream of bytes, whatever pieces it comes in.

use bytes::{Buf, Bytes, BytesMut};
use lz4_flex::block;

use crate::frame::{
    FrameError, HEAD_BYTES, Head, MESSAGE_HEAD_BYTES, MessageHead, OPENING_BYTES, Opening, array_at,
};
use crate::message::{Context, Message, Stamp};

/// A block of LZ4 holds at most this many times its own bytes: one byte of length adds 255.
const LZ4_RATIO_MAX: usize = 255;

/// A state machine from bytes to frames.
///
/// What is held is bounded: one frame of the longest, and what was fed behind it. After an error nothing follows.
#[derive(Debug)]
pub struct Decoder {
    /// What was fed and is not taken yet.
    input: BytesMut,
    /// Frames that were taken.
    number: u64,
    /// The first error, given again to whoever goes on asking.
    failed: Option<FrameError>,
}

/// A frame that came.
#[derive(Clone, Debug)]
pub struct Frame {
    /// What the sender knew when it sent it.
    pub context: Context,
    /// When it got its first message.
    pub stamp: Stamp,
    number: u64,
    /// The plain payload.
    payload: Bytes,
    /// Where the next message begins.
    offset: usize,
}

impl Decoder {
    /// For a connection on which nothing came after the handshake but these bytes.
    pub fn new(input: BytesMut) -> Decoder {
        Decoder { input, number: 0, failed: None }
    }

    /// Where what comes is to be appended.
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// How many bytes are still to come until the next frame is whole, as far as that is known: at least one.
    pub fn wanted_bytes(&self) -> usize {
        let frame_bytes =
            self.head().and_then(Result::ok).map_or(HEAD_BYTES, |head| HEAD_BYTES + head.payload_bytes);
        frame_bytes.saturating_sub(self.input.len()).max(1)
    }

    /// The next frame; `None` when more bytes have to come first.
    ///
    /// # Errors
    /// The peer, or what is in between, sent what it may not send. The connection has to end.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.take_frame().inspect_err(|error| self.failed = Some(*error))
    }

    /// The head of the next frame, once it is there.
    fn head(&self) -> Option<Result<Head, FrameError>> {
        array_at(&self.input, 0).map(|head| Head::decode(self.number, &head))
    }

    fn take_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(head) = self.head().transpose()? else { return Ok(None) };
        if self.input.len() < HEAD_BYTES + head.payload_bytes {
            return Ok(None);
        }
        let number = self.number;
        self.input.advance(HEAD_BYTES);
        let payload = self.input.split_to(head.payload_bytes).freeze();
        head.check_payload(number, &payload)?;
        let payload = match head.plain_bytes {
            None => payload,
            Some(plain_bytes) => {
                decompress(&payload, plain_bytes).ok_or(FrameError::Compression { number })?
            }
        };
        let Opening { context, stamp } =
            Opening::decode(&payload).ok_or(FrameError::Content { number, offset: 0 })?;
        self.number += 1;
        Ok(Some(Frame { context, stamp, number, payload, offset: OPENING_BYTES }))
    }
}

fn decompress(payload: &[u8], plain_bytes: usize) -> Option<Bytes> {
    // Before anything of that length is allocated.
    if plain_bytes > payload.len().saturating_mul(LZ4_RATIO_MAX) {
        return None;
    }
    let plain = block::decompress(payload, plain_bytes).ok()?;
    (plain.len() == plain_bytes).then(|| Bytes::from(plain))
}

impl Frame {
    /// The next message of the frame; `None` after the last.
    ///
    /// # Errors
    /// The sender wrote what makes no sense. The connection has to end.
    pub fn next_message(&mut self) -> Result<Option<Message>, FrameError> {
        if self.offset == self.payload.len() {
            return Ok(None);
        }
        let wrong = FrameError::Content { number: self.number, offset: self.offset };
        let head = MessageHead::decode(&self.payload[self.offset..]).ok_or(wrong)?;
        let start = self.offset + MESSAGE_HEAD_BYTES;
        if head.body_bytes > self.payload.len() - start {
            return Err(wrong);
        }
        self.offset = start + head.body_bytes;
        Ok(Some(Message { kind: head.kind, body: self.payload.slice(start..self.offset) }))
    }
}
