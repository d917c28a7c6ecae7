//! Which nodes hold a token, by one look into a table.
//!
//! ```text
//!   token ── its highest g bits ──▶ slot ──▶ set ──▶ replicas, the token's owner first
//!                                            └────▶ group: the same nodes in any order
//! ```
//!
//! A placement is made once for each replication strategy in use and each topology. Sets are interned:
//! tokens with the same replicas in the same order have one number, so that requests can be put together
//! by comparing numbers; those for which the order does not matter are put together by group.
//!
//! With n tokens, s sets and r replicas in each, it takes `2 · 2^g + 2 · r · s + 6 · s` bytes: the table, the
//! replicas, and for each set where they end and its group; s is at most n. For 285 nodes with 16 tokens and
//! three replicas on a grid of 2^13 that is below 72 KB. With one set, as in a ring of one node and for local
//! keyspaces, the table has one entry.

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::Arc;

use types::Token;

use crate::grid::biased;
use crate::replicas::Rules;
use crate::{NodeIndex, Strategy, Topology};

/// A set of replicas in their order, by its number within one placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetIndex(pub u16);

/// A set of replicas in any order, by its number within one placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIndex(pub u16);

/// The tokens behind `start`, up to and including `end`. From a token on to one that is not greater, they
/// go around the end of the ring; from a token to itself, they are all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRange {
    /// The last token that is not in the range.
    pub start: Token,
    /// The last token that is.
    pub end: Token,
}

impl TokenRange {
    /// Does a token lie in the range?
    pub fn contains(self, token: Token) -> bool {
        match self.start < self.end {
            true => self.start < token && token <= self.end,
            false => self.start < token || token <= self.end,
        }
    }
}

/// Where one replication strategy places tokens in one topology.
#[derive(Clone, Debug)]
pub struct Placement {
    topology: Arc<Topology>,
    /// The set of each slot; of all of them, when there is but one.
    set_of_slot: Box<[SetIndex]>,
    /// The logarithm of the table's length.
    table_bits: u8,
    sets: Sets,
}

impl Placement {
    /// The placement of a strategy, as seen by the node `here`: it is the one replica of local keyspaces, and
    /// means nothing to others.
    pub fn new(topology: Arc<Topology>, strategy: &Strategy, here: NodeIndex) -> Self {
        let mut interner = Interner::default();
        let set_of_slot = match strategy {
            Strategy::Local => vec![interner.intern(&[here])],
            _ => fill_table(&topology, strategy, &mut interner),
        };
        let table_bits = set_of_slot.len().ilog2() as u8;
        Placement { topology, set_of_slot: set_of_slot.into(), table_bits, sets: interner.finish() }
    }

    /// The ring it was made for.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The set of replicas that a token has.
    #[inline]
    pub fn set_of(&self, token: Token) -> SetIndex {
        // In two steps, because a shift by 64, which a table of one entry would need, is none.
        let slot = (biased(token) >> 1) >> (63 - self.table_bits);
        self.set_of_slot[slot as usize]
    }

    /// The nodes of a set in the order of the walk, the owner of the token first. Empty where a strategy
    /// places nothing, as with a factor of 0.
    #[inline]
    pub fn replicas(&self, set: SetIndex) -> &[NodeIndex] {
        &self.sets[set]
    }

    /// The replicas of a token, its owner first.
    #[inline]
    pub fn replicas_of(&self, token: Token) -> &[NodeIndex] {
        self.replicas(self.set_of(token))
    }

    /// The number that a set has in common with those of the same nodes in another order.
    #[inline]
    pub fn group_of(&self, set: SetIndex) -> GroupIndex {
        self.sets.groups[usize::from(set.0)]
    }

    /// How many sets there are; their numbers are below that.
    pub fn set_count(&self) -> usize {
        self.sets.groups.len()
    }

    /// The last token up to `last` that has the same nodes, in whatever order, as all tokens before it from `first`
    /// on.
    pub fn end_of_group(&self, first: Token, last: Token) -> Token {
        let group = self.group_of(self.set_of(first));
        let ends = self.topology.tokens();
        let later = ends.iter().skip(ends.partition_point(|end| *end < first));
        let mut end = first;
        // Each vnode ends with its token; behind the last one comes the first one's, to the end of the ring.
        for vnode_end in later.copied().chain([Token::MAX]) {
            if self.group_of(self.set_of(vnode_end)) != group {
                return end.min(last);
            }
            end = vnode_end;
            if end >= last {
                return last;
            }
        }
        end.min(last)
    }

