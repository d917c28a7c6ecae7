//! Placement against tables worked out by hand from Cassandra 5.0's rules, and against those rules said in
//! another way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use ring::{Grid, GroupIndex, Node, NodeIndex, Placement, SetIndex, Strategy as Replication, Topology};
use types::Token;
use uuid::Uuid;

fn node(id: u128, site: (&str, &str), slots: &[usize]) -> Node {
    let tokens = slots.iter().map(|&slot| Grid::COARSEST.last_token(slot)).collect();
    Node {
        host_id: Uuid::from_u128(id),
        data_center: site.0.into(),
        rack: site.1.into(),
        num_tokens: 16,
        tokens,
    }
}

/// Two data centres with two uneven racks each. Along the ring: A B D E C F A G B E.
fn mixed() -> Arc<Topology> {
    let nodes = vec![
        node(0xA, ("dc1", "r1"), &[100, 700]),
        node(0xB, ("dc1", "r1"), &[200, 900]),
        node(0xC, ("dc1", "r2"), &[500]),
        node(0xD, ("dc2", "r1"), &[300]),
        node(0xE, ("dc2", "r2"), &[400, 1_000]),
        node(0xF, ("dc2", "r2"), &[600]),
        node(0x10, ("dc2", "r2"), &[800]),
    ];
    Arc::new(Topology::new(Grid::COARSEST, nodes).expect("a ring"))
}

fn factors(of: &[(&str, u32)]) -> Replication {
    Replication::NetworkTopology {
        factors: of.iter().map(|&(center, factor)| (center.into(), factor)).collect(),
    }
}

fn placed(topology: &Arc<Topology>, replication: &Replication) -> Placement {
    Placement::new(topology.clone(), replication, NodeIndex(0))
}

/// Replicas by the letters of `mixed`.
fn letters(replicas: &[NodeIndex]) -> String {
    replicas.iter().map(|node| char::from(b'A' + node.0 as u8)).collect()
}

/// Compares the replicas of the middle of each slot with a table.
fn check(replication: &Replication, expected: &[(usize, &str)]) {
    let placement = placed(&mixed(), replication);
    for &(slot, replicas) in expected {
        let token = Token(Grid::COARSEST.last_token(slot).0 - (1 << 51));
        assert_eq!(letters(placement.replicas_of(token)), replicas, "{replication:?} in slot {slot}");
    }
}

#[test]
fn racks_come_first_and_repeats_as_far_as_racks_are_missing() {
    // dc1 has a rack for each of its two replicas: B after A, or A after B, is passed over. dc2 has two racks for
    // three replicas: one may repeat a rack, the first that comes.
    check(
        &factors(&[("dc1", 2), ("dc2", 3)]),
        &[
            (50, "ADECF"),
            (100, "ADECF"),
            (101, "BDECF"),
            (250, "DECFA"),
            (350, "ECFAD"), // G would repeat r2 once more: D, in its own rack, is waited for
            (450, "CFAGD"),
            (550, "FAGDC"),
            (650, "AGEDC"),
            (750, "GBEDC"),
            (850, "BEDCF"),
            (950, "EADCF"),
            (1_000, "EADCF"),
            (1_001, "ADECF"),
            (4_095, "ADECF"),
        ],
    );
}

#[test]
fn a_data_centre_with_fewer_nodes_than_replicas_takes_all_of_them() {
    check(&factors(&[("dc1", 5), ("dc2", 1)]), &[(50, "ABDC"), (350, "ECAB"), (550, "FABC"), (850, "BEAC")]);
}

#[test]
fn a_data_centre_without_a_factor_or_without_nodes_has_no_replica() {
    check(&factors(&[("dc1", 2), ("dc3", 3)]), &[(50, "AC"), (150, "BC"), (250, "CA"), (850, "BC")]);
    check(&factors(&[("dc2", 2), ("dc1", 0)]), &[(50, "DE"), (350, "ED"), (450, "FD"), (650, "GD")]);
    check(&factors(&[("dc3", 3)]), &[(50, ""), (4_095, "")]);
}

#[test]
fn simple_strategy_takes_the_next_nodes_wherever_they_stand() {
    let simple = |factor| Replication::Simple { factor };
    check(&simple(1), &[(50, "A"), (100, "A"), (101, "B"), (1_001, "A")]);
    check(&simple(3), &[(50, "ABD"), (250, "DEC"), (550, "FAG"), (650, "AGB"), (850, "BEA"), (950, "EAB")]);
    check(&simple(9), &[(50, "ABDECFG"), (850, "BEADCFG")]);
    check(&simple(0), &[(50, "")]);
}

