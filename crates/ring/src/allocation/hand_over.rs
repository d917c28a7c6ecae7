//! A node leaves: its tokens are dropped, or go to nodes that have too little.

use super::Occupied;
use super::draft::{Draft, Load};
use super::effect::{Change, Effect};
use super::moves::{Before, Budget};
use crate::NodeIndex;

impl Draft {
    /// Gives what ended at these slots to other nodes, where the ring is more even for it: the tokens there were
    /// those of a node that has left. To begin with, they are dropped: the draft does not have them.
    ///
    /// One token in place of another gives nobody but what the leaver had. Several in its place push out some who
    /// held what is theirs now: the budget must have room for that.
    pub(super) fn hand_over(
        &mut self,
        slots: impl Iterator<Item = usize>,
        occupied: &mut Occupied,
        before: &Before,
        budget: &mut Budget,
    ) {
        if self.owners.is_empty() {
            return;
        }
        let mut moved = before.new_slot_count(self);
        for slot in slots {
            while let Some((place, taken, taker)) = self.best_taker(slot, occupied) {
                self.insert(place, taken, taker, occupied);
                let moved_with_it = before.new_slot_count(self);
                if !budget.spend(moved_with_it - moved) {
                    self.remove(place, occupied);
                    break;
                }
                moved = moved_with_it;
            }
        }
    }

    /// Who should have a token at or shortly before a slot, and where. None when nobody should.
    fn best_taker(&self, slot: usize, occupied: &Occupied) -> Option<(usize, usize, NodeIndex)> {
        let load = self.load();
        let place = (0..self.owners.len()).min_by_key(|&place| self.distance(slot, self.slots[place]))?;
        // The front of this vnode, up to the slot, is what is to be had.
        let longest = self.distance(self.slots[self.before(place)], slot).min(self.length(place) - 1);
        let takers = self.members.iter().filter_map(|&taker| {
            let surplus = self.surplus_with(&load, taker)?;
            let effect = Effect::of(self, &load, place, Change::Insert(taker));
            let wanted = effect.best_length(self, &load).unwrap_or(longest as f64);
            let length = self.free_length(place, wanted, longest, occupied)?;
            let saved = self.saved_by_dividing(place, length);
            let cost = effect.cost(length, self, &load) + self.surplus_cost(surplus) - saved;
            Some((cost, self.slot_within(place, length), taker))
        });
        let (cost, taken, taker) = takers.min_by(|one, other| one.0.total_cmp(&other.0))?;
        (cost < 0.0).then_some((place, taken, taker))
    }

    /// By how much a node has too many tokens when it gets one more. None when it may not have it.
    fn surplus_with(&self, load: &Load, node: NodeIndex) -> Option<u16> {
        let token_count = load.token_counts[node.as_usize()] + 1;
        (token_count <= self.tokens_max(node))
            .then(|| token_count.saturating_sub(self.weights[node.as_usize()]))
    }
}
