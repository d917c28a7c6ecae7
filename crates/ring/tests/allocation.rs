//! What the choice of tokens reaches: balance, data moved, tokens for each node, neighbours.
//!
//! Everything is judged from outside, by the placements that come of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use ring::allocation::{FACTOR, Newcomer, found, join, leave};
use ring::{Grid, Node, NodeIndex, Placement, RingError, SetIndex, Strategy as Replication, Topology};
use uuid::Uuid;

/// A node by its number. Host ids are scattered, as real ones are.
fn newcomer(number: u128, data_center: &str, rack: usize) -> Newcomer {
    Newcomer {
        host_id: Uuid::from_u128(number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)),
        data_center: data_center.to_owned(),
        rack: format!("r{rack}"),
        num_tokens: Newcomer::NUM_TOKENS,
    }
}

/// So many nodes in each of the data centres, which have so many racks.
fn newcomers(data_centers: &[&str], node_count: usize, rack_count: usize) -> Vec<Newcomer> {
    let nodes = (0..node_count).flat_map(|node| data_centers.iter().map(move |center| (node, center)));
    nodes.zip(1..).map(|((node, center), number)| newcomer(number, center, node % rack_count)).collect()
}

fn placement(topology: &Topology, factor: u32) -> Placement {
    let centers = topology.nodes().iter().map(|node| (node.data_center.clone(), factor)).collect();
    let replication = Replication::NetworkTopology { factors: centers };
    Placement::new(Arc::new(topology.clone()), &replication, NodeIndex(0))
}

/// How many times as much the fullest node of a rack has as the emptiest, by their weights; of the worst rack.
fn imbalance(topology: &Topology, factor: u32) -> f64 {
    let mut racks: BTreeMap<(&str, &str), (f64, f64)> = BTreeMap::new();
    for (node, owned) in topology.nodes().iter().zip(placement(topology, factor).ownership()) {
        let owned = owned / f64::from(node.num_tokens);
        let (least, most) = racks.entry((&node.data_center, &node.rack)).or_insert((owned, owned));
        *least = least.min(owned);
        *most = most.max(owned);
    }
    racks.values().map(|(least, most)| most / least).fold(1.0, f64::max)
}

/// What part of the ring nodes hold that did not before.
fn moved(before: &Topology, after: &Topology, factor: u32) -> f64 {
    let [old, new] = [before, after].map(|topology| placement(topology, factor));
    let grid = before.grid().max(after.grid());
    let mut arrived = 0;
    for token in (0..grid.slot_count()).map(|slot| grid.last_token(slot)) {
        let old: Vec<Uuid> = old.replicas_of(token).iter().map(|&node| before.node(node).host_id).collect();
        let new = new.replicas_of(token).iter().map(|&node| after.node(node).host_id);
        arrived += new.filter(|host_id| !old.contains(host_id)).count();
    }
    arrived as f64 / grid.slot_count() as f64
}

fn owned(topology: &Topology, host_id: Uuid, factor: u32) -> f64 {
    placement(topology, factor).ownership()[topology.index_of(host_id).expect("there").as_usize()]
}

/// With how many others of its data centre each node shares replicas.
fn neighbours(topology: &Topology, factor: u32) -> Vec<usize> {
    let placement = placement(topology, factor);
    let mut neighbours: Vec<BTreeSet<NodeIndex>> = vec![BTreeSet::new(); topology.nodes().len()];
    for set in (0..placement.set_count()).map(|set| placement.replicas(SetIndex(set as u16))) {
        let center = |node: NodeIndex| &topology.node(node).data_center;
        for &node in set {
            let others = set.iter().copied().filter(|&other| other != node && center(other) == center(node));
            neighbours[node.as_usize()].extend(others);
        }
    }
    neighbours.into_iter().map(|others| others.len()).collect()
}

