//! What another token would do to the load.

use smallvec::SmallVec;

use super::draft::{Draft, Load};
use crate::NodeIndex;

/// A change of one token.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// A token of this node divides a vnode: it takes the front part.
    Insert(NodeIndex),
    /// A vnode's token goes to this node.
    Replace(NodeIndex),
}

/// Who holds more or less after a change. How much may depend on where a vnode is divided.
pub(super) struct Effect {
    parts: SmallVec<[Part; 8]>,
}

struct Part {
    node: NodeIndex,
    /// Slots of vnodes before: they come whatever the length of the front part.
    fixed: f64,
    /// Slots for each slot of the front part.
    per_slot: f64,
}

impl Effect {
    /// The effect of a change at a place. Vnodes before it change too, as far back as their walks come here.
    pub(super) fn of(draft: &Draft, load: &Load, place: usize, change: Change) -> Self {
        let mut effect = Effect { parts: SmallVec::new() };
        let mut replicas = Vec::new();
        draft.rules.walk_along(changed(draft, place, place, change), &mut replicas);
        effect.compare(&load.sets[place], &replicas, |part, sign| part.per_slot += sign);
        let mut start = place;
        for _ in 1..draft.owners.len() {
            start = draft.before(start);
            draft.rules.walk_along(changed(draft, start, place, change), &mut replicas);
            if replicas == load.sets[start] {
                break;
            }
            let length = draft.length(start) as f64;
            effect.compare(&load.sets[start], &replicas, |part, sign| part.fixed += sign * length);
        }
        effect
    }

    /// Notes who comes in and who goes out.
    fn compare(&mut self, old: &[NodeIndex], new: &[NodeIndex], note: impl Fn(&mut Part, f64)) {
        for &node in new.iter().filter(|node| !old.contains(node)) {
            note(self.part(node), 1.0);
        }
        for &node in old.iter().filter(|node| !new.contains(node)) {
            note(self.part(node), -1.0);
        }
    }

    fn part(&mut self, node: NodeIndex) -> &mut Part {
        let index = self.parts.iter().position(|part| part.node == node).unwrap_or_else(|| {
            self.parts.push(Part { node, fixed: 0.0, per_slot: 0.0 });
            self.parts.len() - 1
        });
        &mut self.parts[index]
    }

    /// The length of the front part at which the cost is least. None when it makes no difference.
    pub(super) fn best_length(&self, draft: &Draft, load: &Load) -> Option<f64> {
        let (mut slope, mut curve) = (0.0, 0.0);
        for part in &self.parts {
            let target = draft.target(part.node);
            slope += part.per_slot * (load.excess_of(part.node) + part.fixed) / target;
            curve += part.per_slot * part.per_slot / target;
        }
        (curve > 0.0).then(|| -slope / curve)
    }

    /// What the change costs: how much the sum of all nodes' excess, squared in parts of what they should
    /// hold, grows by it.
    pub(super) fn cost(&self, length: usize, draft: &Draft, load: &Load) -> f64 {
        let cost = |part: &Part| {
            let excess = load.excess_of(part.node);
            let after = excess + part.fixed + part.per_slot * length as f64;
            (after * after - excess * excess) / draft.target(part.node)
        };
        self.parts.iter().map(cost).sum()
    }
}

/// The owners that a walk from `start` meets after a change at `place`.
fn changed(draft: &Draft, start: usize, place: usize, change: Change) -> impl Iterator<Item = NodeIndex> {
    let (owner, skipped) = match change {
        Change::Insert(owner) => (owner, 0),
        Change::Replace(owner) => (owner, 1),
    };
    let owners = &draft.owners;
    // From `start` to the changed token, and from there to the end of the turn.
    let (front, rest) = match start <= place {
        true => ([&owners[start..place], &[]], [&owners[place + skipped..], &owners[..start]]),
        false => ([&owners[start..], &owners[..place]], [&owners[place + skipped..start], &[]]),
    };
    front.into_iter().flatten().copied().chain([owner]).chain(rest.into_iter().flatten().copied())
}
