//! What this node has accepted as a replica, and has not written yet.
//!
//! Of a conditional change in a ring its client is told as soon as a quorum has accepted it: on the disk of each, and
//! not among its rows yet. Whoever asks several replicas for rows must see it from then on. So a replica that has
//! accepted changes of a partition, and has not written them, lets such a read wait until it has, or knows that nothing
//! comes of them.
//!
//! ```text
//!   accepted (on the disk) ─► chosen, its client is told ─► written here
//!   └───────────── reads for several replicas wait ────────┘
//! ```
//!
//! What an earlier run has accepted is found in its log of agreements. Whoever is to read that says so; until it was
//! read, any partition may be one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use ::read::ReadTarget;
use rows::PartitionKey;
use schema::TableId;
use smallvec::SmallVec;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Shard;

/// A partition of a table.
type Place = (TableId, PartitionKey);

/// Changes of partitions that are accepted and not written, by the partition: each by the time of its ballot, in µs
/// since 1970, which tells those of one partition apart and orders them.
#[derive(Debug, Default)]
pub struct Unsettled {
    partitions: RefCell<BTreeMap<Place, SmallVec<[Accepted; 1]>>>,
    /// Is it unknown what an earlier run has left?
    is_unknown: Cell<bool>,
    fewer: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Accepted {
    micros: i64,
    since: Instant,
}

/// What a write under a claim says of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settles {
    /// Nothing.
    Nothing,
    /// The node accepts something of that table's partition, under a ballot of that time. What it had accepted before
    /// is written by then, or comes to nothing.
    Accepts {
        /// The table.
        table: TableId,
        /// The time of the ballot.
        micros: i64,
        /// Is anything changed by it?
        has_changes: bool,
    },
    /// This writes what was accepted of that table's partition, if it was accepted here, under a ballot of that time.
    Writes {
        /// The table.
        table: TableId,
        /// The time of the ballot.
        micros: i64,
    },
}

/// What a shard has accepted, and has not written yet.
pub fn unsettled(shard: &Shard) -> &Unsettled {
    &shard.unsettled
}

impl Unsettled {
    /// Could it be that something of the partition is not written yet?
    pub fn may_have(&self, table: TableId, key: &PartitionKey) -> bool {
        let partitions = self.partitions.borrow();
        self.is_unknown.get() || !partitions.is_empty() && partitions.contains_key(&(table, key.clone()))
    }

    /// Accepted at that time, in this run or an earlier one.
    pub fn add(&self, table: TableId, key: &PartitionKey, micros: i64) {
        let mut partitions = self.partitions.borrow_mut();
        let accepted = partitions.entry((table, key.clone())).or_default();
        if accepted.iter().all(|one| one.micros != micros) {
            accepted.push(Accepted { micros, since: Instant::now() });
        }
    }

    /// An earlier run may have left something.
    pub fn note_unknown(&self) {
        self.is_unknown.set(true);
    }

    /// All that an earlier run has left was added.
    pub fn note_known(&self) {
        self.is_unknown.set(false);
        self.fewer.notify_waiters();
    }

    /// What was accepted at that time is written.
    pub fn note_written(&self, table: TableId, key: &PartitionKey, micros: i64) {
        self.remove(table, key, |one| one == micros);
    }

    /// A write under a claim stands in the log and the memtable.
    pub(super) fn take_in(&self, settles: Settles, key: &PartitionKey) {
        match settles {
            Settles::Nothing => {}
            Settles::Accepts { table, micros, has_changes } => {
                self.remove(table, key, |one| one < micros);
                if has_changes {
                    self.add(table, key, micros);
                }
            }
            Settles::Writes { table, micros } => self.note_written(table, key, micros),
        }
    }

    fn remove(&self, table: TableId, key: &PartitionKey, is_meant: impl Fn(i64) -> bool) {
        let mut partitions = self.partitions.borrow_mut();
        let place = (table, key.clone());
        let Some(accepted) = partitions.get_mut(&place) else { return };
        accepted.retain(|one| !is_meant(one.micros));
        if accepted.is_empty() {
            partitions.remove(&place);
        }
        self.fewer.notify_waiters();
    }

    /// Waits until what is accepted now of the partitions that are read is written, or comes to nothing. What is
    /// accepted later is not waited for.
    pub async fn written(&self, table: TableId, target: &ReadTarget) {
        while self.is_unknown.get() {
            self.fewer.notified().await;
        }
        let mut waited_for = self.of(table, target);
        loop {
            let fewer = self.fewer.notified();
            {
                let partitions = self.partitions.borrow();
                waited_for.retain(|(place, micros)| {
                    let accepted = partitions.get(place);
                    accepted.is_some_and(|accepted| accepted.iter().any(|one| one.micros == *micros))
                });
            }
            if waited_for.is_empty() {
                return;
            }
            fewer.await;
        }
    }

