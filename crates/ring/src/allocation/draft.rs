//! A data centre, or one rack of it, while its tokens are chosen.

use std::collections::BTreeSet;

use super::{Occupied, shares};
use crate::replicas::Rules;
use crate::{Grid, Node, NodeIndex};

/// What one token more than `num_tokens` weighs against imbalance, in parts of a mean node's share: as much as
/// a node that has 1.7% too much.
const SURPLUS_COST: f64 = 3e-4;

/// What uneven lengths of vnodes weigh against imbalance. A token takes from others, and gives to them, as much as
/// vnodes near it are long: in a ring with a few very long ones, a leaver's share can not be divided. Without
/// this, one leave in a hundred left a node with up to 1.3 times as much as another.
const LENGTH_COST: f64 = 20.0;

/// The tokens of nodes that are balanced together. Nodes are named by their index in the data centre.
#[derive(Clone)]
pub(super) struct Draft {
    grid: Grid,
    /// The rack, if it is one.
    rack: Option<String>,
    /// How many replicas it is balanced for.
    pub(super) factor: u32,
    pub(super) rules: Rules,
    pub(super) lanes: Lanes,
    /// Whose tokens these are.
    pub(super) members: Vec<NodeIndex>,
    /// How many slots each node should hold, by index; of use for members only.
    pub(super) targets: Vec<f64>,
    /// `num_tokens` of each node, by index.
    pub(super) weights: Vec<u16>,
    /// The slots at whose ends the tokens are, once around the ring. Vnodes are named by their *place* here.
    pub(super) slots: Vec<usize>,
    /// Whose they are. Invariant: as long as `slots`.
    pub(super) owners: Vec<NodeIndex>,
}

/// Where tokens of different racks and data centres are put so that they do not meet: of as many neighbouring
/// places as there are lanes, each takes its own.
#[derive(Clone)]
pub(super) struct Lanes {
    /// Each node's lane, by its index.
    pub(super) of_nodes: Vec<usize>,
    pub(super) count: usize,
}

/// What a draft comes to.
pub(super) struct Load {
    /// The replicas of each vnode, by its place.
    pub(super) sets: Vec<Vec<NodeIndex>>,
    /// How many slots each node has more than it should, by index.
    pub(super) excess: Vec<f64>,
    /// How many tokens each node has, by index.
    pub(super) token_counts: Vec<u16>,
}

impl Load {
    pub(super) fn excess_of(&self, node: NodeIndex) -> f64 {
        self.excess[node.as_usize()]
    }
}

impl Draft {
    /// A rack that holds every token once.
    pub(super) fn of_rack(center: &Nodes<'_>, rack: &str) -> Self {
        let is_member = |index: &NodeIndex| center.nodes[index.as_usize()].rack == rack;
        let members = center.indexes().filter(is_member).collect();
        Draft { rack: Some(rack.to_owned()), ..Self::of_members(center, members, 1) }
    }

    /// A whole data centre. Where each node holds everything, it is balanced as if there were one replica:
    /// then the nodes that come first are even at least.
    pub(super) fn of_center(center: &Nodes<'_>, factor: u32) -> Self {
        let factor = if center.nodes.len() <= factor as usize { 1 } else { factor };
        Self::of_members(center, center.indexes().collect(), factor)
    }

    fn of_members(center: &Nodes<'_>, members: Vec<NodeIndex>, factor: u32) -> Self {
        let Nodes { grid, nodes, .. } = center;
        let (lanes, racks) = center.lanes_and_racks();
        // With one replica, racks decide nothing.
        let racks = if factor == 1 { vec![0; nodes.len()] } else { racks };
        let weights: Vec<u16> = nodes.iter().map(|node| node.num_tokens).collect();
        let mut tokens: Vec<(usize, NodeIndex)> = Vec::new();
        for &member in &members {
            let own = &nodes[member.as_usize()].tokens;
            tokens.extend(own.iter().map(|&token| (grid.slot_of(token), member)));
        }
        tokens.sort();
        let (slots, owners) = tokens.into_iter().unzip();
        let targets = shares::targets(&members, &racks, &weights, factor as usize, grid.slot_count());
        let rules = Rules::of_center(&racks, factor);
        Draft { grid: *grid, rack: None, factor, rules, lanes, members, targets, weights, slots, owners }
    }

    /// Its tokens: slots with their owners.
    pub(super) fn tokens(&self) -> impl Iterator<Item = (usize, NodeIndex)> {
        self.slots.iter().copied().zip(self.owners.iter().copied())
    }

    /// Do the tokens of a rack's nodes belong here?
    pub(super) fn is_of_rack(&self, rack: &str) -> bool {
        self.rack.as_ref().is_none_or(|own| own == rack)
    }

    pub(super) fn slot_count(&self) -> usize {
        self.grid.slot_count()
    }

    /// How many slots one meets on the way from one to another, without the first; none to itself.
    pub(super) fn distance(&self, from: usize, to: usize) -> usize {
        (to + self.slot_count() - from) % self.slot_count()
    }

    /// The place before another.
    pub(super) fn before(&self, place: usize) -> usize {
        place.checked_sub(1).unwrap_or(self.owners.len() - 1)
    }

    /// The place behind another.
    pub(super) fn after(&self, place: usize) -> usize {
        if place + 1 == self.owners.len() { 0 } else { place + 1 }
    }

