//! Messages between the nodes of a cluster. What they mean is not known here: a body is bytes.
//!
//! ```text
//!   handshake   who is there, which cluster, which version, and does it know the secret
//!   frame       length, checks; the sender's clock and epochs, once for all messages
//!   message     a request and its patience, the answer to it, or a notice
//! ```
//!
//! Framing and handshake are state machines without I/O: they are fed bytes and give bytes, so they are tested byte by
//! byte, fuzzed, and run in the simulator as they are. `docs/formats/messages.md` draws the bytes. [`Peer`] and
//! [`answer`] are the two ends of a connection.

mod connection;
mod decoder;
mod encoder;
mod frame;
mod handshake;
pub mod hostile;
mod message;
mod seldom;

pub use connection::{
    AskError, Asked, Bounds, Guests, Handed, MeetError, MessageCounts, Met, Node, Peer, PeerError,
    PeerOptions, Request, Room, Service, WireError, accept, answer, keep_gate,
};
pub use decoder::{Decoder, Frame};
pub use encoder::{BodyTooLong, Encoder};
pub use frame::FrameError;
pub use handshake::{
    Accepting, Acceptor, CLUSTER_NAME_BYTES_MAX, Established, HandshakeBytesError, HandshakeError,
    INPUT_BYTES_MAX, Identity, Initiator, Purpose, Reason, Secret,
};
pub use message::{BODY_BYTES_MAX, Context, Kind, Message, PATIENCE_MAX, Stamp};
pub use seldom::Seldom;

#[cfg(test)]
mod tests;
