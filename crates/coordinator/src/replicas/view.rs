//! The ring as one node sees it: who the replicas of a token are, and how each is reached.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use cluster::membership::Other;
use messaging::Peer;
use ring::{GroupIndex, NodeIndex, Placement, Strategy, Topology};
use types::Token;
use uuid::Uuid;

use super::partners::KeptPartners;
use super::requirement::{Counted, Factors, Requirement};
use super::speculation::Latencies;
use crate::Consistency;

/// The ring, as it is between two changes of it.
pub struct RingView {
    here: NodeIndex,
    /// By the index of the node.
    ways: Vec<Way>,
    hosts: Vec<Uuid>,
    /// Which data centre each node is in.
    center_of: Vec<usize>,
    /// The names of these, in their order.
    centers: Vec<String>,
    /// Which rack of its data centre each node is in.
    racks: Vec<String>,
    /// Those with equal strategies share what comes of it.
    keyspaces: BTreeMap<String, Rc<Replicated>>,
}

/// The way to a node.
pub struct Way {
    /// Where other nodes reach it, as clients are told it when it fails.
    pub address: SocketAddr,
    /// How it is asked; `None` for this node.
    pub remote: Option<Remote>,
    /// Does it have the rows of its tokens? If not, it is written to and counts as one that is away.
    pub has_rows: bool,
}

/// A node that is asked by messages.
pub struct Remote {
    /// The connection of this shard to it.
    pub peer: Peer,
    /// Does it live?
    pub other: Arc<Other>,
    /// How fast it has answered.
    pub latencies: Rc<Latencies>,
}

/// A keyspace on the ring, or several with equal strategies.
pub(super) struct Replicated {
    strategy: Strategy,
    placement: Placement,
    factors: Factors,
    /// Which replicas plain requests to it go to.
    pub(super) partners: KeptPartners,
}

impl Replicated {
    /// The replicas of a token, in any order.
    pub(super) fn group_of(&self, token: Token) -> GroupIndex {
        self.placement.group_of(self.placement.set_of(token))
    }
}

/// The replicas of a partition.
#[derive(Clone, Debug)]
pub(super) struct Plan<'v> {
    /// This node may be among them: it is asked without a message.
    pub(super) nodes: &'v [NodeIndex],
    pub(super) factors: &'v Factors,
}

impl Plan<'_> {
    /// Is a conditional change told when it is chosen, and waited for by reads until it is written? In one data centre:
    /// of several a replica behind a cut could not settle what it has accepted. And where one replica at least need
    /// not accept: else each may be read alone.
    pub(super) fn tells_chosen(&self) -> bool {
        let agreed = Requirement::of(Consistency::Serial, self.factors).count();
        self.factors.center_count == 1 && self.nodes.len() > agreed as usize
    }
}

impl RingView {
    /// What node `here` of the ring sees, which reaches all nodes by `ways`, in the order of the topology's nodes.
    ///
    /// # Panics
    /// When there is no such node, there are not as many ways as nodes, or this node is to reach itself.
    pub fn new(
        topology: &Arc<Topology>,
        here: NodeIndex,
        ways: Vec<Way>,
        keyspaces: impl IntoIterator<Item = (String, Strategy)>,
    ) -> RingView {
        assert_eq!(ways.len(), topology.nodes().len(), "each node is reached somehow");
        assert!(ways[here.as_usize()].remote.is_none(), "this node needs no connection to itself");
        let mut centers: Vec<&str> = topology.nodes().iter().map(|node| node.data_center.as_str()).collect();
        centers.sort_unstable();
        centers.dedup();
        let center_of = |center: &str| centers.binary_search(&center).expect("it is one of them");
        let center_of: Vec<usize> =
            topology.nodes().iter().map(|node| center_of(&node.data_center)).collect();
        let mut by_strategy: BTreeMap<Strategy, Rc<Replicated>> = BTreeMap::new();
        let mut replicated = |strategy: Strategy| {
            let replicated = by_strategy.entry(strategy).or_insert_with_key(|strategy| {
                Rc::new(Replicated {
                    strategy: strategy.clone(),
                    placement: Placement::new(Arc::clone(topology), strategy, here),
                    factors: factors_of(strategy, &centers, center_of[here.as_usize()]),
                    partners: KeptPartners::default(),
                })
            });
            Rc::clone(replicated)
        };
        let keyspaces = keyspaces.into_iter().map(|(name, strategy)| (name, replicated(strategy))).collect();
        let hosts = topology.nodes().iter().map(|node| node.host_id).collect();
        let centers = centers.into_iter().map(str::to_owned).collect();
        let racks = topology.nodes().iter().map(|node| node.rack.clone()).collect();
        RingView { here, ways, hosts, center_of, centers, racks, keyspaces }
    }

