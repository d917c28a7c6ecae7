//! Tokens are shifted until the load is even.

use smallvec::SmallVec;

use super::Occupied;
use super::draft::Draft;
use super::moves::{Before, Budget};
use crate::NodeIndex;

/// How many parts of its share a node must have more than another before data is moved for it. When that does not
/// make the ring even enough, the next one is tried.
const BANDS: [f64; 4] = [0.02, 0.01, 0.005, 0.0];
/// How many times as much the fullest node has at most as the emptiest, both in parts of their shares; with a grain
/// for rounding.
const RATIO_PROMISED: f64 = 1.05 - 0.002;
/// Where shifting ends. It is below what is promised, so that the next change finds some room.
const RATIO_ENOUGH: f64 = 1.04;
/// How often all tokens are looked at. Rings come to rest after some ten times.
const PASSES_MAX: usize = 60;

/// Less than that is rounding.
const LEAST_RELIEF: f64 = 1e-9;

/// A token seen as a valve: who wins and who loses when it goes forward. None where everybody holds both sides.
type Valve = Option<(NodeIndex, NodeIndex)>;

/// A token on its way.
#[derive(Clone, Copy)]
struct Shift {
    place: usize,
    is_forward: bool,
    winner: NodeIndex,
    loser: NodeIndex,
}

/// What shifts are judged by.
struct Judge<'a> {
    before: &'a Before,
    budget: &'a mut Budget,
    band: f64,
    /// How many slots each node has more than it should.
    excess: Vec<f64>,
}

impl Draft {
    /// Shifts tokens until the load is even enough, or the budget is spent.
    pub(super) fn settle(&mut self, occupied: &mut Occupied, before: &Before, budget: &mut Budget) {
        let valves = self.valves();
        for band in BANDS {
            let mut judge = Judge { before, budget, band, excess: self.load().excess };
            for pass in 0..PASSES_MAX {
                if !self.pass(&valves, pass, &mut judge, occupied) {
                    break;
                }
            }
            if self.ratio(&judge.excess) <= RATIO_ENOUGH {
                break;
            }
        }
        self.merge(occupied);
    }

    /// Shifts each token as far as it helps, and says whether any was. Passes go to and fro, so that nothing is only
    /// ever pushed in one direction.
    fn pass(
        &mut self,
        valves: &[Valve],
        pass: usize,
        judge: &mut Judge<'_>,
        occupied: &mut Occupied,
    ) -> bool {
        let mut was_shifted = false;
        for nth in 0..valves.len() {
            let place = if pass.is_multiple_of(2) { nth } else { valves.len() - 1 - nth };
            let Some((winner, loser)) = valves[place] else { continue };
            let forward = Shift { place, is_forward: true, winner, loser };
            let back = Shift { place, is_forward: false, winner: loser, loser: winner };
            while self.shift(forward, judge, occupied) || self.shift(back, judge, occupied) {
                was_shifted = true;
            }
        }
        was_shifted
    }

    /// What each token does when it is shifted. It stays the same as long as no token passes another.
    fn valves(&self) -> Vec<Valve> {
        let sets = self.load().sets;
        let valve = |place: usize| {
            let (with, without) = (&sets[place], &sets[self.after(place)]);
            let winner = with.iter().find(|node| !without.contains(node))?;
            let loser = without.iter().find(|node| !with.contains(node))?;
            Some((*winner, *loser))
        };
        (0..sets.len()).map(valve).collect()
    }

    /// Shifts a token to the next free slot in one direction, if that makes the load more even.
    fn shift(&mut self, shift: Shift, judge: &mut Judge<'_>, occupied: &mut Occupied) -> bool {
        let Shift { place, winner, loser, .. } = shift;
        let Some(passed) = self.slots_to_next_free(shift, occupied) else { return false };
        let is_new_to = |node, slot: &usize| i64::from(judge.before.is_new_to(node, *slot));
        let moved: i64 = passed.iter().map(|slot| is_new_to(winner, slot) - is_new_to(loser, slot)).sum();
        let count = passed.len() as f64;
        let [winners, losers] = [winner, loser].map(|node| judge.excess[node.as_usize()]);
        // Half of it: what the last slot brings is less than what the first one does.
        let relief =
            (losers - count / 2.0) / self.target(loser) - (winners + count / 2.0) / self.target(winner);
        let is_worth_it = relief * count > LEAST_RELIEF + judge.band * moved as f64;
        if !is_worth_it || !judge.budget.spend(moved) {
            return false;
        }
        judge.excess[winner.as_usize()] += count;
        judge.excess[loser.as_usize()] -= count;
        let slot_count = self.slot_count();
        let steps = if shift.is_forward { passed.len() } else { slot_count - passed.len() };
        occupied.set(self.slots[place], false);
        self.slots[place] = (self.slots[place] + steps) % slot_count;
        occupied.set(self.slots[place], true);
        true
    }

    /// The slots that change hands when a token goes to the next free one. None when its neighbour comes before.
    fn slots_to_next_free(&self, shift: Shift, occupied: &Occupied) -> Option<SmallVec<[usize; 8]>> {
        let slot_count = self.slot_count();
        let slot = self.slots[shift.place];
        let (room, step) = match shift.is_forward {
            true => (self.length(self.after(shift.place)), 1),
            false => (self.length(shift.place), slot_count - 1),
        };
        let count = (1..room).find(|count| !occupied.has((slot + count * step) % slot_count))?;
        // Forward, its own slot stays with it; back, it goes first.
        let first = if shift.is_forward { 1 } else { 0 };
        Some((first..first + count).map(|count| (slot + count * step) % slot_count).collect())
    }

    /// Is the ring as even as promised?
    pub(super) fn is_even(&self) -> bool {
        self.ratio(&self.load().excess) <= RATIO_PROMISED
    }

    /// How many times as full the fullest member is as the emptiest.
    fn ratio(&self, excess: &[f64]) -> f64 {
        let fullness =
            self.members.iter().map(|&member| 1.0 + excess[member.as_usize()] / self.target(member));
        let (least, most) =
            fullness.fold((f64::MAX, 0.0f64), |(least, most), full| (least.min(full), most.max(full)));
        most / least
    }
}