/// Founds rings of three to 32 nodes in each data centre.
fn check_founding(data_centers: &[&str], rack_count: usize, factor: u32, neighbours_max: usize) {
    for node_count in 3..=32 {
        let topology = found(&newcomers(data_centers, node_count, rack_count), factor).expect("a ring");
        let imbalance = imbalance(&topology, factor);
        assert!(imbalance <= 1.02, "{node_count} nodes: {imbalance}");
        assert!(topology.nodes().iter().all(|node| node.tokens.len() == 16), "{node_count} nodes");
        assert_eq!(topology.grid(), Grid::COARSEST);
        let neighbours = neighbours(&topology, factor);
        assert!(
            neighbours.iter().all(|&count| count <= neighbours_max),
            "{node_count} nodes: {neighbours:?}"
        );
    }
}

#[test]
fn nodes_of_one_rack_founded_together_hold_the_same_once() {
    check_founding(&["dc1"], 1, 1, 0);
}

#[test]
fn nodes_of_one_rack_founded_together_hold_the_same_thrice() {
    check_founding(&["dc1"], 1, 3, 18);
}

#[test]
fn nodes_of_three_racks_founded_together_hold_the_same() {
    check_founding(&["dc1"], 3, 3, 18);
}

#[test]
fn nodes_of_two_data_centres_founded_together_hold_the_same() {
    check_founding(&["dc1", "dc2"], 1, 3, 18);
}

/// A change of the ring, as numbers to choose by.
#[derive(Clone, Debug)]
struct Step {
    is_join: bool,
    which: usize,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<bool>(), any::<usize>()).prop_map(|(is_join, which)| Step { is_join, which });
    proptest::collection::vec(step, 16)
}

/// A ring to which nodes come and from which they go.
struct Life {
    rack_count: usize,
    factor: u32,
    topology: Topology,
    /// Of each change that had to move something: how much it moved, in parts of the least.
    moved: Vec<f64>,
    next_number: u128,
}

impl Life {
    fn new(data_centers: &[&str], node_count: usize, rack_count: usize, factor: u32) -> Self {
        let topology = found(&newcomers(data_centers, node_count, rack_count), factor).expect("a ring");
        Life { rack_count, factor, topology, moved: Vec::new(), next_number: 1_000 }
    }

    /// Makes a change in one of the data centres, which stay within three to 32 nodes each.
    fn step(&mut self, step: &Step) {
        let nodes = self.topology.nodes();
        let center = nodes[step.which % nodes.len()].data_center.clone();
        let node_count = nodes.iter().filter(|node| node.data_center == center).count();
        let is_join = node_count <= 3 || (step.is_join && node_count < 32);
        let (after, least) = if is_join { self.joined(&center) } else { self.left(&center, step.which) };
        // Where everybody holds everything, nothing can move or all must.
        if node_count > self.factor as usize {
            self.moved.push(moved(&self.topology, &after, self.factor) / least);
        }
        self.topology = after;
        self.check();
    }

    /// A node joins the emptiest rack.
    fn joined(&mut self, center: &str) -> (Topology, f64) {
        let count = |rack: &usize| {
            let is_there = |node: &&Node| node.data_center == center && node.rack == format!("r{rack}");
            self.topology.nodes().iter().filter(is_there).count()
        };
        let rack = (0..self.rack_count).min_by_key(count).expect("a rack");
        let newcomer = newcomer(self.next_number, center, rack);
        self.next_number += 1;
        let after = join(&self.topology, &newcomer, self.factor).expect("a ring");
        let least = owned(&after, newcomer.host_id, self.factor);
        (after, least)
    }

    /// A node leaves, but not the last one of its rack.
    fn left(&self, center: &str, which: usize) -> (Topology, f64) {
        let nodes: Vec<&Node> =
            self.topology.nodes().iter().filter(|node| node.data_center == center).collect();
        let has_fellow = |node: &Node| nodes.iter().filter(|other| other.rack == node.rack).count() > 1;
        let may_go: Vec<Uuid> =
            nodes.iter().filter(|node| has_fellow(node)).map(|node| node.host_id).collect();
        let leaver = may_go[which % may_go.len()];
        let least = owned(&self.topology, leaver, self.factor);
        (leave(&self.topology, leaver, self.factor).expect("a ring"), least)
    }

    fn check(&self) {
        let imbalance = imbalance(&self.topology, self.factor);
        assert!(imbalance <= 1.05, "{} nodes: {imbalance}", self.topology.nodes().len());
        for node in self.topology.nodes() {
            assert!((16..=32).contains(&node.tokens.len()), "{} tokens", node.tokens.len());
        }
    }
}

