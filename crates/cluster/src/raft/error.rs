//! What can go wrong, in our own names.

use std::io;
use std::path::PathBuf;

use bytes::BufMut;
use uuid::Uuid;

use super::bytes_of::{BadBytes, Reader, put_bytes};

/// Why a node's part of an agreement can not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Bytes that were durable are other ones now, or gone.
    #[error("{path} is damaged at byte {offset}: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// The disk failed.
    #[error("{act}: {source}")]
    Disk {
        /// What was tried.
        act: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// What was read does not make sense together.
    #[error("take up the agreement: {what}")]
    Begin {
        /// Why not.
        what: String,
    },
}

/// A node's part of an agreement has ended, and nothing more is agreed to on it: its disk failed, or a promise was
/// broken. What it acknowledged is on the disk; a start finds it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("agreement has ended on this node: {what}")]
pub struct Ended {
    /// Why.
    pub what: String,
}

/// Why something was not agreed on, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgreementError {
    /// No leader is known, or it can not be reached, or does not reach a majority. Nothing was done.
    #[error("no leader is known that a majority follows")]
    NoLeader,
    /// It may have been done, or be done yet.
    #[error("no answer came in time; it may have been agreed on")]
    InDoubt,
    /// It is longer than any command may be. Nothing was done.
    #[error("a command of {bytes} bytes is too long")]
    TooLong {
        /// How long it is.
        bytes: u64,
    },
    /// An agreement was founded here before, or this node is a member of one.
    #[error("this node belongs to an agreement already")]
    Founded,
    /// Another change of the members is under way. Nothing was done.
    #[error("another change of the members is under way")]
    Changing,
    /// Nothing was done.
    #[error("node {node} is no member, or not of the kind that this needs")]
    NotMember {
        /// Who was meant.
        node: Uuid,
    },
    /// A member has not got enough of the log yet. Nothing was done.
    #[error("node {node} has not got the log yet")]
    Behind {
        /// Which.
        node: Uuid,
    },
    /// It would leave nobody who votes. Nothing was done.
    #[error("the last voter stays")]
    LastVoter,
    /// Something else forbids it. Nothing was done.
    #[error("{what}")]
    Refused {
        /// What does.
        what: String,
    },
    /// Agreement has ended on the node that was asked. What was under way is in doubt.
    #[error("agreement has ended on this node")]
    Ended,
}

impl AgreementError {
    /// Is it worth another try?
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, AgreementError::NoLeader | AgreementError::InDoubt | AgreementError::Changing)
    }

    pub(super) fn put(&self, out: &mut impl BufMut) {
        let code = match self {
            AgreementError::NoLeader => 1,
            AgreementError::InDoubt => 2,
            AgreementError::TooLong { .. } => 3,
            AgreementError::Founded => 4,
            AgreementError::Changing => 5,
            AgreementError::NotMember { .. } => 6,
            AgreementError::Behind { .. } => 7,
            AgreementError::LastVoter => 8,
            AgreementError::Refused { .. } => 9,
            // That one node has ended is no word of the others.
            AgreementError::Ended => 2,
        };
        out.put_u8(code);
        match self {
            AgreementError::TooLong { bytes } => out.put_u64_le(*bytes),
            AgreementError::NotMember { node } | AgreementError::Behind { node } => {
                out.put_slice(node.as_bytes());
            }
            AgreementError::Refused { what } => put_bytes(out, what.as_bytes()),
            _ => {}
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<AgreementError, BadBytes> {
        Ok(match reader.u8()? {
            1 => AgreementError::NoLeader,
            2 => AgreementError::InDoubt,
            3 => AgreementError::TooLong { bytes: reader.u64()? },
            4 => AgreementError::Founded,
            5 => AgreementError::Changing,
            6 => AgreementError::NotMember { node: reader.uuid()? },
            7 => AgreementError::Behind { node: reader.uuid()? },
            8 => AgreementError::LastVoter,
            9 => AgreementError::Refused { what: String::from_utf8_lossy(&reader.bytes()?).into_owned() },
            _ => return Err(BadBytes("a kind of refusal")),
        })
    }
}
