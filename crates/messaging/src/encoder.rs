//! Messages into frames.

use bytes::{BufMut, Bytes, BytesMut};
use lz4_flex::block;

use crate::frame::{
    FRAME_BYTES_GOAL, HEAD_BYTES, Head, MESSAGE_HEAD_BYTES, MessageHead, OPENING_BYTES, Opening,
};
use crate::message::{BODY_BYTES_MAX, Context, Kind, Stamp};

/// Shorter payloads are sent as they are: they would not get much shorter.
const COMPRESSED_BYTES_MIN: usize = 512;

/// A body that no frame may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message of {body_bytes} bytes exceeds the limit of {BODY_BYTES_MAX}")]
pub struct BodyTooLong {
    /// How long it is.
    pub body_bytes: usize,
}

/// Collects messages in one frame until somebody sends it.
///
/// Bodies are written in place, behind room for what is written when the frame is sealed: its head, the context of that
/// moment, and the stamp of when it was opened.
///
/// ```text
///   | room for the head | room for context and stamp | message | message | message …
///   sealed:  both are filled in, or the payload is compressed behind a new head
/// ```
#[derive(Debug)]
pub struct Encoder {
    /// The frame that is being filled; empty when it has no message yet.
    open: BytesMut,
    /// Frames that were sealed.
    number: u64,
    is_compressing: bool,
}

impl Encoder {
    /// For a connection on which nothing was sent after the handshake.
    pub fn new(is_compressing: bool) -> Encoder {
        Encoder { open: BytesMut::new(), number: 0, is_compressing }
    }

    /// Frames are compressed, or not, from now on.
    pub fn compress(&mut self, is_compressing: bool) {
        self.is_compressing = is_compressing;
    }

    /// Bytes of the frame that is being filled; 0 when it has no message.
    pub fn open_bytes(&self) -> usize {
        self.open.len()
    }

    /// The number of the frame that is being filled: how many were sealed before it.
    pub fn frame_number(&self) -> u64 {
        self.number
    }

    /// Ought the frame to be sealed before the next message?
    pub fn is_full(&self) -> bool {
        self.open.len() >= HEAD_BYTES + FRAME_BYTES_GOAL
    }

    /// Adds a message whose body the caller writes.
    ///
    /// # Errors
    /// The body is too long; the frame is as it was before.
    ///
    /// # Panics
    /// The frame is full.
    pub fn push(&mut self, kind: Kind, write: impl FnOnce(&mut BytesMut)) -> Result<(), BodyTooLong> {
        assert!(!self.is_full(), "a full frame is sealed before it gets another message");
        let before = self.open.len();
        if before == 0 {
            self.open.put_bytes(0, HEAD_BYTES + OPENING_BYTES);
        }
        let start = self.open.len();
        self.open.put_bytes(0, MESSAGE_HEAD_BYTES);
        write(&mut self.open);
        let body_start = start + MESSAGE_HEAD_BYTES;
        assert!(self.open.len() >= body_start, "who writes a body only appends");
        let body_bytes = self.open.len() - body_start;
        if body_bytes > BODY_BYTES_MAX {
            self.open.truncate(before);
            return Err(BodyTooLong { body_bytes });
        }
        self.open[start..body_start].copy_from_slice(&MessageHead { kind, body_bytes }.encode());
        Ok(())
    }

    /// The frame as it is to be sent; `None` when it has no message.
    pub fn seal(&mut self, context: Context, stamp: Stamp) -> Option<Bytes> {
        if self.open.is_empty() {
            return None;
        }
        let mut frame = self.open.split();
        let opening = Opening { context, stamp };
        frame[HEAD_BYTES..][..OPENING_BYTES].copy_from_slice(&opening.encode());
        let mut plain_bytes = None;
        if let Some(compressed) = self.compressed(&frame[HEAD_BYTES..]) {
            plain_bytes = Some(frame.len() - HEAD_BYTES);
            frame = compressed;
        }
        let head = Head::encode(self.number, &frame[HEAD_BYTES..], plain_bytes);
        frame[..HEAD_BYTES].copy_from_slice(&head);
        self.number += 1;
        Some(frame.freeze())
    }

    /// The payload compressed, behind room for a head; `None` when it is better sent as it is.
    fn compressed(&self, payload: &[u8]) -> Option<BytesMut> {
        if !self.is_compressing || payload.len() < COMPRESSED_BYTES_MIN {
            return None;
        }
        let mut frame = BytesMut::zeroed(HEAD_BYTES + block::get_maximum_output_size(payload.len()));
        let written = block::compress_into(payload, &mut frame[HEAD_BYTES..])
            .expect("the output has the maximum size a block can take");
        frame.truncate(HEAD_BYTES + written);
        (written < payload.len()).then_some(frame)
    }
}
