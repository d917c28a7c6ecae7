//! What may be true of each key: the model the server is compared with.

use std::collections::HashMap;
use std::time::Instant;

/// A thing with a version: a row, or a batch's rows in several partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    Row { worker: u32, key: u32 },
    Batch { worker: u32, id: u32 },
}

/// A version, or nothing.
pub(super) type State = Option<u64>;

/// One write as its worker saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) key: Key,
    pub(super) state: State,
    /// When it was acknowledged; `None` when the connection broke first.
    pub(super) acknowledged: Option<Instant>,
}

/// What is known of all keys.
#[derive(Default)]
pub(super) struct Ledger {
    /// Writes since the last look, in the order their worker made them.
    recent: HashMap<Key, Vec<Write>>,
    /// What the last look may find; a key that is not here is absent.
    acceptable: HashMap<Key, Vec<State>>,
    version_max: u64,
}

impl Ledger {
    /// Adds what a worker did. Workers have keys of their own, so that each key has one order.
    pub(super) fn add(&mut self, writes: Vec<Write>) {
        for write in writes {
            self.version_max = self.version_max.max(write.state.unwrap_or(0));
            self.recent.entry(write.key).or_default().push(write);
        }
    }

    /// After a kill: the last write that must have lasted and all after it are possible.
    pub(super) fn settle(&mut self, durable_before: Option<Instant>) {
        for (key, writes) in self.recent.drain() {
            let lasted = |write: &Write| {
                write.acknowledged.is_some_and(|at| durable_before.is_some_and(|limit| at < limit))
            };
            let states = self.acceptable.entry(key).or_insert_with(|| vec![None]);
            let first = writes.iter().rposition(lasted);
            if first.is_some() {
                states.clear();
            }
            states.extend(writes[first.unwrap_or(0)..].iter().map(|write| write.state));
        }
    }

    /// What may be found under a key.
    pub(super) fn acceptable(&self, key: &Key) -> &[State] {
        self.acceptable.get(key).map_or(&[None], Vec::as_slice)
    }

    /// From now on only what was found is possible.
    pub(super) fn observe(&mut self, key: Key, state: State) {
        self.acceptable.insert(key, vec![state]);
    }

    /// All keys that were ever written.
    pub(super) fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.acceptable.keys().copied().collect();
        keys.sort();
        keys
    }

    pub(super) fn key_count(&self) -> usize {
        self.acceptable.len()
    }

    /// Versions of the next round begin after all of earlier ones.
    pub(super) fn versions(&self) -> u64 {
        self.version_max + 1
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KEY: Key = Key::Row { worker: 1, key: 2 };

    #[track_caller]
    fn check(acknowledged: &[Option<u64>], durable_before: u64, expected: &[State]) {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut ledger = Ledger::default();
        let writes = acknowledged.iter().enumerate().map(|(index, seconds)| Write {
            key: KEY,
            state: Some(index as u64 + 1),
            acknowledged: seconds.map(at),
        });
        ledger.add(writes.collect());
        ledger.settle(Some(at(durable_before)));
        assert_eq!(ledger.acceptable(&KEY), expected);
    }

    #[test]
    fn the_last_durable_write_and_all_after_it_are_possible() {
        check(&[Some(1), Some(2), None], 100, &[Some(2), Some(3)]);
        check(&[Some(1), Some(2), Some(3)], 100, &[Some(3)]);
        check(&[None], 100, &[None, Some(1)]);
        check(&[Some(1), Some(5), Some(9)], 4, &[Some(1), Some(2), Some(3)]);
    }
}
