//! A message, and what stands once for all messages of a frame.

use std::time::Duration;

use bytes::Bytes;

/// The longest body of a message. The longest mutation is below it, since that is one record of a commit log.
pub const BODY_BYTES_MAX: usize = 32 << 20;

/// The longest that a request can have: what fits a u32 of microseconds, 71 minutes.
pub const PATIENCE_MAX: Duration = Duration::from_micros(u32::MAX as u64);

/// What the sender knew when it sent a frame. The receiver learns by it that it is behind, and how its clock stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The sender's clock, microseconds since 1970: its next timestamp would be greater.
    pub clock_micros: i64,
    /// How many changes of the schema it has applied.
    pub schema_epoch: u64,
    /// How many changes of the ring it has applied.
    pub ring_epoch: u64,
}

/// When a frame got its first message, by the time since the two were connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// As its sender counts it.
    pub sender: Duration,
    /// As its receiver counts it, by the last of its frames that had come then.
    pub receiver: Duration,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it is to the other side.
    pub kind: Kind,
    /// Bytes whose meaning this crate does not know.
    pub body: Bytes,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Asks for an answer; the other side drops it when its patience is over. A duration and no time of day: clocks
    /// differ.
    Request {
        /// Chosen by the asker. Free again once it is answered or declined, and not when it is given up: the answer
        /// may still come.
        id: u32,
        /// How long the asker waits, from when the frame got its first message.
        patience: Duration,
    },
    /// The answer to a request.
    Answer {
        /// As in the request.
        id: u32,
    },
    /// There will be no answer to a request: it was dropped, because it came too late or nobody is left to answer.
    Declined {
        /// As in the request.
        id: u32,
    },
    /// Needs no answer.
    Notice,
}

impl Kind {
    /// The same in a frame that was opened so long ago.
    pub(crate) fn asked_behind(self, opened: Duration) -> Kind {
        match self {
            Kind::Request { id, patience } => Kind::Request { id, patience: patience.saturating_add(opened) },
            kind => kind,
        }
    }
}