#[test]
fn a_local_keyspace_is_where_one_asks() {
    let topology = mixed();
    let placement = Placement::new(topology.clone(), &Replication::Local, NodeIndex(2));
    for token in [Token::MIN, Token(0), Token::MAX] {
        assert_eq!(placement.replicas_of(token), [NodeIndex(2)]);
    }
    assert_eq!(placement.ownership(), [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn equal_sets_are_one_and_orders_of_the_same_nodes_are_one_group() {
    let placement = placed(&mixed(), &factors(&[("dc1", 2), ("dc2", 3)]));
    let set = |slot| placement.set_of(Grid::COARSEST.last_token(slot));
    assert_eq!(set(50), set(2_000));
    assert_ne!(set(50), set(250));
    let group = |slot| placement.group_of(set(slot));
    // ADECF, DECFA, ECFAD and EADCF are the same nodes.
    assert_eq!([group(250), group(350), group(950)], [group(50); 3]);
    assert_ne!(group(150), group(50));
    assert_eq!(placement.set_count(), 10);
}

#[test]
fn ranges_end_with_the_tokens_and_the_first_goes_around() {
    let placement = placed(&mixed(), &Replication::Simple { factor: 2 });
    let ranges: Vec<_> = placement.ranges().collect();
    assert_eq!(ranges.len(), 10);
    let (first, set) = ranges[0];
    let last_token = |slot| Grid::COARSEST.last_token(slot);
    assert_eq!((first.start, first.end), (last_token(1_000), last_token(100)));
    assert_eq!(letters(placement.replicas(set)), "AB");
    for token in [Token::MIN, Token(last_token(1_000).0 + 1), last_token(100), Token::MAX] {
        assert!(first.contains(token), "{token:?}");
    }
    assert!(!first.contains(last_token(1_000)) && !first.contains(Token(last_token(100).0 + 1)));
    let (second, _) = ranges[1];
    assert!(
        second.contains(last_token(200)) && !second.contains(second.start) && !second.contains(Token::MIN)
    );
}

#[test]
fn ownership_counts_what_each_node_holds() {
    let placement = placed(&mixed(), &Replication::Simple { factor: 1 });
    // A owns what wraps, and (600, 700]; the others have 100 slots for each of their tokens.
    assert_eq!(placement.slots_by_node(), [3_296, 200, 100, 100, 200, 100, 100]);
    let twice = placed(&mixed(), &Replication::Simple { factor: 2 });
    assert!((twice.ownership().iter().sum::<f64>() - 2.0).abs() < 1e-12);
}

#[test]
fn a_ring_of_one_node_is_a_table_of_one_entry() {
    let tokens: Vec<usize> = (0..16).map(|token| token * 256 + 255).collect();
    let topology = Topology::new(Grid::COARSEST, vec![node(1, ("dc1", "r1"), &tokens)]).expect("a ring");
    let placement = placed(&Arc::new(topology), &Replication::Simple { factor: 3 });
    for token in [Token::MIN, Token(-1), Token(0), Token::MAX] {
        assert_eq!(
            (placement.set_of(token), placement.replicas_of(token)),
            (SetIndex(0), &[NodeIndex(0)][..])
        );
    }
    assert_eq!(placement.group_of(SetIndex(0)), GroupIndex(0));
    assert_eq!(placement.ownership(), [1.0]);
    assert_eq!(placement.ranges().count(), 16);
    assert!(placement.memory_bytes() < 128, "{}", placement.memory_bytes());
}

#[test]
fn a_large_ring_takes_little_memory() {
    let grid = Grid::new(13).expect("a grid");
    let nodes = (0..285).map(|index: usize| {
        // Odd multiples of a number without a common divisor are all different: a scattered ring.
        let slots = (0..16).map(|vnode| (index * 16 + vnode) * 4_097 % grid.slot_count());
        let tokens = slots.map(|slot| grid.last_token(slot)).collect();
        let rack = format!("r{}", index % 5);
        Node {
            host_id: Uuid::from_u128(index as u128),
            data_center: "dc1".into(),
            rack,
            num_tokens: 16,
            tokens,
        }
    });
    let topology = Arc::new(Topology::new(grid, nodes.collect()).expect("a ring"));
    let placement = placed(&topology, &factors(&[("dc1", 3)]));
    assert_eq!(topology.tokens().len(), 4_560);
    assert!(placement.memory_bytes() < 72 << 10, "{} bytes", placement.memory_bytes());
}

/// Rings of up to two data centres with up to four racks each, uneven as they come.
fn topologies() -> impl Strategy<Value = Arc<Topology>> {
    let site = (0usize..2, 0usize..4, 1usize..5);
    (proptest::collection::vec(site, 1..12), any::<u64>()).prop_map(|(sites, seed)| {
        let mut slots: BTreeSet<usize> = BTreeSet::new();
        let mut state = seed;
        let nodes = sites.into_iter().zip(1u128..).map(|((center, rack, token_count), id)| {
            let mut own = Vec::new();
            while own.len() < token_count {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let slot = (state >> 52) as usize;
                if slots.insert(slot) {
                    own.push(slot);
                }
            }
            node(id, (["dc1", "dc2"][center], ["r1", "r2", "r3", "r4"][rack]), &own)
        });
        Arc::new(Topology::new(Grid::COARSEST, nodes.collect()).expect("a ring"))
    })
}

/// Cassandra's rule said the other way: for each data centre alone, a node is passed over when the places that
/// are left must all go to racks that were not met yet.
fn replicas_by_places(
    topology: &Topology,
    factors: &BTreeMap<String, u32>,
    token: Token,
) -> BTreeSet<NodeIndex> {
    let start = topology.tokens().partition_point(|&end| end < token);
    let mut walk = topology.owners().to_vec();
    walk.rotate_left(start % topology.owners().len());
    let mut all = BTreeSet::new();
    for (center, &factor) in factors {
        let in_center = |node: NodeIndex| topology.node(node).data_center == *center;
        let rack = |node: NodeIndex| topology.node(node).rack.clone();
        let mut unmet: BTreeSet<String> =
            walk.iter().filter(|&&node| in_center(node)).map(|&node| rack(node)).collect();
        let mut taken = BTreeSet::new();
        for &node in walk.iter().filter(|&&node| in_center(node)) {
            let left = factor as usize - taken.len();
            if left > 0 && !taken.contains(&node) && (unmet.contains(&rack(node)) || left > unmet.len()) {
                unmet.remove(&rack(node));
                taken.insert(node);
            }
        }
        all.extend(taken);
    }
    all
}

proptest! {
    #[test]
    fn the_table_agrees_with_the_walk(topology in topologies(), one in 0u32..6, two in 0u32..6, tokens in
        proptest::collection::vec(any::<i64>(), 8))
    {
        let factors = BTreeMap::from([("dc1".to_owned(), one), ("dc2".to_owned(), two)]);
        let placement = placed(&topology, &Replication::NetworkTopology { factors: factors.clone() });
        for token in tokens.into_iter().map(Token).chain(topology.tokens().iter().copied()) {
            let replicas = placement.replicas_of(token);
            let set: BTreeSet<NodeIndex> = replicas.iter().copied().collect();
            prop_assert_eq!(set.len(), replicas.len(), "no node twice");
            prop_assert_eq!(set, replicas_by_places(&topology, &factors, token));
            // They stand in the order of the walk.
            let start = topology.tokens().partition_point(|&end| end < token);
            let walk: Vec<_> = topology.owners().iter().cycle().skip(start).take(topology.owners().len()).collect();
            let met: Vec<_> = replicas.iter().map(|node| walk.iter().position(|&owner| owner == node)).collect();
            prop_assert!(met.is_sorted(), "{met:?}");
        }
    }

    #[test]
    fn ranges_cover_the_ring_once(topology in topologies(), factor in 0u32..5, token in any::<i64>()) {
        let placement = placed(&topology, &Replication::Simple { factor });
        let holding: Vec<_> = placement.ranges().filter(|(range, _)| range.contains(Token(token))).collect();
        prop_assert_eq!(holding.len(), 1);
        prop_assert_eq!(holding[0].1, placement.set_of(Token(token)));
        let nodes = topology.nodes().len() as u32;
        let slots: u32 = placement.slots_by_node().iter().sum();
        prop_assert_eq!(slots, factor.min(nodes) * 4_096);
    }

    #[test]
    fn equal_groups_are_equal_nodes(topology in topologies(), factor in 0u32..5) {
        let placement = placed(&topology, &factors(&[("dc1", factor), ("dc2", factor)]));
        let sorted = |set| BTreeSet::from_iter(placement.replicas(SetIndex(set)));
        let sets: Vec<u16> = (0..placement.set_count() as u16).collect();
        for (&one, &other) in sets.iter().flat_map(|one| sets.iter().map(move |other| (one, other))) {
            let is_one_group = placement.group_of(SetIndex(one)) == placement.group_of(SetIndex(other));
            prop_assert_eq!(sorted(one) == sorted(other), is_one_group);
            prop_assert_eq!(placement.replicas(SetIndex(one)) == placement.replicas(SetIndex(other)), one == other);
        }
    }
}

#[test]
fn a_group_ends_before_the_first_vnode_that_has_other_nodes() {
    for replication in [Replication::Simple { factor: 2 }, factors(&[("dc1", 3), ("dc2", 3)])] {
        let placement = placed(&mixed(), &replication);
        let group = |slot: usize| placement.group_of(placement.set_of(Grid::COARSEST.last_token(slot)));
        let slot_count = Grid::COARSEST.slot_count();
        for first in (0..slot_count).step_by(50) {
            let other = (first..slot_count).find(|slot| group(*slot) != group(first));
            let end = Grid::COARSEST.last_token(other.unwrap_or(slot_count) - 1);
            let first = Grid::COARSEST.last_token(first);
            assert_eq!(placement.end_of_group(first, Token::MAX), end, "{replication:?} from {first:?}");
            let near = Token(first.0.saturating_add(3)).min(end);
            assert_eq!(placement.end_of_group(first, near), near);
        }
    }
}
