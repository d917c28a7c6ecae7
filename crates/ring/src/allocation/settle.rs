//! Tokens are shifted until the load is even.

use smallvec::SmallVec;
use uuid::Uuid;

use super::Occupied;
use super::draft::Draft;
use crate::replicas::Rules;
use crate::{Grid, NodeIndex, Topology};

/// How many parts of its share a node must have more than another before data is moved for it. When that does not
/// make the ring even enough, the next one is tried.
const BANDS: [f64; 4] = [0.02, 0.01, 0.005, 0.0];
/// Even enough: how many times as much the fullest node has as the emptiest, both in parts of their shares. It
/// is below what is promised (1.05), so that the next change finds some room.
const RATIO_ENOUGH: f64 = 1.04;
/// How often all tokens are looked at. Rings come to rest after some ten times.
const PASSES_MAX: usize = 60;

/// Less than that is rounding.
const LEAST_RELIEF: f64 = 1e-9;

/// Who held what before a change.
pub(super) struct Before {
    sets: Vec<Vec<NodeIndex>>,
    /// The set of each slot; empty when nobody held anything.
    set_of_slot: Vec<u16>,
    gone_slot_count: usize,
}

/// How many slots may be moved for balance alone.
pub(super) struct Budget(Option<i64>);

impl Before {
    /// Nobody held anything: whatever is done moves nothing.
    pub(super) fn nothing() -> Self {
        Before { sets: Vec::new(), set_of_slot: Vec::new(), gone_slot_count: 0 }
    }

    /// What each node held of a data centre. Nodes get the indexes they have now, in `nodes`.
    pub(super) fn of(topology: &Topology, center: &str, nodes: &[Uuid], grid: Grid, factor: u32) -> Self {
        let mut before = Before::nothing();
        let was_there = |index: &NodeIndex| topology.node(*index).data_center == center;
        let tokens = topology.tokens().iter().zip(topology.owners()).filter(|(_, owner)| was_there(owner));
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

    fn held(&self, slot: usize, node: NodeIndex) -> bool {
        self.set_of_slot.get(slot).is_some_and(|&set| self.sets[usize::from(set)].contains(&node))
    }
}

impl Budget {
    pub(super) fn unlimited() -> Self {
        Budget(None)
    }

    /// A fifth of what is moved anyway.
    pub(super) fn beside(slot_count: usize) -> Self {
        Budget(Some(slot_count as i64 / 5))
    }

    fn has(&self, slot_count: i64) -> bool {
        self.0.is_none_or(|left| slot_count <= left)
    }

    fn spend(&mut self, slot_count: i64) {
        if let Some(left) = &mut self.0 {
            *left -= slot_count;
        }
    }
}

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
        let moved = passed.iter().map(|&slot| {
            i64::from(judge.before.held(slot, loser)) - i64::from(judge.before.held(slot, winner))
        });
        let moved: i64 = moved.sum();
        let count = passed.len() as f64;
        let [winners, losers] = [winner, loser].map(|node| judge.excess[node.as_usize()]);
        // Half of it: what the last slot brings is less than what the first one does.
        let relief =
            (losers - count / 2.0) / self.target(loser) - (winners + count / 2.0) / self.target(winner);
        let is_worth_it = relief * count > LEAST_RELIEF + judge.band * moved as f64;
        if !is_worth_it || !judge.budget.has(moved) {
            return false;
        }
        judge.budget.spend(moved);
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

    /// How many times as full the fullest member is as the emptiest.
    fn ratio(&self, excess: &[f64]) -> f64 {
        let fullness =
            self.members.iter().map(|&member| 1.0 + excess[member.as_usize()] / self.target(member));
        let (least, most) =
            fullness.fold((f64::MAX, 0.0f64), |(least, most), full| (least.min(full), most.max(full)));
        most / least
    }
}

/// The rules of one data centre, for nodes by their index in the whole topology.
fn rules_of_center(topology: &Topology, center: &str, factor: u32) -> Rules {
    let factors = [(center.to_owned(), factor)].into();
    Rules::new(topology.nodes(), &crate::Strategy::NetworkTopology { factors })
}
