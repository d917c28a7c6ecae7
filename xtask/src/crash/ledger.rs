//! What may be true of each key: the model the server is compared with.
//!
//! A key is anything that has a version: a row, a batch, and also a table's options or whether a type is
//! there. Each has one writer, so that its writes have one order. What empties many of them at once
//! (a truncation, a dropped table or column) goes on beside their writers: a write that was
//! acknowledged before it was asked for is gone after it, one that was asked for after it was
//! acknowledged is not touched, one that went on at the same time may have come first or last.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// A thing with a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    Row {
        worker: u32,
        key: u32,
    },
    /// A batch's rows in several partitions.
    Batch {
        worker: u32,
        id: u32,
    },
    /// A row of a table that comes and goes.
    SlotRow {
        slot: u32,
        key: u32,
    },
    /// A value in a column that comes and goes.
    Value {
        column: u32,
        key: u32,
    },
    /// A keyspace that comes and goes: 0 while it has no table, else the version its table was made with.
    Slot(u32),
    Column(u32),
    Type(u32),
    /// The options of a table that stays.
    Options(u32),
}

/// What is emptied as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Rows,
    Batches,
    Slot(u32),
    Column(u32),
}

/// A version, or nothing.
pub(super) type State = Option<u64>;

/// One write as its worker saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) key: Key,
    pub(super) state: State,
    pub(super) asked: Instant,
    /// When it was acknowledged; `None` when the connection broke first.
    pub(super) acknowledged: Option<Instant>,
}

/// A place was emptied, or was going to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Emptied {
    pub(super) place: Place,
    pub(super) asked: Instant,
    pub(super) acknowledged: Option<Instant>,
}

/// What is known of all keys.
#[derive(Default)]
pub(super) struct Ledger {
    /// Writes since the last look, in the order their worker made them.
    recent: HashMap<Key, Vec<Write>>,
    emptied: Vec<Emptied>,
    /// What the last look may find; a key that is not here is absent.
    acceptable: HashMap<Key, Vec<State>>,
    /// The same if the place that was being emptied at the kill is empty; keys of that place only.
    acceptable_emptied: HashMap<Key, Vec<State>>,
    /// Batches of which a part may be gone: their table was emptied while they were written.
    partial: HashSet<Key>,
    version_max: u64,
}

/// What a look found under keys that may be as before or as after an emptying that was under way.
#[derive(Default, Debug)]
pub(super) struct Halves {
    /// A key that shows that nothing was emptied.
    pub(super) before: Option<Key>,
    /// One that shows that it was.
    pub(super) after: Option<Key>,
}

impl Key {
    fn place(&self) -> Option<Place> {
        match *self {
            Key::Row { .. } => Some(Place::Rows),
            Key::Batch { .. } => Some(Place::Batches),
            Key::SlotRow { slot, .. } => Some(Place::Slot(slot)),
            Key::Value { column, .. } => Some(Place::Column(column)),
            Key::Slot(_) | Key::Column(_) | Key::Type(_) | Key::Options(_) => None,
        }
    }

    /// Changes of the schema last under every sync mode.
    pub(super) fn is_schema(&self) -> bool {
        self.place().is_none()
    }
}

impl Write {
    fn is_before(&self, emptied: &Emptied) -> bool {
        self.acknowledged.is_some_and(|at| at < emptied.asked)
    }

    fn is_after(&self, emptied: &Emptied) -> bool {
        emptied.acknowledged.is_some_and(|at| at < self.asked)
    }

    fn must_last(&self, durable_before: Option<Instant>) -> bool {
        let limit = |at: Instant| self.key.is_schema() || durable_before.is_some_and(|limit| at < limit);
        self.acknowledged.is_some_and(limit)
    }
}

impl Ledger {
    /// Adds what a worker did.
    pub(super) fn add(&mut self, writes: Vec<Write>, emptied: Vec<Emptied>) {
        for write in writes {
            self.version_max = self.version_max.max(write.state.unwrap_or(0));
            self.recent.entry(write.key).or_default().push(write);
        }
        self.emptied.extend(emptied);
    }