    /// How many slots a vnode has.
    pub(super) fn length(&self, place: usize) -> usize {
        match self.distance(self.slots[self.before(place)], self.slots[place]) {
            0 => self.slot_count(),
            length => length,
        }
    }

    /// The slot at which the front of a vnode ends, when it is so long.
    pub(super) fn slot_within(&self, place: usize, length: usize) -> usize {
        (self.slots[self.before(place)] + length) % self.slot_count()
    }

    /// The length nearest to the wanted one, of at most `longest`, at which a vnode can be divided.
    pub(super) fn free_length(
        &self,
        place: usize,
        wanted: f64,
        longest: usize,
        occupied: &Occupied,
    ) -> Option<usize> {
        // Below 0 it is 0.
        let wanted = (wanted.round() as usize).clamp(1, longest.max(1));
        let is_free = |&length: &usize| {
            (1..=longest).contains(&length) && !occupied.has(self.slot_within(place, length))
        };
        (0..longest).flat_map(|away| [wanted + away, wanted.saturating_sub(away)]).find(is_free)
    }

    /// What it is worth that a vnode is divided: by how much the sum of all lengths, squared, becomes less.
    pub(super) fn saved_by_dividing(&self, place: usize, length: usize) -> f64 {
        let parts = 2.0 * length as f64 * (self.length(place) - length) as f64;
        LENGTH_COST * self.mean_target() * parts / (self.slot_count() * self.slot_count()) as f64
    }

    /// What it costs that a node has more tokens than it should, by so many.
    pub(super) fn surplus_cost(&self, surplus: u16) -> f64 {
        f64::from(surplus) * SURPLUS_COST * self.mean_target()
    }

    /// How many tokens a node may come to have.
    pub(super) fn tokens_max(&self, node: NodeIndex) -> u16 {
        self.weights[node.as_usize()].saturating_mul(2)
    }

    /// What an owner should hold.
    pub(super) fn target(&self, node: NodeIndex) -> f64 {
        self.targets[node.as_usize()]
    }

    /// What members should hold in the mean.
    pub(super) fn mean_target(&self) -> f64 {
        self.members.iter().map(|&member| self.target(member)).sum::<f64>() / self.members.len() as f64
    }

    /// Who has how much.
    pub(super) fn load(&self) -> Load {
        let mut excess: Vec<f64> = self.targets.iter().map(|target| -target).collect();
        let mut token_counts = vec![0; excess.len()];
        let mut sets = Vec::with_capacity(self.owners.len());
        for (place, owner) in self.owners.iter().enumerate() {
            let mut replicas = Vec::new();
            self.rules.walk(&self.owners, place, &mut replicas);
            for &replica in &replicas {
                excess[replica.as_usize()] += self.length(place) as f64;
            }
            token_counts[owner.as_usize()] += 1;
            sets.push(replicas);
        }
        Load { sets, excess, token_counts }
    }

    /// Divides the vnode at a place by another token.
    pub(super) fn insert(&mut self, place: usize, slot: usize, owner: NodeIndex, occupied: &mut Occupied) {
        assert!(!occupied.has(slot), "a slot ends with one token");
        occupied.set(slot, true);
        self.slots.insert(place, slot);
        self.owners.insert(place, owner);
    }

    /// Takes a token away again.
    pub(super) fn remove(&mut self, place: usize, occupied: &mut Occupied) {
        occupied.set(self.slots.remove(place), false);
        self.owners.remove(place);
    }

    /// Drops tokens that say nothing, because the next one is of the same node, where the node has more than it
    /// should.
    pub(super) fn merge(&mut self, occupied: &mut Occupied) {
        let mut token_counts = self.load().token_counts;
        let mut place = 0;
        while place < self.owners.len() {
            let index = self.owners[place].as_usize();
            let says_nothing = self.owners[place] == self.owners[self.after(place)];
            if says_nothing && token_counts[index] > self.weights[index] {
                token_counts[index] -= 1;
                self.remove(place, occupied);
            } else {
                place += 1;
            }
        }
    }
}

/// The nodes of a data centre.
pub(super) struct Nodes<'a> {
    pub(super) grid: Grid,
    /// Which of all data centres it is.
    pub(super) nth: usize,
    pub(super) center_count: usize,
    /// In the order of their host ids.
    pub(super) nodes: Vec<&'a Node>,
}

impl Nodes<'_> {
    pub(super) fn racks(&self) -> BTreeSet<&str> {
        self.nodes.iter().map(|node| node.rack.as_str()).collect()
    }

    fn indexes(&self) -> impl Iterator<Item = NodeIndex> {
        (0..self.nodes.len()).map(|index| NodeIndex(index as u16))
    }

    /// Each node's lane, and its rack as a number.
    fn lanes_and_racks(&self) -> (Lanes, Vec<usize>) {
        let names = self.racks();
        let number = |node: &&Node| names.iter().take_while(|&&name| name < node.rack.as_str()).count();
        let racks: Vec<usize> = self.nodes.iter().map(number).collect();
        let of_nodes = racks.iter().map(|rack| rack * self.center_count + self.nth).collect();
        (Lanes { of_nodes, count: names.len() * self.center_count }, racks)
    }
}