    /// All vnodes' ranges with their sets, in the order of the ring: one for each token, as Cassandra
    /// describes its ring, also where neighbours have the same set. The first goes around the end.
    pub fn ranges(&self) -> impl Iterator<Item = (TokenRange, SetIndex)> {
        let ends = self.topology.tokens();
        let starts = ends.iter().cycle().skip(ends.len() - 1);
        starts.zip(ends).map(|(&start, &end)| (TokenRange { start, end }, self.set_of(end)))
    }

    /// How many slots each node holds a replica of, by its index.
    pub fn slots_by_node(&self) -> Vec<u32> {
        let mut slots = vec![0; self.topology.nodes().len()];
        let slots_each = (self.topology.grid().slot_count() / self.set_of_slot.len()) as u32;
        for &set in &self.set_of_slot {
            for &node in self.replicas(set) {
                slots[node.as_usize()] += slots_each;
            }
        }
        slots
    }

    /// What part of the ring each node holds a replica of, by its index: 1.0 is the whole ring, and the sum is
    /// the number of replicas. `nodetool status` shows it as *Owns (effective)*.
    pub fn ownership(&self) -> Vec<f64> {
        let whole = self.topology.grid().slot_count() as f64;
        self.slots_by_node().into_iter().map(|slots| f64::from(slots) / whole).collect()
    }

    /// The memory it takes, without the topology, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let Sets { nodes, ends, groups } = &self.sets;
        size_of::<Self>()
            + size_of_val(&*self.set_of_slot)
            + size_of_val(&**nodes)
            + size_of_val(&**ends)
            + size_of_val(&**groups)
    }
}

/// The set of each slot, or of all when there is but one.
fn fill_table(topology: &Topology, strategy: &Strategy, interner: &mut Interner) -> Vec<SetIndex> {
    let grid = topology.grid();
    let rules = Rules::new(topology.nodes(), strategy);
    let mut replicas = Vec::new();
    let mut table = Vec::with_capacity(grid.slot_count());
    for (start, &token) in topology.tokens().iter().enumerate() {
        rules.walk(topology.owners(), start, &mut replicas);
        let set = interner.intern(&replicas);
        table.resize(grid.slot_of(token) + 1, set);
    }
    // Behind the last token the ring begins again.
    table.resize(grid.slot_count(), table[0]);
    if interner.numbers.len() == 1 {
        table.truncate(1);
    }
    table
}

/// All sets of a placement, one behind the other.
#[derive(Clone, Debug)]
struct Sets {
    nodes: Box<[NodeIndex]>,
    /// Where each set ends in `nodes`; it begins where the one before ends.
    ends: Box<[u32]>,
    /// Each set's group.
    groups: Box<[GroupIndex]>,
}

impl Index<SetIndex> for Sets {
    type Output = [NodeIndex];

    #[inline]
    fn index(&self, set: SetIndex) -> &[NodeIndex] {
        let index = usize::from(set.0);
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.nodes[start as usize..self.ends[index] as usize]
    }
}

/// Gives equal sets one number. There is a set for each token at most, and so 16 bits suffice.
#[derive(Default)]
struct Interner {
    numbers: BTreeMap<Box<[NodeIndex]>, SetIndex>,
    nodes: Vec<NodeIndex>,
    ends: Vec<u32>,
}

impl Interner {
    fn intern(&mut self, replicas: &[NodeIndex]) -> SetIndex {
        if let Some(&set) = self.numbers.get(replicas) {
            return set;
        }
        let set = SetIndex(self.numbers.len() as u16);
        self.numbers.insert(replicas.into(), set);
        self.nodes.extend_from_slice(replicas);
        self.ends.push(self.nodes.len() as u32);
        set
    }

    fn finish(self) -> Sets {
        let mut numbers: BTreeMap<Vec<NodeIndex>, GroupIndex> = BTreeMap::new();
        let mut groups = vec![GroupIndex(0); self.ends.len()];
        for (mut replicas, set) in self.numbers.into_iter().map(|(replicas, set)| (replicas.into_vec(), set))
        {
            replicas.sort();
            let next = GroupIndex(numbers.len() as u16);
            groups[usize::from(set.0)] = *numbers.entry(replicas).or_insert(next);
        }
        Sets { nodes: self.nodes.into(), ends: self.ends.into(), groups: groups.into() }
    }
}
