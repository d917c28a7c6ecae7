//! What a node knows about itself from the start and does not change.

use std::net::SocketAddr;
use std::sync::Arc;

use cluster::Members;
use cluster::membership::{Known, Proposer};
use cluster::metadata::{Candidate, HISTORY_VERSION, Member, MemberState};
use coordinator::Node;
use coordinator::replicas::{AgreementCounts, Marks, ReadRepairs, Repairer};
use query::VirtualKeyspaces;
use runtime::{Clock, Runtime};
use storage::NodeFacts;
use types::murmur3_x64_128;
use uuid::Uuid;

use super::definitions::virtual_keyspaces;
use super::tables::MadeUp;
use crate::memory::ProcessMemory;
use crate::ring::Seats;
use crate::{AssemblyError, ClientMemory, MemoryUse, NodeLatencies, NodeOptions, NodeStats};

/// The Cassandra version that drivers are told; they choose their queries by it.
pub const RELEASE_VERSION: &str = "5.0.9";
/// The version of the language.
pub(crate) const CQL_VERSION: &str = "3.4.7";
/// The one partitioner there is.
pub const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// Tokens of a node, as many as Cassandra's `num_tokens` gives by default.
const TOKEN_COUNT: u16 = 16;
/// Where nodes of a Cassandra ring talk to each other; a lone node says so, although nothing listens there.
const STORAGE_PORT: u16 = 7000;

/// What a node knows about itself. Cheap to clone; every shard has one.
#[derive(Clone)]
pub struct NodeView {
    /// What it was put together with.
    pub options: Arc<NodeOptions>,
    /// Its identity.
    pub host_id: Uuid,
    /// When the node started, seconds since 1970.
    pub started_seconds: i64,
    /// What is there for clients.
    pub client_memory: ClientMemory,
    /// How long their requests have taken.
    pub latencies: NodeLatencies,
    node: Node,
    ring: Option<Known>,
    proposer: Option<Proposer>,
    repairer: Option<Repairer>,
    marks: Option<Marks>,
    /// Its tokens when it is alone, ascending.
    lone_tokens: Arc<[i64]>,
    clock: Arc<dyn Clock>,
    /// Which tables it makes up.
    pub(crate) made_up: Arc<dyn VirtualKeyspaces>,
}

impl NodeView {
    /// The view of a node that is starting.
    ///
    /// # Errors
    /// A definition of a system table is wrong.
    pub(crate) fn new(
        options: NodeOptions,
        client_memory: ClientMemory,
        (node, seats): (Node, Option<&Seats>),
        facts: &NodeFacts,
        runtime: &Runtime,
    ) -> Result<Self, AssemblyError> {
        Ok(NodeView {
            options: Arc::new(options),
            client_memory,
            latencies: NodeLatencies::new(Arc::clone(&runtime.clock)),
            node,
            ring: seats.map(|seats| seats.known.clone()),
            proposer: seats.map(|seats| seats.proposer.clone()),
            repairer: seats.map(|seats| seats.repairer.clone()),
            marks: seats.map(|seats| seats.marks.clone()),
            host_id: facts.host_id,
            lone_tokens: tokens(facts.host_id).into(),
            started_seconds: runtime.clock.now_seconds(),
            clock: Arc::clone(&runtime.clock),
            made_up: Arc::new(MadeUp(virtual_keyspaces()?)),
        })
    }

    /// What the node knows of its ring; `None` when it is alone.
    pub fn ring(&self) -> Option<&Known> {
        self.ring.as_ref()
    }

    /// Proposes changes to its ring; `None` when it is alone.
    pub fn proposer(&self) -> Option<&Proposer> {
        self.proposer.as_ref()
    }

    /// Makes tables equal on the nodes of its ring; `None` when it is alone.
    pub fn repairer(&self) -> Option<&Repairer> {
        self.repairer.as_ref()
    }

    /// What other nodes of its ring have missed; `None` when it is alone.
    pub fn marks(&self) -> Option<&Marks> {
        self.marks.as_ref()
    }

    /// The members of its ring; `None` when it is alone, or not one of them yet.
    pub(super) fn members(&self) -> Option<Arc<Members>> {
        self.ring()?.members().filter(|members| members.get(self.host_id).is_some())
    }

    /// All nodes there are: the members of its ring, or itself.
    pub fn nodes(&self) -> Vec<Member> {
        self.members().map_or_else(|| vec![self.lone()], |members| members.list().to_vec())
    }

