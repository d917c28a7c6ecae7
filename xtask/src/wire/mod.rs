//! A CQL client of our own for the judges, apart from the crate `protocol`.
//!
//! A driver hides what we compare: exact error codes, column specs, warnings, page boundaries.
//! And a judge that shares its codec with the judged repeats its mistakes; so this is a second,
//! small and blocking implementation of native protocol v3, v4 and v5, without compression.
//!
//! ```text
//!   connection   sends requests, receives answers
//!   segment      what v5 wraps frames in
//!   answer       what a server may answer, parsed
//!   value        a value's bytes as the CQL literal that a reader knows
//! ```

pub(crate) mod answer;
pub(crate) mod connection;
pub(crate) mod segment;
pub(crate) mod value;

pub(crate) use answer::{Answer, Response};
pub(crate) use connection::{BoundValue, Connection, Request};

/// What can go wrong between us and a server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("connect to {address}")]
    Connect { address: String, source: std::io::Error },
    #[error("talk to the server")]
    Io(#[from] std::io::Error),
    #[error("answer ends early: {wanted} bytes wanted at byte {offset} of {length}")]
    Short { wanted: usize, offset: usize, length: usize },
    #[error("answer holds {what} {got}, which the protocol does not know")]
    Unknown { what: &'static str, got: i64 },
    #[error("segment has checksum {got:#x}, expected {expected:#x}")]
    Checksum { expected: u32, got: u32 },
    #[error("handshake refused: {0}")]
    Handshake(String),
}
