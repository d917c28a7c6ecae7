//! What can go wrong with a node's part in its ring.

use std::io;

use crate::metadata::Refusal;
use crate::raft::{AgreementError, Ended, OpenError};

/// Why a node takes no part in its ring, or no more. It must not serve.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// Nobody can come in.
    #[error("listen for other nodes: {0}")]
    Listen(#[source] io::Error),
    /// The log of agreement is not what it was.
    #[error("open the log of agreement: {0}")]
    Open(#[from] OpenError),
    /// This node was a member of a ring, and the log of what was agreed on is gone.
    #[error("this node is a member of a ring, and the log of agreement in {directory} is gone")]
    LogGone {
        /// Where it was.
        directory: String,
    },
    /// The node's addresses, place or size are not what the ring knows of it.
    #[error("{0}")]
    Changed(Refusal),
    /// The ring does not take it.
    #[error("the ring does not let this node in: {0}")]
    Refused(Refusal),
    /// It would be two schemas in one ring.
    #[error("this node has made a schema of its own: it can found a ring, and not join one")]
    HasHistory,
    /// Its rows would be lost.
    #[error(
        "a node that takes the place of another one starts with an empty directory, and this one has a schema of its own"
    )]
    NotEmpty,
    /// There is nobody to ask.
    #[error(
        "a node that takes the place of another one needs a seed that lives: `seeds` names none but this node"
    )]
    NoSeeds,
    /// It would serve what it has beside the cluster that it was told of.
    #[error("the seed at {seed} is a node of another cluster than this directory is of: {what}")]
    OtherCluster {
        /// Which.
        seed: std::net::SocketAddr,
        /// What it has said.
        what: String,
    },
    /// Its place was taken while it was away.
    #[error(
        "this node is no member of the ring any more, as node {by} at {address} says: its place was taken, or its rows \
         were given up. It can come back with an empty directory only"
    )]
    Removed {
        /// Who says so.
        by: uuid::Uuid,
        /// Where that is.
        address: std::net::SocketAddr,
    },
    /// The same, as it has heard itself of what was agreed on.
    #[error(
        "this node is no member of the ring any more: its place was taken, or its rows were given up. It can come back \
         with an empty directory only"
    )]
    LeftOut,
    /// It can not be carried into a ring.
    #[error("the schema's history of {bytes} bytes is too long to found a ring with")]
    HistoryTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// Agreement has ended.
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// Why something that was proposed is not done, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// It changes nothing.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Most of those who vote are silent. Nothing was done.
    #[error("{heard_count} of {voter_count} voters are heard, which is no majority; nothing was done")]
    NoMajority {
        /// How many are heard, this node among them if it votes.
        heard_count: usize,
        /// How many there are.
        voter_count: usize,
    },
    /// It was not agreed on, or it is not known whether it was.
    #[error(transparent)]
    Agreement(#[from] AgreementError),
}
