//! Which nodes form the ring, where they stand, and which tokens they have.
//!
//! An immutable value, equal on all nodes that know the same: nodes are in the order of their host ids,
//! tokens in that of the ring. A change makes another value. Nodes that own nothing, because they are
//! still joining, are members of a cluster but not of its topology; so Cassandra counts nodes and racks,
//! too.

use types::Token;
use uuid::Uuid;

use crate::{Grid, RingError};

/// A node of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Who it is, whatever its address.
    pub host_id: Uuid,
    /// Where it stands.
    pub data_center: String,
    /// Where in the data centre; racks of one name in two data centres are two racks.
    pub rack: String,
    /// The node's weight: how many tokens it is meant to have. One with twice as many is meant to hold twice as
    /// much.
    pub num_tokens: u16,
    /// Where its vnodes end, in the order of the ring. When nodes have left the ring, there may be up to twice as
    /// many as `num_tokens`.
    pub tokens: Vec<Token>,
}

/// A node within one topology, by its place in [`Topology::nodes`]. Another topology may have another node
/// there: what outlives a topology holds host ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u16);

impl NodeIndex {
    /// For lists that have an entry for each node.
    pub fn as_usize(self) -> usize {
        usize::from(self.0)
    }
}

/// The ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    grid: Grid,
    /// Invariant: ascending by host id, each with tokens.
    nodes: Vec<Node>,
    /// All tokens. Invariant: ascending, none twice, all on the grid.
    tokens: Vec<Token>,
    /// Whose the tokens are. Invariant: as long as `tokens`.
    owners: Vec<NodeIndex>,
}

impl Topology {
    /// A ring of these nodes, in whatever order they come.
    ///
    /// # Errors
    /// [`RingError`] when there is no node, a node without a token, a node or a token twice, or a
    /// token that is not on the grid.
    pub fn new(grid: Grid, mut nodes: Vec<Node>) -> Result<Self, RingError> {
        nodes.sort_by_key(|node| node.host_id);
        check_nodes(grid, &nodes)?;
        let mut owned = Vec::new();
        for (node, index) in nodes.iter_mut().zip(0u16..) {
            node.tokens.sort();
            owned.extend(node.tokens.iter().map(|&token| (token, NodeIndex(index))));
        }
        owned.sort();
        for pair in owned.windows(2) {
            if pair[0].0 == pair[1].0 {
                let host_id = |at: usize| nodes[pair[at].1.as_usize()].host_id;
                return Err(RingError::TokenTwice {
                    token: pair[0].0,
                    first: host_id(0),
                    second: host_id(1),
                });
            }
        }
        let (tokens, owners) = owned.into_iter().unzip();
        Ok(Topology { grid, nodes, tokens, owners })
    }

    /// The same ring on a finer grid: no token moves, slots split.
    ///
    /// # Errors
    /// [`RingError::OffGrid`] when the grid is coarser than the tokens allow.
    pub fn refined(&self, grid: Grid) -> Result<Self, RingError> {
        Topology::new(grid, self.nodes.clone())
    }

    /// The grid its tokens lie on.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// All nodes by their host ids; at least one.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.as_usize()]
    }

    /// Where a node is among the others, if it is there.
    pub fn index_of(&self, host_id: Uuid) -> Option<NodeIndex> {
        let index = self.nodes.binary_search_by_key(&host_id, |node| node.host_id).ok()?;
        Some(NodeIndex(index as u16))
    }

    /// All tokens in the order of the ring.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Whose [`Topology::tokens`] are, one by one.
    pub fn owners(&self) -> &[NodeIndex] {
        &self.owners
    }
}

