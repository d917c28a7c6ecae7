//! Which nodes hold a vnode: the walk along the ring.
//!
//! The rules are those of Cassandra 5.0 (`SimpleStrategy` and `NetworkTopologyStrategy`,
//! `calculateNaturalReplicas`), because drivers compute replicas for themselves:
//!
//! - The walk begins with the token's owner and looks at each further token's owner in turn. A node
//!   that was taken is passed over.
//! - A data centre takes `min(factor, its nodes)` nodes.
//! - The first node of a rack is taken. A further node of the same rack is taken only while there are
//!   *repeats* left, of which a data centre has `factor − its racks`: so many replicas can not have a
//!   rack of their own, and they go to the first that come along. With three replicas on two racks that
//!   is one.
//! - All data centres are filled in the same walk, and replicas stand in the order in which they were
//!   taken.
//!
//! `SimpleStrategy` is the same walk through one data centre that is a single rack.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use crate::{Node, NodeIndex, Strategy};

/// A strategy applied to nodes of which it is known where they stand.
#[derive(Clone)]
pub(crate) struct Rules {
    /// Where each node stands, by its index.
    sites: Vec<Site>,
    /// What each data centre takes.
    quotas: SmallVec<[Quota; 4]>,
}

/// Where a node stands, in numbers.
#[derive(Clone, Copy)]
struct Site {
    center: usize,
    /// Racks are numbered over all data centres.
    rack: usize,
}

/// What a data centre takes yet.
#[derive(Clone, Copy)]
struct Quota {
    replicas: usize,
    /// How many of them may stand in a rack that has one.
    repeats: usize,
}

impl Rules {
    /// The rules of a strategy for nodes in the order of their indexes.
    ///
    /// # Panics
    /// For [`Strategy::Local`], which has nothing to do with the ring.
    pub(crate) fn new(nodes: &[Node], strategy: &Strategy) -> Self {
        match strategy {
            Strategy::Local => panic!("a local keyspace has no replicas to look for"),
            Strategy::Simple { factor } => Self::simple(nodes.len(), *factor),
            Strategy::NetworkTopology { factors } => Self::network_topology(nodes, factors),
        }
    }

    fn simple(node_count: usize, factor: u32) -> Self {
        Self::of_center(&vec![0; node_count], factor)
    }

    /// The rules of one data centre alone, given each node's rack.
    pub(crate) fn of_center(racks: &[usize], factor: u32) -> Self {
        let mut center = Center::new(0);
        center.node_count = racks.len();
        center.rack_count = BTreeSet::from_iter(racks).len();
        let sites = racks.iter().map(|&rack| Site { center: 0, rack }).collect();
        Rules { sites, quotas: SmallVec::from_slice(&[center.quota(factor as usize)]) }
    }

    fn network_topology(nodes: &[Node], factors: &BTreeMap<String, u32>) -> Self {
        let mut centers: BTreeMap<&str, Center> = BTreeMap::new();
        let mut racks: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for node in nodes {
            let center_count = centers.len();
            let center = centers.entry(&node.data_center).or_insert_with(|| Center::new(center_count));
            center.node_count += 1;
            let rack_count = racks.len();
            racks.entry((&node.data_center, &node.rack)).or_insert_with(|| {
                center.rack_count += 1;
                rack_count
            });
        }
        let site = |node: &Node| Site {
            center: centers[node.data_center.as_str()].index,
            rack: racks[&(node.data_center.as_str(), node.rack.as_str())],
        };
        let sites = nodes.iter().map(site).collect();
        let mut quotas = SmallVec::from_elem(Quota { replicas: 0, repeats: 0 }, centers.len());
        for (name, center) in centers {
            let factor = factors.get(name).map_or(0, |&factor| factor as usize);
            quotas[center.index] = center.quota(factor);
        }
        Rules { sites, quotas }
    }

    /// Replaces `replicas` by those of the vnode that ends with the token at `start`, given the owners of
    /// all tokens in the order of the ring.
    pub(crate) fn walk(&self, owners: &[NodeIndex], start: usize, replicas: &mut Vec<NodeIndex>) {
        self.walk_along(owners[start..].iter().chain(&owners[..start]).copied(), replicas);
    }

    /// The same, given the owners from the token on.
    pub(crate) fn walk_along(&self, turn: impl Iterator<Item = NodeIndex>, replicas: &mut Vec<NodeIndex>) {
        replicas.clear();
        let mut quotas = self.quotas.clone();
        let mut missing: usize = quotas.iter().map(|quota| quota.replicas).sum();
        for owner in turn {
            if missing == 0 {
                break;
            }
            let site = self.site(owner);
            let quota = &mut quotas[site.center];
            if quota.replicas == 0 || replicas.contains(&owner) {
                continue;
            }
            if replicas.iter().any(|&taken| self.site(taken).rack == site.rack) {
                if quota.repeats == 0 {
                    continue;
                }
                quota.repeats -= 1;
            }
            quota.replicas -= 1;
            missing -= 1;
            replicas.push(owner);
        }
    }

    fn site(&self, node: NodeIndex) -> Site {
        self.sites[node.as_usize()]
    }
}

/// A data centre as it is counted.
struct Center {
    index: usize,
    node_count: usize,
    rack_count: usize,
}

impl Center {
    fn new(index: usize) -> Self {
        Center { index, node_count: 0, rack_count: 0 }
    }

    fn quota(&self, factor: usize) -> Quota {
        Quota { replicas: factor.min(self.node_count), repeats: factor.saturating_sub(self.rack_count) }
    }
}
