//! How much each node should hold.

use std::collections::BTreeMap;

use crate::NodeIndex;

/// How many slots each node should hold, by index; 0 for those that are no members.
///
/// Shares are in proportion to weights, as far as they can be. No node can hold more than everything. Where there are
/// more racks than replicas, no rack can either; where there are fewer, each holds everything at least once,
/// and only what is left is shared out.
pub(super) fn targets(
    members: &[NodeIndex],
    racks: &[usize],
    weights: &[u16],
    factor: usize,
    slot_count: usize,
) -> Vec<f64> {
    let slots = slot_count as f64;
    let factor = factor.min(members.len());
    let mut by_rack: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for index in members.iter().map(|member| member.as_usize()) {
        by_rack.entry(racks[index]).or_default().push(index);
    }
    let rack_count = by_rack.len();
    let rack = |nodes: &Vec<usize>| Part {
        weight: nodes.iter().map(|&index| f64::from(weights[index])).sum(),
        least: if rack_count <= factor { slots } else { 0.0 },
        most: slots * nodes.len().min((factor + 1).saturating_sub(rack_count).max(1)) as f64,
    };
    let rack_shares = shares(&by_rack.values().map(rack).collect::<Vec<_>>(), slots * factor as f64);
    let mut targets = vec![0.0; racks.len()];
    for (nodes, rack_share) in by_rack.values().zip(rack_shares) {
        let node = |&index: &usize| Part { weight: f64::from(weights[index]), least: 0.0, most: slots };
        let node_shares = shares(&nodes.iter().map(node).collect::<Vec<_>>(), rack_share);
        for (&index, share) in nodes.iter().zip(node_shares) {
            targets[index] = share;
        }
    }
    targets
}

/// Something that gets a share within bounds.
struct Part {
    weight: f64,
    least: f64,
    most: f64,
}

/// How often the level is halved: to the last bit of what matters.
const HALVINGS: usize = 80;

/// Shares that sum up to `total`: everyone gets its weight times a common level, within its bounds. All nodes must
/// come to the same numbers; sums, products and quotients of floats are the same everywhere.
fn shares(parts: &[Part], total: f64) -> Vec<f64> {
    let at = |level: f64| parts.iter().map(move |part| (part.weight * level).clamp(part.least, part.most));
    let (mut low, mut high) = (0.0, total);
    for _ in 0..HALVINGS {
        let level = (low + high) / 2.0;
        if at(level).sum::<f64>() < total { low = level } else { high = level }
    }
    at(high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(racks: &[usize], weights: &[u16], factor: usize, expected: &[f64]) {
        let members: Vec<NodeIndex> = (0..racks.len()).map(|index| NodeIndex(index as u16)).collect();
        let targets = targets(&members, racks, weights, factor, 1_000);
        let is_close = targets.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-6);
        assert!(is_close && targets.len() == expected.len(), "{targets:?} instead of {expected:?}");
    }

    #[test]
    fn shares_are_in_proportion_to_weights() {
        check(&[0, 0, 0, 0], &[16, 16, 32, 16], 1, &[200.0, 200.0, 400.0, 200.0]);
        check(&[0, 0, 0, 0], &[16, 16, 16, 16], 3, &[750.0; 4]);
    }

    #[test]
    fn a_node_holds_everything_once_at_most() {
        check(&[0, 0, 0, 0], &[16, 16, 16, 160], 3, &[2_000.0 / 3.0, 2_000.0 / 3.0, 2_000.0 / 3.0, 1_000.0]);
        check(&[0, 0], &[16, 32], 3, &[1_000.0, 1_000.0]);
    }

    #[test]
    fn racks_bound_what_their_nodes_can_hold() {
        // Four racks, three replicas: the rack of five is full, and the others share the rest.
        let third = 2_000.0 / 3.0;
        check(
            &[0, 1, 2, 3, 3, 3, 3, 3],
            &[16; 8],
            3,
            &[third, third, third, 200.0, 200.0, 200.0, 200.0, 200.0],
        );
        // Two racks, three replicas: the single node of its rack has everything once, the others the rest.
        check(&[0, 1, 1, 1, 1], &[16; 5], 3, &[1_000.0, 500.0, 500.0, 500.0, 500.0]);
    }
}
