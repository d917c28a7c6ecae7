//! What a change moves, and how much it may.

use uuid::Uuid;

use super::draft::Draft;
use crate::replicas::Rules;
use crate::{Grid, NodeIndex, Topology};

/// Who held what before a change.
pub(super) struct Before {
    sets: Vec<Vec<NodeIndex>>,
    /// The set of each slot; empty when nobody held anything.
    set_of_slot: Vec<u16>,
    gone_slot_count: usize,
    /// Which nodes were there, by their index now; empty when none was.
    was_there: Vec<bool>,
}

/// How many slots may be moved for balance alone.
pub(super) struct Budget(Option<i64>);

impl Before {
    /// Nobody held anything: whatever is done moves nothing.
    pub(super) fn nothing() -> Self {
        Before { sets: Vec::new(), set_of_slot: Vec::new(), gone_slot_count: 0, was_there: Vec::new() }
    }

    /// What each node held of a data centre. Nodes get the indexes they have now, in `nodes`.
    pub(super) fn of(topology: &Topology, center: &str, nodes: &[Uuid], grid: Grid, factor: u32) -> Self {
        let mut before = Before::nothing();
        before.was_there = nodes.iter().map(|&node| topology.index_of(node).is_some()).collect();
        let in_center = |index: &NodeIndex| topology.node(*index).data_center == center;
        let tokens = topology.tokens().iter().zip(topology.owners()).filter(|(_, owner)| in_center(owner));
        let (ends, owners): (Vec<usize>, Vec<NodeIndex>) =
            tokens.map(|(&token, &owner)| (grid.slot_of(token) + 1, owner)).unzip();
        let rules = rules_of_center(topology, center, factor);
        for (place, &end) in ends.iter().enumerate() {
            let mut replicas = Vec::new();
            rules.walk(&owners, place, &mut replicas);
            // The first one goes around the end of the ring.
            let behind_last = if place == 0 { grid.slot_count() - ends[ends.len() - 1] } else { 0 };
            let length = end - before.set_of_slot.len() + behind_last;
            let now = |old: &NodeIndex| nodes.binary_search(&topology.node(*old).host_id).ok();
            let held: Vec<NodeIndex> =
                replicas.iter().filter_map(now).map(|index| NodeIndex(index as u16)).collect();
            before.gone_slot_count += length * (replicas.len() - held.len());
            before.sets.push(held);
            before.set_of_slot.resize(end, place as u16);
        }
        if !before.sets.is_empty() {
            before.set_of_slot.resize(grid.slot_count(), 0);
        }
        before
    }

    /// How many slots nodes held that are not there any more.
    pub(super) fn gone_slot_count(&self) -> usize {
        self.gone_slot_count
    }

    /// Must a slot be moved to a node that was there already? What a newcomer holds in the end is moved anyway.
    pub(super) fn is_new_to(&self, node: NodeIndex, slot: usize) -> bool {
        let was_there = self.was_there.get(node.as_usize()).is_some_and(|&was_there| was_there);
        let set = self.set_of_slot.get(slot).map(|&set| &self.sets[usize::from(set)]);
        was_there && set.is_some_and(|set| !set.contains(&node))
    }

    /// How many slots nodes that were there already get by a draft.
    pub(super) fn new_slot_count(&self, draft: &Draft) -> i64 {
        let of_vnode = |(place, set): (usize, &Vec<NodeIndex>)| {
            let to_nodes = |slot| set.iter().filter(|&&node| self.is_new_to(node, slot)).count();
            (1..=draft.length(place)).map(|length| to_nodes(draft.slot_within(place, length))).sum::<usize>()
        };
        draft.load().sets.iter().enumerate().map(of_vnode).sum::<usize>() as i64
    }
}

impl Budget {
    pub(super) fn unlimited() -> Self {
        Budget(None)
    }

    /// A fifth of what a newcomer gets.
    pub(super) fn of_join(slot_count: usize) -> Self {
        Budget(Some(slot_count as i64 / 5))
    }

    /// Parts of what a leaver had, the smaller ones first: mostly the first is enough, and the last is hardly ever
    /// tried.
    pub(super) fn of_leave(slot_count: usize) -> impl Iterator<Item = Self> {
        [10, 20, 24, 33].into_iter().map(move |percent| Budget(Some(slot_count as i64 * percent / 100)))
    }

    /// Spends what a step moves, which may be less than nothing. False, and nothing is spent, when that is more than
    /// is left.
    pub(super) fn spend(&mut self, slot_count: i64) -> bool {
        match &mut self.0 {
            Some(left) if slot_count > *left => return false,
            Some(left) => *left -= slot_count,
            None => {}
        }
        true
    }
}

/// The rules of one data centre, for nodes by their index in the whole topology.
fn rules_of_center(topology: &Topology, center: &str, factor: u32) -> Rules {
    let factors = [(center.to_owned(), factor)].into();
    Rules::new(topology.nodes(), &crate::Strategy::NetworkTopology { factors })
}
