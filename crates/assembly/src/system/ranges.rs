//! Ranges of the ring: which are a node's own, and which nodes have one.
//!
//! A vnode ends with one of a node's tokens and begins behind the token before, whoever has that. It is *primary* for
//! the first of its replicas, so that all primary ranges together are the ring, once. Within a data centre, tokens of
//! other ones are passed over: then the *local primary* ranges of each data centre are the ring.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::metadata::Member;
use ring::{NodeIndex, Placement, Strategy, TokenRange};
use schema::Replication;
use types::Token;

use super::view::NodeView;

/// Above the first and up to the second; the least token as an end stands for the ring's.
pub(super) type Range = (i64, i64);

/// Which nodes have what of a keyspace.
pub struct Placed {
    /// All nodes.
    pub nodes: Vec<Member>,
    /// Where this one is among them.
    pub here: usize,
    /// All ranges in the order of the ring, with the places of their replicas, the primary one first.
    pub ranges: Vec<(TokenRange, Vec<usize>)>,
    /// What part of the ring each node has a replica of.
    pub shares: Vec<f64>,
}

impl Placed {
    /// Which nodes have what of keyspaces with that replication.
    pub fn new(view: &NodeView, replication: &Replication) -> Placed {
        // One that is not known was refused when the keyspace was made.
        Placed::by(view, &Strategy::of(replication).unwrap_or(Strategy::Local))
    }

    /// Which nodes have what, by a strategy.
    pub fn by(view: &NodeView, strategy: &Strategy) -> Placed {
        let Some(members) = view.members() else { return Placed::lone(view) };
        let here = members.topology().index_of(view.host_id).unwrap_or(NodeIndex(0));
        let placement = Placement::new(Arc::clone(members.topology()), strategy, here);
        let replicas = |set| placement.replicas(set).iter().map(|node| node.as_usize()).collect();
        Placed {
            nodes: members.list().to_vec(),
            here: here.as_usize(),
            ranges: placement.ranges().map(|(range, set)| (range, replicas(set))).collect(),
            shares: placement.ownership(),
        }
    }

    /// A lone node has everything.
    fn lone(view: &NodeView) -> Placed {
        let tokens = view.tokens();
        let starts = tokens.iter().cycle().skip(tokens.len() - 1);
        let range = |(start, end): (&i64, &i64)| TokenRange { start: Token(*start), end: Token(*end) };
        let ranges = starts.zip(&*tokens).map(|pair| (range(pair), vec![0])).collect();
        Placed { nodes: view.nodes(), here: 0, ranges, shares: vec![1.0] }
    }

    /// The replicas of a token, the primary one first.
    pub fn replicas_of(&self, token: Token) -> impl Iterator<Item = &Member> {
        let found = self.ranges.iter().find(|(range, _)| range.contains(token));
        found.into_iter().flat_map(|(_, replicas)| replicas.iter().map(|place| &self.nodes[*place]))
    }

    /// Those of this node that are primary.
    pub(super) fn own_primary(&self) -> Vec<Range> {
        let own = self.ranges.iter().filter(|(_, replicas)| replicas.first() == Some(&self.here));
        own.flat_map(|(range, _)| unwrapped(range.start.0, range.end.0)).collect()
    }

    /// Addresses of the nodes that have each range, by the token it ends with.
    pub(super) fn ownership(&self) -> BTreeMap<String, Vec<String>> {
        let address = |place: &usize| format!("/{}", self.nodes[*place].candidate.address);
        let of_range = |(range, replicas): &(TokenRange, Vec<usize>)| {
            (range.end.0.to_string(), replicas.iter().map(address).collect())
        };
        self.ranges.iter().map(of_range).collect()
    }
}

/// This node's local primary ranges.
pub(super) fn local_primary(view: &NodeView) -> Vec<Range> {
    let center = &view.options.data_center;
    let near = view.nodes().into_iter().filter(|node| node.candidate.data_center == *center);
    let mut ends: Vec<(i64, bool)> = Vec::new();
    for node in near {
        let is_own = node.candidate.host_id == view.host_id;
        ends.extend(node.tokens.iter().map(|token| (*token, is_own)));
    }
    ends.sort_unstable();
    ending_with_own(&ends)
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
