//! What can be proposed to an agreement about metadata, and what is answered.
//!
//! Both are JSON: they are few, and somebody who looks for what has happened can read them in the log of agreement.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use bytes::Bytes;
use schema::Transformation;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Candidate, Members, Presence};

/// Which forms of the history this program knows. Greater with each new command, and with each change of one, of an
/// entry or of [`Transformation`] that an earlier program can not read or would read as something else.
pub const HISTORY_VERSION: u16 = 3;

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
        /// Which one that was, when it was found dead: by now another one may be there, or it elsewhere, alive. `None`
        /// in a ring with members whose program would not look at it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found_dead: Option<Uuid>,
    },
    /// A member is none any more, and nobody has its place: as long as no data would have to move.
    Remove {
        /// Which.
        host_id: Uuid,
    },
    /// A member has got the rows of the place that it took.
    Filled {
        /// Which.
        host_id: Uuid,
    },
    /// Most voters are lost for good, and the ring goes on without what these members have. Nobody proposes it: it is
    /// written by force.
    GiveUp {
        /// Which.
        lost: BTreeSet<Uuid>,
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
    /// Since that version of the history a replacement says who was found dead.
    pub(crate) const REPLACE_NAMES_THE_DEAD: u16 = 2;
    /// Since that one a node may say which tokens it takes.
    const JOIN_NAMES_TOKENS: u16 = 3;

    /// Since that version members can be removed.
    const REMOVE: u16 = 3;

    /// As bytes.
    pub fn encode(&self) -> Bytes {
        encode(self)
    }

    /// Since which version of the history there is such a command.
    fn since(&self) -> u16 {
        match self {
            Command::Join { candidate } if candidate.has_initial_tokens() => Command::JOIN_NAMES_TOKENS,
            Command::Found { .. }
            | Command::ChangeSchema { .. }
            | Command::Join { .. }
            | Command::Present { .. }
            | Command::Replace { found_dead: None, .. }
            | Command::Filled { .. }
            | Command::GiveUp { .. } => 1,
            Command::Replace { found_dead: Some(_), .. } => Command::REPLACE_NAMES_THE_DEAD,
            Command::Remove { .. } => Command::REMOVE,
        }
    }

    /// Do all members know it?
    ///
    /// # Errors
    /// One does not, in words: it would have to end, or become something else than the others.
    pub(super) fn check_known(&self, members: &Members) -> Result<(), String> {
        check_version(self.since(), members)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Command, Refusal> {
        serde_json::from_slice(bytes).map_err(|error| Refusal::Unknown { what: error.to_string() })
    }
}

/// Do all members know that version of the history?
pub(super) fn check_version(since: u16, members: &Members) -> Result<(), String> {
    match members.oldest().filter(|oldest| oldest.history_version < since) {
        None => Ok(()),
        Some(oldest) => Err(format!(
            "node {} at {} runs a program that does not know it: version {} of the history, and it takes {since}",
            oldest.host_id, oldest.address, oldest.history_version
        )),
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
