//! What a node's part in a ring begins with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use messaging::Handed;
use runtime::BoundListener;
use schema::{Schema, Transformation};
use tokio::sync::mpsc::UnboundedSender;

use super::{Known, Proposals};
use crate::metadata::{Candidate, Entry};
use crate::raft::Timing;

/// What a node's part in a ring begins with.
pub struct MembershipOptions {
    /// What the node says of itself.
    pub candidate: Candidate,
    /// Nodes to ask first; this one may be among them.
    pub seeds: Vec<SocketAddr>,
    /// Where the member was whose place this node is to take, if it is no member yet.
    pub replaces: Option<SocketAddr>,
    /// The log of agreement is here.
    pub directory: PathBuf,
    /// How long others are waited for.
    pub timing: Timing,
    /// The schema that every node is born with.
    pub base: Arc<Schema>,
    /// What the node has made of it alone.
    pub history: Vec<Transformation>,
}

impl MembershipOptions {
    /// May this node found a ring? It is told no seeds, or is the first of them, and there is none yet as far as it is
    /// told.
    pub(super) fn may_found(&self) -> bool {
        self.replaces.is_none() && self.seeds.first().is_none_or(|first| *first == self.candidate.address)
    }
}

/// Ways between a node's part in its ring and the rest of the node.
pub struct Doors {
    /// What is known of the ring.
    pub known: Known,
    /// Where other nodes come in.
    pub listener: BoundListener,
    /// Takes entries of the history, in order; those that the node has already come again when it starts.
    pub entries: UnboundedSender<Entry>,
    /// What this node proposes.
    pub proposals: Proposals,
    /// Takes connections from shards of other nodes to one of this one.
    pub hand_over: Box<dyn FnMut(u16, Handed) + Send>,
}
