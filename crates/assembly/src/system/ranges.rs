//! Ranges of the ring: which are a node's own, and which nodes have one.
//!
//! A vnode ends with one of a node's tokens and begins behind the token before, whoever has that. It is *primary* for
//! the first of its replicas, so that all primary ranges together are the ring, once. Within a data centre, tokens of
//! other ones are passed over: then the *local primary* ranges of each data centre are the ring.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use cluster::Members;
use ring::{NodeIndex, Placement, Strategy};
use schema::Replication;

use super::view::NodeView;

/// Above the first and up to the second; the least token as an end stands for the ring's.
pub(super) type Range = (i64, i64);

/// This node's local primary ranges.
pub(super) fn local_primary(view: &NodeView) -> Vec<Range> {
    let Some((members, here)) = place(view) else { return lone(view) };
    let topology = members.topology();
    let center = &topology.node(here).data_center;
    let owned = topology.tokens().iter().zip(topology.owners());
    let ends = owned.filter(|(_, owner)| topology.node(**owner).data_center == *center);
    ending_with_own(&ends.map(|(token, owner)| (token.0, *owner == here)).collect::<Vec<_>>())
}

/// This node's primary ranges in a keyspace.
pub(super) fn primary(view: &NodeView, replication: &Replication) -> Vec<Range> {
    let Some(placement) = Placed::new(view, replication) else { return lone(view) };
    let ranges = placement.of.ranges();
    let own = ranges.filter(|(_, set)| placement.of.replicas(*set).first() == Some(&placement.here));
    own.flat_map(|(range, _)| unwrapped(range.start.0, range.end.0)).collect()
}

/// Addresses of the nodes that have each range of a keyspace, by the token it ends with.
pub(super) fn ownership(view: &NodeView, replication: &Replication) -> BTreeMap<String, Vec<String>> {
    let shown = |address: SocketAddr| format!("/{address}");
    let Some(placement) = Placed::new(view, replication) else {
        let owner = shown(view.address());
        return view.tokens().iter().map(|token| (token.to_string(), vec![owner.clone()])).collect();
    };
    let of_set = |set| {
        let replicas = placement.of.replicas(set).iter();
        replicas.map(|node| shown(placement.members.at(*node).candidate.address)).collect()
    };
    placement.of.ranges().map(|(range, set)| (range.end.0.to_string(), of_set(set))).collect()
}

/// Where this node is among the members of its ring; `None` when it is alone.
fn place(view: &NodeView) -> Option<(Arc<Members>, NodeIndex)> {
    let members = view.members()?;
    let here = members.topology().index_of(view.host_id)?;
    Some((members, here))
}

/// A lone node has everything.
fn lone(view: &NodeView) -> Vec<Range> {
    ending_with_own(&view.tokens().iter().map(|token| (*token, true)).collect::<Vec<_>>())
}

/// Where a keyspace is.
struct Placed {
    members: Arc<Members>,
    here: NodeIndex,
    of: Placement,
}

impl Placed {
    /// `None` when the node is alone.
    fn new(view: &NodeView, replication: &Replication) -> Option<Placed> {
        let (members, here) = place(view)?;
        // A strategy that is not known was not taken when the keyspace was made.
        let strategy = Strategy::of(replication).unwrap_or(Strategy::Local);
        let of = Placement::new(Arc::clone(members.topology()), &strategy, here);
        Some(Placed { members, here, of })
    }
}

/// Of the ranges that end with these tokens, in the order of the ring, those that are the node's own.
fn ending_with_own(ends: &[(i64, bool)]) -> Vec<Range> {
    let starts = ends.iter().cycle().skip(ends.len().saturating_sub(1));
    let own = starts.zip(ends).filter(|(_, (_, is_own))| *is_own);
    own.flat_map(|((start, _), (end, _))| unwrapped(*start, *end)).collect()
}

/// A range over the ring's end in two.
fn unwrapped(start: i64, end: i64) -> impl Iterator<Item = Range> {
    let parts = match start < end {
        true => [Some((start, end)), None],
        false => [Some((start, i64::MIN)), Some((i64::MIN, end))],
    };
    parts.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_go_around_the_ring_and_begin_behind_the_token_of_whichever_node() {
        let all = ending_with_own(&[(-5, true), (0, true), (9, true)]);
        assert_eq!(all, [(9, i64::MIN), (i64::MIN, -5), (-5, 0), (0, 9)]);
        assert_eq!(ending_with_own(&[(-5, false), (0, true), (9, false)]), [(-5, 0)]);
        assert_eq!(ending_with_own(&[(-5, true), (0, false)]), [(0, i64::MIN), (i64::MIN, -5)]);
        assert!(ending_with_own(&[]).is_empty());
    }
}
