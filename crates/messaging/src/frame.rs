//! The bytes of a frame: `docs/formats/messages.md` draws them.
//!
//! The head's check covers the frame's number, so one that is missing, comes twice or comes in another order ends the
//! connection. Length and check of the head are judged before anything of the payload is waited for.

use std::time::Duration;

use crate::message::{BODY_BYTES_MAX, Context, Kind, PATIENCE_MAX, Stamp};

/// Length of a frame's head.
pub(crate) const HEAD_BYTES: usize = 16;
/// Length of the context, with which every payload begins.
const CONTEXT_BYTES: usize = 24;
/// Length of what stands before the messages: the context and the stamp.
pub(crate) const OPENING_BYTES: usize = CONTEXT_BYTES + 16;
/// Length of what stands before a message's body.
pub(crate) const MESSAGE_HEAD_BYTES: usize = 13;

/// From here on a frame takes no further message: what waits for its end would wait too long.
pub(crate) const FRAME_BYTES_GOAL: usize = 256 << 10;
/// The longest payload, not compressed: one below the goal that takes one more message, the longest.
pub(crate) const PAYLOAD_BYTES_MAX: usize = FRAME_BYTES_GOAL + MESSAGE_HEAD_BYTES + BODY_BYTES_MAX;

const _: () = assert!(PAYLOAD_BYTES_MAX <= u32::MAX as usize, "lengths are u32");

const KIND_REQUEST: u8 = 1;
const KIND_ANSWER: u8 = 2;
const KIND_NOTICE: u8 = 3;
const KIND_DECLINED: u8 = 4;

/// What is wrong with a frame of a peer. The connection can not go on after any of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The head does not have the check that it says, or it is not the frame that comes next.
    #[error("head of frame {number} is damaged: checksum {got:#010x}, expected {expected:#010x}")]
    Head {
        /// Frames that came before it.
        number: u64,
        /// As the head says.
        expected: u32,
        /// Of what was read.
        got: u32,
    },
    /// The payload does not have the check that the head says.
    #[error("payload of frame {number} is damaged: checksum {got:#010x}, expected {expected:#010x}")]
    Payload {
        /// Frames that came before it.
        number: u64,
        /// As the head says.
        expected: u32,
        /// Of what was read.
        got: u32,
    },
    /// A length that nobody may send.
    #[error("frame {number} of {payload_bytes} bytes exceeds the limit of {payload_bytes_max}")]
    TooLong {
        /// Frames that came before it.
        number: u64,
        /// As the head says.
        payload_bytes: u32,
        /// What it may be.
        payload_bytes_max: usize,
    },
    /// A payload said to be compressed that is not, or does not have the length that was said.
    #[error("payload of frame {number} can not be decompressed")]
    Compression {
        /// Frames that came before it.
        number: u64,
    },
    /// The checks are right and the content is not: the sender is at fault.
    #[error("payload of frame {number} makes no sense at byte {offset}")]
    Content {
        /// Frames that came before it.
        number: u64,
        /// In the plain payload.
        offset: usize,
    },
}

/// The head of a frame, once it is known to be sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Length of the payload as sent.
    pub(crate) payload_bytes: usize,
    /// Length of the payload when it is decompressed; `None` when it was sent as it is.
    pub(crate) plain_bytes: Option<usize>,
    pub(crate) payload_check: u32,
    head_check: u32,
}

impl Head {
    /// The bytes of a head, for the payload that follows it.
    pub(crate) fn encode(number: u64, payload: &[u8], plain_bytes: Option<usize>) -> [u8; HEAD_BYTES] {
        assert!(payload.len() <= PAYLOAD_BYTES_MAX, "a frame takes no message above its limit");
        let mut head = [0; HEAD_BYTES];
        head[0..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        head[4..8].copy_from_slice(&(plain_bytes.unwrap_or(0) as u32).to_le_bytes());
        let head_check = head_check(number, &head);
        head[8..12].copy_from_slice(&head_check.to_le_bytes());
        head[12..16].copy_from_slice(&payload_check(head_check, payload).to_le_bytes());
        head
    }

    /// Reads the head of the frame with this number.
    pub(crate) fn decode(number: u64, head: &[u8; HEAD_BYTES]) -> Result<Head, FrameError> {
        let [payload_bytes, plain_bytes, expected, payload_check] =
            [0, 4, 8, 12].map(|at| u32_at(head, at).expect("the head has four of them"));
        let got = head_check(number, head);
        if got != expected {
            return Err(FrameError::Head { number, expected, got });
        }
        if let Some(payload_bytes) =
            [payload_bytes, plain_bytes].into_iter().find(|bytes| *bytes as usize > PAYLOAD_BYTES_MAX)
        {
            return Err(FrameError::TooLong { number, payload_bytes, payload_bytes_max: PAYLOAD_BYTES_MAX });
        }
        Ok(Head {
            payload_bytes: payload_bytes as usize,
            plain_bytes: (plain_bytes > 0).then_some(plain_bytes as usize),
            payload_check,
            head_check: got,
        })
    }

    /// Compares a payload, as sent, with its check.
    pub(crate) fn check_payload(&self, number: u64, payload: &[u8]) -> Result<(), FrameError> {
        let got = payload_check(self.head_check, payload);
        match got == self.payload_check {
            true => Ok(()),
            false => Err(FrameError::Payload { number, expected: self.payload_check, got }),
        }
    }
}

fn head_check(number: u64, head: &[u8; HEAD_BYTES]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(&head[..8]);
    hasher.finalize()
}

fn payload_check(head_check: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(head_check);
    hasher.update(payload);
    hasher.finalize()
}

/// What stands before the messages of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) context: Context,
    pub(crate) stamp: Stamp,
}