    /// After a kill: says what is possible now.
    pub(super) fn settle(&mut self, durable_before: Option<Instant>) {
        let (recent, emptied) = (std::mem::take(&mut self.recent), std::mem::take(&mut self.emptied));
        self.acceptable_emptied.clear();
        let mut keys: HashSet<Key> = self.acceptable.keys().copied().collect();
        keys.extend(recent.keys());
        for key in keys {
            let writes = recent.get(&key).map_or(&[][..], Vec::as_slice);
            let of_place = |emptied: &&Emptied| Some(emptied.place) == key.place();
            let here: Vec<&Emptied> = emptied.iter().filter(of_place).collect();
            if writes.is_empty() && here.is_empty() {
                continue;
            }
            let known = self.acceptable.remove(&key).unwrap_or_else(|| vec![None]);
            let done = here.iter().rfind(|emptied| emptied.acknowledged.is_some());
            if let Some(under_way) = here.iter().find(|emptied| emptied.acknowledged.is_none()) {
                let states = possible(&known, writes, Some(under_way), durable_before);
                self.acceptable_emptied.insert(key, states);
            }
            self.acceptable.insert(key, possible(&known, writes, done.copied(), durable_before));
            self.settle_partial(key, writes, &here, durable_before);
        }
    }

    /// A batch is whole again when a write that lasts met no emptying.
    fn settle_partial(
        &mut self,
        key: Key,
        writes: &[Write],
        emptied: &[&Emptied],
        durable_before: Option<Instant>,
    ) {
        let meets = |write: &Write| {
            emptied.iter().any(|emptied| !write.is_before(emptied) && !write.is_after(emptied))
        };
        if writes.iter().any(meets) {
            self.partial.insert(key);
        } else if writes.iter().any(|write| write.must_last(durable_before)) {
            self.partial.remove(&key);
        }
    }

    /// What may be found under a key.
    pub(super) fn acceptable(&self, key: &Key) -> Vec<State> {
        let mut states = self.acceptable.get(key).cloned().unwrap_or_else(|| vec![None]);
        states.extend(self.acceptable_emptied.get(key).into_iter().flatten());
        states
    }

    /// Notes what a key says about an emptying that was under way.
    pub(super) fn weigh(&self, key: Key, state: State, halves: &mut Halves) {
        let Some(after) = self.acceptable_emptied.get(&key) else { return };
        let before = self.acceptable.get(&key).is_some_and(|states| states.contains(&state));
        match (before, after.contains(&state)) {
            (true, false) => halves.before = Some(key),
            (false, true) => halves.after = Some(key),
            _ => {}
        }
    }

    /// May a part of a batch be gone?
    pub(super) fn may_be_partial(&self, key: &Key) -> bool {
        self.partial.contains(key)
    }

    /// From now on only what was found is possible.
    pub(super) fn observe(&mut self, key: Key, state: State) {
        self.acceptable.insert(key, vec![state]);
        self.acceptable_emptied.remove(&key);
    }

