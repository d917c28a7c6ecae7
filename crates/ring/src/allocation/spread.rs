//! Many nodes are founded together: tokens of each rack at equal distances, the nodes in turn.

use std::collections::BTreeMap;

use super::Occupied;
use super::draft::Draft;
use crate::NodeIndex;

/// In how many orders nodes follow each other along the ring. Each gives a node other neighbours.
const ORDER_COUNT: usize = 4;

impl Draft {
    /// Gives all members their tokens.
    pub(super) fn spread(&mut self, occupied: &mut Occupied) {
        let mut tokens: Vec<(usize, NodeIndex)> = Vec::new();
        for members in self.members_by_rack() {
            let lane = self.lanes.of_nodes[members[0].as_usize()];
            let owners = self.in_turn(&members);
            let part_count = owners.len() * self.lanes.count;
            let slot = |place: usize| (place * self.lanes.count + lane) * self.slot_count() / part_count;
            tokens.extend(owners.into_iter().enumerate().map(|(place, owner)| (slot(place), owner)));
        }
        tokens.sort();
        for (wanted, owner) in tokens {
            let mut slots = (wanted..self.slot_count()).chain(0..wanted);
            let slot = slots.find(|&slot| !occupied.has(slot)).expect("there are more slots than tokens");
            let place = self.slots.partition_point(|&before| before < slot);
            self.insert(place, slot, owner, occupied);
        }
        self.part_neighbours();
    }

    /// Members that take turns with each other.
    fn members_by_rack(&self) -> Vec<Vec<NodeIndex>> {
        let mut by_rack: BTreeMap<usize, Vec<NodeIndex>> = BTreeMap::new();
        for &member in &self.members {
            let rack = if self.factor == 1 { 0 } else { self.lanes.of_nodes[member.as_usize()] };
            by_rack.entry(rack).or_default().push(member);
        }
        by_rack.into_values().collect()
    }

    /// Owners of the tokens of a rack along the ring: each as often as its weight says, at equal distances.
    fn in_turn(&self, members: &[NodeIndex]) -> Vec<NodeIndex> {
        let count = members.len();
        let multipliers: Vec<usize> =
            (1..=count).filter(|&number| greatest_divisor(number, count) == 1).collect();
        let mut tokens: Vec<(usize, usize, NodeIndex)> = Vec::new();
        for (nth, &member) in members.iter().enumerate() {
            let weight = usize::from(self.weights[member.as_usize()]);
            tokens.extend((0..weight).map(|token| {
                let order = token * ORDER_COUNT / weight;
                let rank = nth * multipliers[order * multipliers.len() / ORDER_COUNT] % count;
                (token * count + rank, weight, member)
            }));
        }
        // By position along the ring: the first number divided by the second.
        tokens.sort_by_key(|&(.., member)| member);
        tokens.sort_by(|one, other| (one.0 * other.1).cmp(&(other.0 * one.1)));
        tokens.into_iter().map(|(.., member)| member).collect()
    }

    /// Exchanges owners where a node would follow itself within one set of replicas, as it may where orders change.
    fn part_neighbours(&mut self) {
        let count = self.owners.len();
        for place in 0..count {
            if !self.follows_itself(place) {
                continue;
            }
            for other in (1..count).map(|away| (place + away) % count) {
                let is_of_rack = self.lane(place) == self.lane(other);
                if !is_of_rack || self.owners[place] == self.owners[other] {
                    continue;
                }
                self.owners.swap(place, other);
                if !self.follows_itself(place) && !self.follows_itself(other) {
                    break;
                }
                self.owners.swap(place, other);
            }
        }
    }

    fn lane(&self, place: usize) -> usize {
        self.lanes.of_nodes[self.owners[place].as_usize()]
    }

    /// Has one of the nearest tokens the same owner?
    fn follows_itself(&self, place: usize) -> bool {
        let count = self.owners.len();
        let reach = (self.factor as usize).min(count) - 1;
        let neighbours =
            (1..=reach).flat_map(|away| [(place + away) % count, (place + count - away) % count]);
        neighbours.into_iter().any(|other| self.owners[other] == self.owners[place])
    }
}

fn greatest_divisor(one: usize, other: usize) -> usize {
    if other == 0 { one } else { greatest_divisor(other, one % other) }
}
