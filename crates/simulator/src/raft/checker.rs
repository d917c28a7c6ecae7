//! What was applied where, what clients were told, and whether the two agree.

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::Violation;

/// A client and the number of its command.
pub(super) type Name = (u64, u64);

/// Knows all nodes, in all their lives.
#[derive(Default)]
pub(super) struct Checker {
    /// By index: the hash of the history up to it, and the command there.
    applied: BTreeMap<u64, (u64, Name)>,
    /// Where a command was applied.
    places: BTreeMap<Name, u64>,
    acknowledged: BTreeSet<Name>,
    /// Its client was told that nothing was done.
    refused: BTreeSet<Name>,
    violation: Option<String>,
}

impl Checker {
    /// What was found wrong first.
    pub(super) fn violation(&self) -> Option<Violation> {
        self.violation.clone().map(Violation::new)
    }

    pub(super) fn wrong(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// Some node has applied a command.
    pub(super) fn applied(&mut self, node: usize, index: u64, history: u64, name: Name) {
        let first = *self.applied.entry(index).or_insert((history, name));
        if first != (history, name) {
            self.wrong(format!("node {node} applied {name:?} at {index}, another one {:?}", first.1));
        }
        let place = *self.places.entry(name).or_insert(index);
        if place != index {
            self.wrong(format!("{name:?} was applied at {place} and at {index}"));
        }
        if self.refused.contains(&name) {
            self.wrong(format!("{name:?} was applied, and its client told that it was not done"));
        }
    }

    /// Some node took a snapshot for its state.
    pub(super) fn restored(&mut self, node: usize, index: u64, history: u64) {
        let known = self.applied.get(&index).map_or(0, |(history, _)| *history);
        if known != history {
            self.wrong(format!("node {node} took a snapshot of another history, up to {index}"));
        }
    }

    /// A client was told that its command was applied there.
    pub(super) fn acknowledged(&mut self, name: Name, index: u64) {
        if self.applied.get(&index).is_none_or(|(_, applied)| *applied != name) {
            self.wrong(format!("{name:?} was acknowledged, and is not what was applied at {index}"));
        }
        self.acknowledged.insert(name);
    }

    /// A client was told that nothing was done.
    pub(super) fn refused(&mut self, name: Name) {
        if self.places.contains_key(&name) {
            self.wrong(format!("{name:?} was applied, and its client told that it was not done"));
        }
        self.refused.insert(name);
    }

    /// The greatest number of a client that was acknowledged.
    pub(super) fn last_acknowledged(&self, client: u64) -> u64 {
        let of_client = self.acknowledged.range((client, 0)..=(client, u64::MAX));
        of_client.last().map_or(0, |(_, number)| *number)
    }
}
