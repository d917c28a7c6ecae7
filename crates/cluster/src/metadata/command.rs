//! What can be proposed to an agreement about metadata, and what is answered.
//!
//! Both are JSON: they are few, and somebody who looks for what has happened can read them in the log of agreement.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use schema::Transformation;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Candidate, Presence};

/// A proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// The ring begins, with one node and the schema that it has made alone.
    Found {
        /// Drawn by the founder.
        cluster_id: Uuid,
        /// All changes of the schema so far.
        history: Vec<Transformation>,
        /// Its first member.
        founder: Candidate,
    },
    /// The schema changes.
    ChangeSchema {
        /// The epoch of the schema that the change was planned on.
        based_on: u64,
        /// How.
        change: Transformation,
    },
    /// A node becomes a member. One that is a member stays one.
    Join {
        /// Who.
        candidate: Candidate,
    },
    /// Members are elsewhere since they were started. Several at a time, so that two can change their places.
    Present {
        /// Where, by host id.
        presences: BTreeMap<Uuid, Presence>,
    },
    /// A node takes the place of a member, which is one no more.
    Replace {
        /// Who.
        candidate: Candidate,
        /// Where other nodes reached the one whose place it is.
        replaced: SocketAddr,
    },
    /// A member has got the rows of the place that it took.
    Filled {
        /// Which.
        host_id: Uuid,
    },
}

/// How far history has come with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    /// That of the schema.
    pub schema_epoch: u64,
    /// That of the ring.
    pub ring_epoch: u64,
}

/// Why a command changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// What the change was planned on has changed: plan again.
    #[error("what was planned on epoch {based_on} was changed since; the schema is at epoch {current}")]
    Moved {
        /// As in the command.
        based_on: u64,
        /// That of the schema.
        current: u64,
    },
    /// It does not fit the schema: plan again.
    #[error("change schema: {what}")]
    Schema {
        /// Why not, in words.
        what: String,
    },
    /// Data would have to move.
    #[error("keyspace {keyspace} holds tables, and their data can not be moved to other nodes yet: {what}")]
    HoldsData {
        /// One that does.
        keyspace: String,
        /// What can not be done.
        what: String,
    },
    /// There is no ring yet.
    #[error("the ring is not founded yet")]
    NotFounded,
    /// It is founded once.
    #[error("the ring is founded already")]
    Founded,
    /// Somebody else is there, or it was somewhere else.
    #[error("{what}")]
    Candidate {
        /// What is wrong with it.
        what: String,
    },
    /// Who proposed it knows more than this node.
    #[error("the command can not be read: {what}")]
    Unknown {
        /// Why not, in words.
        what: String,
    },
}

impl Command {
    /// As bytes.
    pub fn encode(&self) -> Bytes {
        encode(self)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Command, Refusal> {
        serde_json::from_slice(bytes).map_err(|error| Refusal::Unknown { what: error.to_string() })
    }
}

/// What a command came to, as bytes.
pub(super) fn encode_outcome(outcome: &Result<Agreed, Refusal>) -> Bytes {
    encode(outcome)
}

/// What a command came to.
///
/// # Errors
/// The command was refused, or the bytes make no sense.
pub(crate) fn decode_outcome(bytes: &[u8]) -> Result<Agreed, Refusal> {
    let outcome: Result<Result<Agreed, Refusal>, _> = serde_json::from_slice(bytes);
    outcome.unwrap_or_else(|error| Err(Refusal::Unknown { what: error.to_string() }))
}

fn encode(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("all of its keys are texts").into()
}