    /// What the last look found.
    pub(super) fn found(&self, key: &Key) -> State {
        self.acceptable.get(key).and_then(|states| states.first().copied()).flatten()
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

/// The last write that must have lasted and all after it are possible, but for those that were emptied;
/// nothing is possible too, unless that write came after the emptying.
fn possible(
    known: &[State],
    writes: &[Write],
    emptied: Option<&Emptied>,
    durable_before: Option<Instant>,
) -> Vec<State> {
    let first = writes.iter().rposition(|write| write.must_last(durable_before));
    let mut states = match (first, emptied) {
        (None, None) => known.to_vec(),
        (Some(first), Some(emptied)) if !writes[first].is_after(emptied) => vec![None],
        (None, Some(_)) => vec![None],
        (Some(_), _) => Vec::new(),
    };
    let later = &writes[first.unwrap_or(0)..];
    let stays = |write: &&Write| emptied.is_none_or(|emptied| !write.is_before(emptied));
    states.extend(later.iter().filter(stays).map(|write| write.state));
    states
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KEY: Key = Key::Row { worker: 1, key: 2 };

    /// Writes of versions 1, 2, … that are asked for a second before they are acknowledged; emptyings
    /// from a second to another; what is possible if none was under way, and if that was done.
    #[track_caller]
    fn check_emptied(
        acknowledged: &[Option<u64>],
        durable_before: u64,
        emptied: &[(u64, Option<u64>)],
        expected: [&[State]; 2],
    ) -> Ledger {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut ledger = Ledger::default();
        let writes = acknowledged.iter().enumerate().map(|(index, seconds)| Write {
            key: KEY,
            state: Some(index as u64 + 1),
            asked: at(seconds.unwrap_or(50) - 1),
            acknowledged: seconds.map(at),
        });
        let emptied = emptied.iter().map(|&(asked, acknowledged)| Emptied {
            place: Place::Rows,
            asked: at(asked),
            acknowledged: acknowledged.map(at),
        });
        ledger.add(writes.collect(), emptied.collect());
        ledger.settle(Some(at(durable_before)));
        assert_eq!(ledger.acceptable[&KEY], expected[0]);
        assert_eq!(ledger.acceptable_emptied.get(&KEY).map_or(&[][..], Vec::as_slice), expected[1]);
        ledger
    }

    #[track_caller]
    fn check(acknowledged: &[Option<u64>], durable_before: u64, expected: &[State]) {
        check_emptied(acknowledged, durable_before, &[], [expected, &[]]);
    }

    #[test]
    fn the_last_durable_write_and_all_after_it_are_possible() {
        check(&[Some(1), Some(2), None], 100, &[Some(2), Some(3)]);
        check(&[Some(1), Some(2), Some(3)], 100, &[Some(3)]);
        check(&[None], 100, &[None, Some(1)]);
        check(&[Some(1), Some(5), Some(9)], 4, &[Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn what_was_written_before_an_acknowledged_emptying_is_gone() {
        check_emptied(&[Some(10), Some(20)], 100, &[(30, Some(31))], [&[None], &[]]);
        check_emptied(&[Some(10), Some(20), None], 100, &[(30, Some(31))], [&[None, Some(3)], &[]]);
        check_emptied(&[Some(10), Some(20)], 5, &[(30, Some(31))], [&[None], &[]]);
    }

    #[test]
    fn what_was_written_after_it_is_there_and_what_went_on_meanwhile_may_be() {
        check_emptied(&[Some(10), Some(40)], 100, &[(30, Some(31))], [&[Some(2)], &[]]);
        check_emptied(&[Some(10), Some(40)], 39, &[(30, Some(31))], [&[None, Some(2)], &[]]);
        check_emptied(&[Some(10), Some(30)], 100, &[(28, Some(31))], [&[None, Some(2)], &[]]);
        check_emptied(&[Some(10), Some(40)], 100, &[(5, Some(6)), (30, Some(31))], [&[Some(2)], &[]]);
    }

    #[test]
    fn an_emptying_under_way_happened_for_all_keys_or_for_none() {
        let ledger = check_emptied(&[Some(10), Some(20)], 100, &[(60, None)], [&[Some(2)], &[None]]);
        let mut halves = Halves::default();
        ledger.weigh(KEY, None, &mut halves);
        assert_eq!((halves.before, halves.after), (None, Some(KEY)));
        ledger.weigh(KEY, Some(2), &mut halves);
        assert_eq!((halves.before, halves.after), (Some(KEY), Some(KEY)));
        check_emptied(&[Some(10), Some(62)], 100, &[(60, None)], [&[Some(2)], &[None, Some(2)]]);
    }
}