/// What a change moves at most, in parts of the least that it must move.
const MOVED_MAX: f64 = 1.25;

/// Steps through a life, and returns what each change has moved.
fn check_life(mut life: Life, steps: &[Step]) -> Vec<f64> {
    for step in steps {
        life.step(step);
    }
    let worst = life.moved.iter().copied().fold(0.0, f64::max);
    assert!(worst <= MOVED_MAX, "{:?}", life.moved);
    life.moved
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn one_replica_stays_balanced(node_count in 3usize..=32, steps in steps()) {
        check_life(Life::new(&["dc1"], node_count, 1, 1), &steps);
    }

    #[test]
    fn three_replicas_in_one_rack_stay_balanced(node_count in 3usize..=32, steps in steps()) {
        check_life(Life::new(&["dc1"], node_count, 1, 3), &steps);
    }

    #[test]
    fn three_replicas_in_three_racks_stay_balanced(node_count in 3usize..=32, steps in steps()) {
        check_life(Life::new(&["dc1"], node_count, 3, 3), &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2))]

    #[test]
    fn two_data_centres_stay_balanced(node_count in 3usize..=32, steps in steps()) {
        check_life(Life::new(&["dc1", "dc2"], node_count, 1, 3), &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the racks, the weights and the factor: there is an answer, it is always the same, and nobody is left
    /// without tokens or has too many.
    #[test]
    fn any_ring_can_change(
        sites in proptest::collection::vec((0usize..2, 0usize..5, 1u16..20), 1..9),
        factor in 0u32..6,
        leavers in proptest::collection::vec(any::<usize>(), 3),
    ) {
        let newcomers: Vec<Newcomer> = sites.iter().zip(1..).map(|(&(center, rack, num_tokens), number)| {
            Newcomer { num_tokens, ..newcomer(number, ["dc1", "dc2"][center], rack) }
        }).collect();
        let (founders, joiners) = newcomers.split_at(newcomers.len().div_ceil(2));
        let run = || -> Result<Topology, RingError> {
            let mut topology = found(founders, factor)?;
            for joiner in joiners {
                topology = join(&topology, joiner, factor)?;
            }
            for leaver in leavers.iter().take(newcomers.len() - 1) {
                let host_id = topology.nodes()[leaver % topology.nodes().len()].host_id;
                topology = leave(&topology, host_id, factor)?;
            }
            Ok(topology)
        };
        let topology = run().expect("a ring");
        for node in topology.nodes() {
            let tokens = node.tokens.len();
            let weight = usize::from(node.num_tokens);
            prop_assert!((1..=weight * 2).contains(&tokens), "{tokens} tokens of {weight}");
        }
        prop_assert_eq!(run().expect("a ring"), topology);
    }
}

#[test]
fn the_mean_change_moves_hardly_more_than_it_must() {
    let mut runner = TestRunner::deterministic();
    let mut moved = Vec::new();
    for _ in 0..8 {
        let (node_count, steps) = (3usize..=32, steps()).new_tree(&mut runner).expect("a life").current();
        for (data_centers, rack_count, factor) in
            [(&["dc1"][..], 1, 3), (&["dc1"], 3, 3), (&["dc1", "dc2"], 1, 3)]
        {
            moved.extend(check_life(Life::new(data_centers, node_count, rack_count, factor), &steps));
        }
    }
    let mean = moved.iter().sum::<f64>() / moved.len() as f64;
    assert!(mean <= 1.05, "{mean}");
}

#[test]
fn a_ring_grows_from_one_node_and_shrinks_to_one() {
    for rack_count in [1, 3] {
        let mut topology = found(&newcomers(&["dc1"], 1, 1), FACTOR).expect("a ring");
        let check = |topology: &Topology| {
            let imbalance = imbalance(topology, FACTOR);
            assert!(imbalance <= 1.05, "{} nodes: {imbalance}", topology.nodes().len());
        };
        for number in 1..12 {
            topology = join(&topology, &newcomer(100 + number as u128, "dc1", number % rack_count), FACTOR)
                .expect("a ring");
            check(&topology);
        }
        while topology.nodes().len() > 1 {
            let which = topology.nodes().len() * 5 % topology.nodes().len();
            topology = leave(&topology, topology.nodes()[which].host_id, FACTOR).expect("a ring");
            check(&topology);
        }
        let [last] = topology.nodes() else { panic!("one is left") };
        assert_eq!(leave(&topology, last.host_id, FACTOR), Err(RingError::NoNodes));
    }
}

#[test]
fn who_has_more_tokens_holds_more() {
    let weights = [8, 16, 32, 16];
    let mut nodes = newcomers(&["dc1"], 16, 1);
    for (node, weight) in nodes.iter_mut().zip(weights.iter().cycle()) {
        node.num_tokens = *weight;
    }
    let founded = found(&nodes, FACTOR).expect("a ring");
    assert!(imbalance(&founded, FACTOR) <= 1.02, "{}", imbalance(&founded, FACTOR));
    let heavy = Newcomer { num_tokens: 48, ..newcomer(99, "dc1", 0) };
    let joined = join(&founded, &heavy, FACTOR).expect("a ring");
    assert!(imbalance(&joined, FACTOR) <= 1.05, "{}", imbalance(&joined, FACTOR));
    let left = leave(&joined, nodes[2].host_id, FACTOR).expect("a ring");
    assert!(imbalance(&left, FACTOR) <= 1.05, "{}", imbalance(&left, FACTOR));
}

#[test]
fn a_data_centre_is_not_touched_by_what_happens_in_another() {
    let founded = found(&newcomers(&["dc1", "dc2"], 6, 1), FACTOR).expect("a ring");
    let of_other = |topology: &Topology| -> Vec<Node> {
        topology.nodes().iter().filter(|node| node.data_center == "dc2").cloned().collect()
    };
    let joined = join(&founded, &newcomer(77, "dc1", 0), FACTOR).expect("a ring");
    assert_eq!(of_other(&joined), of_other(&founded));
    let first_of_third = join(&joined, &newcomer(78, "dc3", 0), FACTOR).expect("a ring");
    assert_eq!(of_other(&first_of_third), of_other(&founded));
    let leaver = newcomer(77, "dc1", 0).host_id;
    assert_eq!(of_other(&leave(&first_of_third, leaver, FACTOR).expect("a ring")), of_other(&founded));
}

#[test]
fn the_order_in_which_nodes_are_named_says_nothing() {
    let mut nodes = newcomers(&["dc1"], 9, 3);
    let one = found(&nodes, FACTOR).expect("a ring");
    nodes.reverse();
    assert_eq!(found(&nodes, FACTOR).as_ref(), Ok(&one));
}

#[test]
fn a_ring_with_many_tokens_gets_a_finer_grid() {
    let mut nodes = newcomers(&["dc1"], 20, 1);
    nodes.iter_mut().for_each(|node| node.num_tokens = 100);
    let topology = found(&nodes, FACTOR).expect("a ring");
    assert_eq!(topology.grid(), Grid::COARSEST, "2,000 tokens have room");
    let more = Newcomer { num_tokens: 100, ..newcomer(99, "dc1", 0) };
    let finer = join(&topology, &more, FACTOR).expect("a ring");
    assert_eq!(finer.grid(), Grid::new(13).expect("a grid"));
    let most = Newcomer { num_tokens: 32_000, ..more };
    assert!(matches!(join(&topology, &most, FACTOR), Err(RingError::TooManyTokens { .. })));
}

#[test]
fn nodes_that_can_not_come_or_go_are_refused() {
    let nodes = newcomers(&["dc1"], 3, 1);
    let topology = found(&nodes, FACTOR).expect("a ring");
    let host_id = nodes[0].host_id;
    assert_eq!(found(&[], FACTOR), Err(RingError::NoNodes));
    assert_eq!(join(&topology, &nodes[0], FACTOR), Err(RingError::NodeTwice { host_id }));
    let stranger = Newcomer { num_tokens: 0, ..newcomer(9, "dc1", 0) };
    let host_id = stranger.host_id;
    assert_eq!(join(&topology, &stranger, FACTOR), Err(RingError::NoTokens { host_id }));
    assert_eq!(leave(&topology, host_id, FACTOR), Err(RingError::UnknownNode { host_id }));
}