/// Checks what concerns nodes and tokens one by one.
fn check_nodes(grid: Grid, nodes: &[Node]) -> Result<(), RingError> {
    if nodes.is_empty() {
        return Err(RingError::NoNodes);
    }
    if let Some(pair) = nodes.windows(2).find(|pair| pair[0].host_id == pair[1].host_id) {
        return Err(RingError::NodeTwice { host_id: pair[0].host_id });
    }
    let token_count = nodes.iter().map(|node| node.tokens.len()).sum();
    if token_count > grid.slot_count() {
        return Err(RingError::TooManyTokens { token_count, slot_count: grid.slot_count() });
    }
    for node in nodes {
        if node.tokens.is_empty() {
            return Err(RingError::NoTokens { host_id: node.host_id });
        }
        if let Some(&token) = node.tokens.iter().find(|&&token| !grid.has(token)) {
            let (slot_bits, nearest) = (grid.slot_bits(), grid.nearest(token));
            return Err(RingError::OffGrid { token, slot_bits, nearest });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u128, slots: &[usize]) -> Node {
        let tokens = slots.iter().map(|&slot| Grid::COARSEST.last_token(slot)).collect();
        Node {
            host_id: Uuid::from_u128(id),
            data_center: "dc1".into(),
            rack: "r1".into(),
            num_tokens: 16,
            tokens,
        }
    }

    fn ring(nodes: Vec<Node>) -> Result<Topology, RingError> {
        Topology::new(Grid::COARSEST, nodes)
    }

    #[test]
    fn nodes_and_tokens_in_any_order_are_one_ring() {
        let one = ring(vec![node(7, &[5, 100]), node(3, &[4_095, 1])]).expect("a ring");
        let other = ring(vec![node(3, &[1, 4_095]), node(7, &[100, 5])]).expect("a ring");
        assert_eq!(one, other);
        assert_eq!(one.index_of(Uuid::from_u128(7)), Some(NodeIndex(1)));
        assert_eq!(one.index_of(Uuid::from_u128(8)), None);
        assert_eq!(one.owners(), [NodeIndex(0), NodeIndex(1), NodeIndex(1), NodeIndex(0)]);
        assert_eq!(one.tokens().last(), Some(&Token::MAX));
    }

    #[test]
    fn what_makes_no_ring_is_refused() {
        let host_id = Uuid::from_u128;
        assert_eq!(ring(vec![]), Err(RingError::NoNodes));
        assert_eq!(ring(vec![node(1, &[3]), node(2, &[])]), Err(RingError::NoTokens { host_id: host_id(2) }));
        assert_eq!(
            ring(vec![node(1, &[3]), node(1, &[4])]),
            Err(RingError::NodeTwice { host_id: host_id(1) })
        );
        let token = Grid::COARSEST.last_token(3);
        assert_eq!(
            ring(vec![node(1, &[3]), node(2, &[4, 3])]),
            Err(RingError::TokenTwice { token, first: host_id(1), second: host_id(2) })
        );
        assert_eq!(
            ring(vec![node(1, &[3, 3])]),
            Err(RingError::TokenTwice { token, first: host_id(1), second: host_id(1) })
        );
        let all: Vec<usize> = (0..=4_096).map(|slot| slot % 4_096).collect();
        assert_eq!(
            ring(vec![node(1, &all)]),
            Err(RingError::TooManyTokens { token_count: 4_097, slot_count: 4_096 })
        );
    }

    #[test]
    fn a_token_off_the_grid_is_refused_with_the_nearest_that_is_on_it() {
        let mut off = node(1, &[3]);
        off.tokens[0].0 += 9;
        let message = ring(vec![off]).expect_err("off the grid").to_string();
        let (token, nearest) = (Grid::COARSEST.last_token(3).0 + 9, Grid::COARSEST.last_token(3).0);
        assert_eq!(
            message,
            format!("token {token} is not the last one of a slot of 2^12; the nearest that is: {nearest}")
        );
    }

    #[test]
    fn a_finer_grid_moves_no_token_and_a_coarser_one_may_not_hold_them() {
        let coarse = ring(vec![node(1, &[0, 9]), node(2, &[4_095])]).expect("a ring");
        let fine = coarse.refined(Grid::new(14).expect("a grid")).expect("finer");
        assert_eq!((fine.tokens(), fine.owners()), (coarse.tokens(), coarse.owners()));
        assert_eq!(fine.refined(Grid::COARSEST).as_ref(), Ok(&coarse), "no token uses the finer slots yet");
        let mut nodes = fine.nodes().to_vec();
        nodes[0].tokens.push(fine.grid().last_token(2));
        let finer = Topology::new(fine.grid(), nodes).expect("a ring");
        assert!(matches!(finer.refined(Grid::COARSEST), Err(RingError::OffGrid { .. })));
    }
}