    fn lone(&self) -> Member {
        let candidate = Candidate {
            host_id: self.host_id,
            address: self.address(),
            cql_address: self.options.cql_broadcast,
            data_center: self.options.data_center.clone(),
            rack: self.options.rack.clone(),
            shard_count: self.options.storage.shard_count,
            num_tokens: TOKEN_COUNT,
            initial_tokens: Vec::new(),
            history_version: HISTORY_VERSION,
        };
        Member { candidate, tokens: self.lone_tokens.to_vec(), state: MemberState::Normal }
    }

    /// Counts of its reads that compared the answers of several replicas.
    pub fn read_repairs(&self) -> Vec<Arc<ReadRepairs>> {
        self.node.read_repairs()
    }

    /// How often and how fast replicas have agreed on conditional changes that this node proposed.
    pub fn agreement_counts(&self) -> &AgreementCounts {
        self.node.agreement_counts()
    }

    /// Is that node heard? This one is.
    pub fn hears(&self, host_id: Uuid) -> bool {
        host_id == self.host_id || self.ring().is_some_and(|known| known.other(host_id).is_alive())
    }

    /// Its tokens, ascending.
    pub fn tokens(&self) -> Arc<[i64]> {
        let members = self.members();
        match members.as_ref().and_then(|members| members.get(self.host_id)) {
            Some(member) => member.tokens.as_slice().into(),
            None => Arc::clone(&self.lone_tokens),
        }
    }

    /// Where other nodes reach it, or would.
    pub fn address(&self) -> SocketAddr {
        let lone = || SocketAddr::new(self.listen().ip(), STORAGE_PORT);
        self.options.ring.as_ref().map_or_else(lone, |ring| ring.broadcast)
    }

    /// Where it listens for other nodes, or would.
    pub fn internode_listen(&self) -> SocketAddr {
        self.options.ring.as_ref().map_or_else(|| self.address(), |ring| ring.listen)
    }

    /// What finds out where nodes stand, in Cassandra's words: in a ring each node tells the others.
    pub fn snitch(&self) -> &'static str {
        if self.options.ring.is_some() { "GossipingPropertyFileSnitch" } else { "SimpleSnitch" }
    }

    /// Where CQL is spoken; port 0 when nobody listens.
    pub fn listen(&self) -> SocketAddr {
        self.options.listen
    }

    /// What the process has in memory, by use; the sum is what the kernel tells of it.
    pub fn memory_uses(&self, stats: &NodeStats) -> Vec<MemoryUse> {
        let room = self.ring.as_ref().map(|ring| &ring.bounds().room);
        self.client_memory.uses(&self.options, stats, room, ProcessMemory::now())
    }

    /// How many logged batches are recorded, or may be, and could not be finished or taken back yet.
    pub fn unfinished_batch_count(&self) -> usize {
        self.node.unfinished_batch_count()
    }

    /// How many logged batches are kept for other nodes of a ring, or of an earlier run.
    pub fn kept_batch_count(&self) -> usize {
        self.node.kept_batch_count()
    }

    /// How many of those were written again, since nobody had finished them.
    pub fn replayed_batch_count(&self) -> u64 {
        self.node.replayed_batch_count()
    }

    /// Seconds since the node started.
    pub fn uptime_seconds(&self) -> u64 {
        u64::try_from(self.clock.now_seconds() - self.started_seconds).unwrap_or(0)
    }
}

/// The tokens of a node: scattered, and the same whenever this node starts, so that they need no
/// place on the disk.
fn tokens(host_id: Uuid) -> Vec<i64> {
    let mut tokens = Vec::new();
    let mut index = 0u64;
    while tokens.len() < usize::from(TOKEN_COUNT) {
        let mut seed = host_id.as_bytes().to_vec();
        seed.extend_from_slice(&index.to_be_bytes());
        let token = murmur3_x64_128(&seed)[0].cast_signed();
        // The least token belongs to nobody.
        if token != i64::MIN && !tokens.contains(&token) {
            tokens.push(token);
        }
        index += 1;
    }
    tokens.sort_unstable();
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_the_same_scattered_tokens_whenever_it_starts() {
        let host = Uuid::from_u128(0x1292_eed1_7956_4942_b19a_81b9_af08_3eb5);
        let first = tokens(host);
        assert_eq!(first, tokens(host));
        assert_eq!(first.len(), 16);
        assert!(first.is_sorted());
        assert!(first[0] < 0 && first[15] > 0);
        assert_ne!(first, tokens(Uuid::from_u128(1)));
    }
}