impl Opening {
    pub(crate) fn encode(self) -> [u8; OPENING_BYTES] {
        let mut bytes = [0; OPENING_BYTES];
        bytes[..CONTEXT_BYTES].copy_from_slice(&self.context.encode());
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).to_le_bytes();
        bytes[CONTEXT_BYTES..][..8].copy_from_slice(&micros(self.stamp.sender));
        bytes[CONTEXT_BYTES + 8..].copy_from_slice(&micros(self.stamp.receiver));
        bytes
    }

    /// `None` when there are too few bytes.
    pub(crate) fn decode(payload: &[u8]) -> Option<Opening> {
        let micros = |at| array_at(payload, at).map(u64::from_le_bytes).map(Duration::from_micros);
        let stamp = Stamp { sender: micros(CONTEXT_BYTES)?, receiver: micros(CONTEXT_BYTES + 8)? };
        Some(Opening { context: Context::decode(payload)?, stamp })
    }
}

impl Context {
    fn encode(self) -> [u8; CONTEXT_BYTES] {
        let mut bytes = [0; CONTEXT_BYTES];
        bytes[0..8].copy_from_slice(&self.clock_micros.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.schema_epoch.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.ring_epoch.to_le_bytes());
        bytes
    }

    fn decode(payload: &[u8]) -> Option<Context> {
        Some(Context {
            clock_micros: i64::from_le_bytes(array_at(payload, 0)?),
            schema_epoch: u64::from_le_bytes(array_at(payload, 8)?),
            ring_epoch: u64::from_le_bytes(array_at(payload, 16)?),
        })
    }
}

/// What stands before a message's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageHead {
    pub(crate) kind: Kind,
    pub(crate) body_bytes: usize,
}

impl MessageHead {
    pub(crate) fn encode(self) -> [u8; MESSAGE_HEAD_BYTES] {
        let (code, id, patience) = match self.kind {
            Kind::Request { id, patience } => (KIND_REQUEST, id, micros(patience)),
            Kind::Answer { id } => (KIND_ANSWER, id, 0),
            Kind::Declined { id } => (KIND_DECLINED, id, 0),
            Kind::Notice => (KIND_NOTICE, 0, 0),
        };
        let mut bytes = [0; MESSAGE_HEAD_BYTES];
        bytes[0] = code;
        bytes[1..5].copy_from_slice(&id.to_le_bytes());
        bytes[5..9].copy_from_slice(&patience.to_le_bytes());
        bytes[9..13].copy_from_slice(&(self.body_bytes as u32).to_le_bytes());
        bytes
    }

    /// `None` when there are too few bytes, or what they say is nothing that is ever written.
    pub(crate) fn decode(bytes: &[u8]) -> Option<MessageHead> {
        let (id, patience) = (u32_at(bytes, 1)?, u32_at(bytes, 5)?);
        let body_bytes = u32_at(bytes, 9)? as usize;
        let kind = match bytes[0] {
            KIND_REQUEST => Kind::Request { id, patience: Duration::from_micros(u64::from(patience)) },
            KIND_ANSWER => Kind::Answer { id },
            KIND_DECLINED => Kind::Declined { id },
            KIND_NOTICE => Kind::Notice,
            _ => return None,
        };
        let head = MessageHead { kind, body_bytes };
        (body_bytes <= BODY_BYTES_MAX && head.encode() == bytes[..MESSAGE_HEAD_BYTES]).then_some(head)
    }
}

/// Longer than the longest is the longest.
fn micros(patience: Duration) -> u32 {
    patience.min(PATIENCE_MAX).as_micros() as u32
}

pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}
