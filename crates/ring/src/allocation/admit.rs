//! A node joins: its tokens are found one after the other, each where it evens out most.

use super::Occupied;
use super::draft::{Draft, Load};
use super::effect::{Change, Effect};
use crate::NodeIndex;

/// How a newcomer may come to a token.
#[derive(Clone, Copy)]
enum Way {
    /// Its token goes to the end of this slot.
    Insert(usize),
    /// It takes over the token that is there.
    Replace,
}

impl Draft {
    /// Gives the member that has no tokens its tokens, and says how many slots it should hold in the end.
    pub(super) fn admit(&mut self, occupied: &mut Occupied) -> Option<usize> {
        let newcomer = *self.members.iter().find(|member| !self.owners.contains(member))?;
        if self.owners.is_empty() {
            self.spread(occupied);
        } else {
            let token_count = self.token_count_for(newcomer);
            for nth in 1..=token_count {
                let goal = self.target(newcomer) * f64::from(nth) / f64::from(token_count);
                self.admit_token(newcomer, goal, occupied);
            }
        }
        Some(self.target(newcomer) as usize)
    }

    /// A token takes from as many nodes as there are replicas. Where its tokens would not reach all nodes, a newcomer
    /// gets up to half as many more.
    fn token_count_for(&self, newcomer: NodeIndex) -> u16 {
        let weight = self.weights[newcomer.as_usize()];
        let reached = self.members.len().div_ceil(self.factor as usize);
        u16::try_from(reached).unwrap_or(u16::MAX).clamp(weight, weight + weight.div_ceil(2))
    }

    /// Gives a newcomer the token that evens out most when it should hold `goal` slots with it.
    fn admit_token(&mut self, newcomer: NodeIndex, goal: f64, occupied: &mut Occupied) {
        let mut load = self.load();
        load.excess[newcomer.as_usize()] += self.target(newcomer) - goal;
        let ways = (0..self.owners.len()).flat_map(|place| {
            let inserted = self.insertion(&load, place, newcomer, occupied);
            let replaced = self.replacement(&load, place, newcomer);
            inserted.into_iter().chain(replaced).map(move |(cost, way)| (cost, place, way))
        });
        match ways.min_by(|one, other| one.0.total_cmp(&other.0)) {
            Some((_, place, Way::Insert(slot))) => self.insert(place, slot, newcomer, occupied),
            Some((_, place, Way::Replace)) => self.owners[place] = newcomer,
            None => {}
        }
    }

    /// The best slot for a token within a vnode, and its cost. None when no slot is free there.
    fn insertion(
        &self,
        load: &Load,
        place: usize,
        newcomer: NodeIndex,
        occupied: &Occupied,
    ) -> Option<(f64, Way)> {
        let longest = self.length(place) - 1;
        let effect = Effect::of(self, load, place, Change::Insert(newcomer));
        let wanted = effect.best_length(self, load).unwrap_or(longest as f64 / 2.0);
        let length = self.free_length(place, wanted, longest, occupied)?;
        let cost = effect.cost(length, self, load) - self.saved_by_dividing(place, length);
        Some((cost, Way::Insert(self.slot_within(place, length))))
    }

    /// What it costs to take over a token of a node that has too many.
    fn replacement(&self, load: &Load, place: usize, newcomer: NodeIndex) -> Option<(f64, Way)> {
        let owner = self.owners[place].as_usize();
        let surplus = load.token_counts[owner].checked_sub(self.weights[owner] + 1)? + 1;
        let effect = Effect::of(self, load, place, Change::Replace(newcomer));
        Some((effect.cost(self.length(place), self, load) - self.surplus_cost(surplus), Way::Replace))
    }
}