    /// The replicas of a token in a keyspace; `None` when the ring does not have the keyspace.
    pub(super) fn plan(&self, keyspace: &str, token: Token) -> Option<Plan<'_>> {
        let Replicated { placement, factors, .. } = &**self.replicated(keyspace)?;
        let set = placement.set_of(token);
        Some(Plan { nodes: placement.replicas(set), factors })
    }

    /// Are these the keyspaces of the ring, with their strategies, in the order of their names?
    pub(super) fn is_of(&self, keyspaces: &[(String, Strategy)]) -> bool {
        let own = self.keyspaces.iter().map(|(name, replicated)| (name, &replicated.strategy));
        own.eq(keyspaces.iter().map(|(name, strategy)| (name, strategy)))
    }

    /// Does the ring have the keyspace?
    pub(super) fn has(&self, keyspace: &str) -> bool {
        self.keyspaces.contains_key(keyspace)
    }

    /// The keyspace, if the ring has it.
    pub(super) fn replicated(&self, keyspace: &str) -> Option<&Rc<Replicated>> {
        self.keyspaces.get(keyspace)
    }

    /// Where the replicas of a keyspace are; `None` when the ring does not have it.
    pub(super) fn placement(&self, keyspace: &str) -> Option<&Placement> {
        Some(&self.keyspaces.get(keyspace)?.placement)
    }

    /// This node.
    pub(super) fn here(&self) -> NodeIndex {
        self.here
    }

    /// The connection to a node; `None` to this one.
    pub(super) fn peer(&self, node: NodeIndex) -> Option<&Peer> {
        self.ways[node.as_usize()].remote.as_ref().map(|remote| &remote.peer)
    }

    /// How fast a node has answered; `None` for this one.
    pub(super) fn latencies(&self, node: NodeIndex) -> Option<&Rc<Latencies>> {
        self.ways[node.as_usize()].remote.as_ref().map(|remote| &remote.latencies)
    }

    /// Was it late just now?
    #[inline]
    pub(super) fn is_avoided(&self, node: NodeIndex) -> bool {
        self.latencies(node).is_some_and(|latencies| latencies.is_avoided())
    }

    /// Does it count as a replica? One that is getting its rows does not.
    #[inline]
    pub(super) fn has_rows(&self, node: NodeIndex) -> bool {
        self.ways[node.as_usize()].has_rows
    }

    /// Is it no member of the ring any more, as far as this node knows by now?
    #[inline]
    pub(super) fn is_gone(&self, node: NodeIndex) -> bool {
        self.ways[node.as_usize()].remote.as_ref().is_some_and(|remote| remote.other.is_gone())
    }

    /// How often the ring has changed, as far as another node has come.
    pub(super) fn ring_epoch(&self, node: NodeIndex) -> Option<u64> {
        self.ways[node.as_usize()].remote.as_ref().map(|remote| remote.other.ring_epoch())
    }

    /// Does it live, and would something that is asked of it now be sent?
    pub(super) fn is_alive(&self, node: NodeIndex) -> bool {
        let remote = self.ways[node.as_usize()].remote.as_ref();
        remote.is_none_or(|remote| remote.other.is_alive() && remote.peer.is_reachable())
    }

    /// The node, whatever its place.
    pub(super) fn host_of(&self, node: NodeIndex) -> Uuid {
        self.hosts[node.as_usize()]
    }

    /// The place of a node; `None` when it is not in the ring.
    pub(super) fn index_of(&self, host_id: Uuid) -> Option<NodeIndex> {
        // In the order of the topology.
        let index = self.hosts.binary_search(&host_id).ok()?;
        Some(NodeIndex(index as u16))
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeIndex> {
        (0..self.hosts.len()).map(|index| NodeIndex(index as u16))
    }

    /// The rack of its data centre that a node is in.
    pub(super) fn rack_of(&self, node: NodeIndex) -> &str {
        &self.racks[node.as_usize()]
    }

    /// The data centre that a node is in.
    pub(super) fn center_name_of(&self, node: NodeIndex) -> &str {
        &self.centers[self.center_of(node)]
    }

    /// As clients are told it.
    pub(super) fn address_of(&self, node: NodeIndex) -> SocketAddr {
        self.ways[node.as_usize()].address
    }

    pub(super) fn center_of(&self, node: NodeIndex) -> usize {
        self.center_of[node.as_usize()]
    }

    /// Does it live, and so much waits to be sent to it that nothing more is taken?
    fn is_crowded(&self, node: NodeIndex) -> bool {
        let remote = self.ways[node.as_usize()].remote.as_ref();
        remote.is_some_and(|remote| remote.other.is_alive() && remote.peer.is_crowded())
    }

    /// Those of some replicas that could be asked now, and count.
    pub(super) fn alive(&self, plan: &Plan<'_>) -> Counted {
        self.counted(plan, |node| self.is_alive(node))
    }

    /// And those that could be if less waited to be sent.
    pub(super) fn alive_or_crowded(&self, plan: &Plan<'_>) -> Counted {
        self.counted(plan, |node| self.is_alive(node) || self.is_crowded(node))
    }

    fn counted(&self, plan: &Plan<'_>, is_counted: impl Fn(NodeIndex) -> bool) -> Counted {
        let mut counted = Counted::none(plan.factors);
        let nodes = plan.nodes.iter().filter(|node| is_counted(**node) && self.has_rows(**node));
        nodes.for_each(|node| counted.add(self.center_of(*node)));
        counted
    }

    /// Replicas that count, in the order in which a read asks them.
    pub(super) fn readers(&self, plan: &Plan<'_>) -> Vec<NodeIndex> {
        let mut nodes = self.nearest_first(plan);
        nodes.retain(|node| self.has_rows(*node));
        nodes
    }

    /// Replicas in the order in which they are asked: this node, those of its data centre, the others; each time
    /// those first that can be reached, and were not late just now.
    pub(super) fn nearest_first(&self, plan: &Plan<'_>) -> Vec<NodeIndex> {
        let mut nodes = plan.nodes.to_vec();
        let here = self.center_of(self.here);
        nodes.sort_by_key(|node| {
            let is_avoided = self.is_avoided(*node);
            (!self.is_alive(*node), is_avoided, *node != self.here, self.center_of(*node) != here)
        });
        nodes
    }
}

fn factors_of(strategy: &Strategy, centers: &[&str], local: usize) -> Factors {
    let (total, of_centers) = match strategy {
        Strategy::Local => (1, None),
        Strategy::Simple { factor } => (*factor, None),
        Strategy::NetworkTopology { factors } => {
            let of_center = |center: &&str| factors.get(*center).copied().unwrap_or(0);
            (factors.values().sum(), Some(centers.iter().map(of_center).collect()))
        }
    };
    Factors { total, of_centers, center_count: centers.len(), local }
}
