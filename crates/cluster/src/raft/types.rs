//! Openraft's types with our own in them. They stop at the door of this module.

use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;
use openraft::impls::leader_id_std;
use openraft::type_config::alias::{
    EntryOf, LogIdOf, SnapshotMetaOf, SnapshotOf, StoredMembershipOf, VoteOf,
};
use uuid::Uuid;

use super::async_runtime::NodeRuntime;

openraft::declare_raft_types!(
    /// What our Raft is made of.
    pub(crate) Types:
        D = Command,
        R = Outcome,
        NodeId = Uuid,
        Node = Address,
        Term = u64,
        LeaderId = leader_id_std::LeaderId<Self::Term, Self::NodeId>,
        AsyncRuntime = NodeRuntime,
);

pub(crate) type LogId = LogIdOf<Types>;
pub(crate) type Vote = VoteOf<Types>;
pub(crate) type Entry = EntryOf<Types>;
pub(crate) type Payload = openraft::EntryPayload<Command, Uuid, Address>;
pub(crate) type Membership = openraft::Membership<Uuid, Address>;
pub(crate) type StoredMembership = StoredMembershipOf<Types>;
pub(crate) type SnapshotMeta = SnapshotMetaOf<Types>;
/// A snapshot is the bytes of what the log has made.
pub(crate) type Snapshot = SnapshotOf<Types, Bytes>;

/// Where a member is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) SocketAddr);

/// A command in the log. Its id names it: however often it is proposed, it is applied once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) id: Uuid,
    pub(crate) body: Bytes,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command {} of {} bytes", self.id, self.body.len())
    }
}

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// What the machine answered; nothing for what is no command.
    pub(crate) answer: Bytes,
}