    fn of(&self, table: TableId, target: &ReadTarget) -> Vec<(Place, i64)> {
        let partitions = self.partitions.borrow();
        let is_read = |(of, key): &Place| {
            *of == table
                && match target {
                    ReadTarget::Keys(keys) => keys.contains(key),
                    ReadTarget::Range(range) => range.contains(key),
                }
        };
        let read = partitions.iter().filter(|(place, _)| is_read(place));
        read.flat_map(|(place, accepted)| accepted.iter().map(|one| (place.clone(), one.micros))).collect()
    }

    /// Some partitions of which something was accepted so long ago, and is not written; these are not told again for as
    /// long.
    pub fn take_old(&self, age: Duration, count_max: usize) -> Vec<(TableId, PartitionKey)> {
        let now = Instant::now();
        let mut partitions = self.partitions.borrow_mut();
        let is_old = |one: &Accepted| now.saturating_duration_since(one.since) >= age;
        let old = partitions.iter_mut().filter(|(_, accepted)| accepted.iter().any(is_old));
        let told = old.take(count_max).map(|(place, accepted)| {
            accepted.iter_mut().for_each(|one| one.since = now);
            place.clone()
        });
        told.collect()
    }

    /// What was accepted of a table that is gone comes to nothing.
    pub fn forget(&self, table: TableId) {
        self.partitions.borrow_mut().retain(|(of, _), _| *of != table);
        self.fewer.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use rows::RingRange;
    use uuid::Uuid;

    use super::*;

    const TABLE: TableId = TableId(Uuid::from_u128(1));

    fn key(number: u8) -> PartitionKey {
        PartitionKey::new(vec![number].into())
    }

    fn accepts(micros: i64) -> Settles {
        Settles::Accepts { table: TABLE, micros, has_changes: true }
    }

    fn writes(micros: i64) -> Settles {
        Settles::Writes { table: TABLE, micros }
    }

    #[test]
    fn what_is_accepted_is_unsettled_until_that_is_written() {
        let unsettled = Unsettled::default();
        unsettled.take_in(writes(7), &key(1));
        unsettled.take_in(accepts(7), &key(1));
        assert!(unsettled.may_have(TABLE, &key(1)) && !unsettled.may_have(TABLE, &key(2)));
        unsettled.take_in(writes(6), &key(1));
        assert!(unsettled.may_have(TABLE, &key(1)), "that was another one");
        unsettled.take_in(writes(7), &key(1));
        assert!(!unsettled.may_have(TABLE, &key(1)));
    }

    #[test]
    fn what_is_accepted_later_takes_the_place_of_what_was() {
        let unsettled = Unsettled::default();
        unsettled.take_in(accepts(7), &key(1));
        unsettled.take_in(accepts(8), &key(1));
        unsettled.take_in(writes(7), &key(1));
        assert!(unsettled.may_have(TABLE, &key(1)));
        unsettled.take_in(Settles::Accepts { table: TABLE, micros: 9, has_changes: false }, &key(1));
        assert!(!unsettled.may_have(TABLE, &key(1)), "that there is nothing changes nothing");
    }

    #[test]
    fn who_reads_waits_for_what_was_accepted_before() {
        let unsettled = Unsettled::default();
        let all = ReadTarget::Range(RingRange::ALL);
        let [one, other] = [1, 2].map(|number| ReadTarget::Keys(vec![key(number)]));
        let is_over = |target| unsettled.written(TABLE, target).now_or_never().is_some();
        assert!(is_over(&all) && is_over(&one));
        unsettled.take_in(accepts(7), &key(1));
        assert!(is_over(&other) && !is_over(&one) && !is_over(&all));
        let mut waiting = Box::pin(unsettled.written(TABLE, &one));
        assert!(waiting.as_mut().now_or_never().is_none());
        unsettled.take_in(accepts(8), &key(1));
        assert!(waiting.now_or_never().is_some(), "the later one came behind the read");
        assert!(!is_over(&one));
        unsettled.forget(TABLE);
        assert!(is_over(&all));
    }

    #[test]
    fn any_partition_may_be_one_until_it_is_known_what_an_earlier_run_has_left() {
        let unsettled = Unsettled::default();
        unsettled.note_unknown();
        let one = ReadTarget::Keys(vec![key(1)]);
        assert!(unsettled.may_have(TABLE, &key(1)));
        let mut waiting = Box::pin(unsettled.written(TABLE, &one));
        assert!(waiting.as_mut().now_or_never().is_none());
        unsettled.note_known();
        assert!(waiting.now_or_never().is_some() && !unsettled.may_have(TABLE, &key(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_old_is_told_once_for_as_long() {
        let (unsettled, age) = (Unsettled::default(), Duration::from_secs(1));
        for number in 0..5 {
            unsettled.add(TABLE, &key(number), 7);
        }
        assert!(unsettled.take_old(age, 3).is_empty());
        tokio::time::advance(age).await;
        assert_eq!([3, 3, 3].map(|most| unsettled.take_old(age, most).len()), [3, 2, 0]);
        tokio::time::advance(age).await;
        assert_eq!(unsettled.take_old(age, 9).len(), 5);
    }
}
