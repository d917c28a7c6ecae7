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
use std::rc::Rc;
use std::time::Duration;

use ::read::ReadTarget;
use rows::PartitionKey;
use schema::TableId;
use smallvec::SmallVec;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

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

/// Something that was accepted.
#[derive(Debug)]
struct Accepted {
    /// The time of its ballot.
    micros: i64,
    /// Its ballot at first: it may have been proposed anew since.
    origin: Uuid,
    since: Instant,
    fate: Rc<Cell<Fate>>,
}

/// What has come of something that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Written,
    /// Something else was accepted in its place. It may have been chosen all the same, and be written elsewhere.
    Replaced,
}

/// What a read has waited for was replaced here, and nobody here knows whether it was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced;

/// What a write under a claim says of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settles {
    /// Nothing.
    Nothing,
    /// The node accepts something of that table's partition, under a ballot of that time.
    Accepts {
        /// The table.
        table: TableId,
        /// The time of the ballot.
        micros: i64,
        /// Its ballot at first.
        origin: Uuid,
        /// Is anything changed by it?
        has_changes: bool,
        /// The time of the ballot of what is known to be chosen before, and is written with it, or was.
        known: Option<i64>,
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

    /// Accepted under a ballot of that time and one at first, in this run or an earlier one.
    pub fn add(&self, table: TableId, key: &PartitionKey, micros: i64, origin: Uuid) {
        let mut partitions = self.partitions.borrow_mut();
        let accepted = partitions.entry((table, key.clone())).or_default();
        if accepted.iter().all(|one| one.micros != micros) {
            let fate = Rc::new(Cell::new(Fate::Open));
            accepted.push(Accepted { micros, origin, since: Instant::now(), fate });
        }
    }

    /// Is it not known yet what an earlier run has left?
    pub fn is_unknown(&self) -> bool {
        self.is_unknown.get()
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

    /// What was accepted under a ballot of that time is written, if it was accepted here. What was accepted before that
    /// is chosen no more, or was: then others have written it.
    pub fn note_written(&self, table: TableId, key: &PartitionKey, micros: i64) {
        self.retain(table, key, |one| {
            if one.micros <= micros {
                one.fate.set(if one.micros == micros { Fate::Written } else { Fate::Replaced });
            }
            one.micros > micros
        });
    }

    /// Nothing of the partition is waited for here any more: others tell what has come of it.
    pub fn give_up(&self, table: TableId, key: &PartitionKey) {
        self.retain(table, key, |one| {
            one.fate.set(Fate::Replaced);
            false
        });
    }

    /// A write under a claim stands in the log and the memtable.
    pub(super) fn take_in(&self, settles: Settles, key: &PartitionKey) {
        match settles {
            Settles::Nothing => {}
            Settles::Accepts { table, micros, origin, has_changes, known } => {
                self.retain(table, key, |one| {
                    if one.origin == origin && has_changes {
                        // The same, proposed anew: whoever waits for it goes on.
                        one.micros = micros;
                    } else if one.micros < micros {
                        let is_written = known == Some(one.micros);
                        one.fate.set(if is_written { Fate::Written } else { Fate::Replaced });
                        return false;
                    }
                    true
                });
                if has_changes {
                    self.add(table, key, micros, origin);
                }
            }
            Settles::Writes { table, micros } => self.note_written(table, key, micros),
        }
    }

    fn retain(&self, table: TableId, key: &PartitionKey, stays: impl FnMut(&mut Accepted) -> bool) {
        let mut partitions = self.partitions.borrow_mut();
        let place = (table, key.clone());
        let Some(accepted) = partitions.get_mut(&place) else { return };
        accepted.retain(stays);
        if accepted.is_empty() {
            partitions.remove(&place);
        }
        self.fewer.notify_waiters();
    }

    /// Waits until what is accepted now of the partitions that are read is written. What is accepted later is not
    /// waited for. Of a range it is waited until it is known what an earlier run has left; of keys whoever asks has
    /// looked.
    ///
    /// # Errors
    /// [`Replaced`]: what is read here then may lack what somebody was told.
    pub async fn written(&self, table: TableId, target: &ReadTarget) -> Result<(), Replaced> {
        while self.is_unknown.get() && matches!(target, ReadTarget::Range(_)) {
            self.fewer.notified().await;
        }
        let waited_for = self.fates_of(table, target);
        loop {
            let fewer = self.fewer.notified();
            if waited_for.iter().any(|fate| fate.get() == Fate::Replaced) {
                return Err(Replaced);
            }
            if waited_for.iter().all(|fate| fate.get() == Fate::Written) {
                return Ok(());
            }
            fewer.await;
        }
    }

    fn fates_of(&self, table: TableId, target: &ReadTarget) -> Vec<Rc<Cell<Fate>>> {
        let partitions = self.partitions.borrow();
        let fates = |accepted: &SmallVec<[Accepted; 1]>| {
            accepted.iter().map(|one| Rc::clone(&one.fate)).collect::<Vec<_>>()
        };
        match target {
            ReadTarget::Keys(keys) => {
                let read = keys.iter().filter_map(|key| partitions.get(&(table, key.clone())));
                read.flat_map(fates).collect()
            }
            ReadTarget::Range(range) => {
                let is_read = |(of, key): &Place| *of == table && range.contains(key);
                let read = partitions.iter().filter(|(place, _)| is_read(place));
                read.flat_map(|(_, accepted)| fates(accepted)).collect()
            }
        }
    }

    /// Is something of the partition not written yet that was accepted, or told to be old, before that moment?
    pub fn has_from_before(&self, table: TableId, key: &PartitionKey, moment: Instant) -> bool {
        let partitions = self.partitions.borrow();
        let accepted = partitions.get(&(table, key.clone()));
        accepted.is_some_and(|accepted| accepted.iter().any(|one| one.since <= moment))
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
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use rows::RingRange;

    use super::*;

    const TABLE: TableId = TableId(Uuid::from_u128(1));

    fn key(number: u8) -> PartitionKey {
        PartitionKey::new(vec![number].into())
    }

    /// Accepted under a ballot of that time, and under one of another time at first.
    fn accepts_again(micros: i64, at_first: u128, known: Option<i64>) -> Settles {
        let origin = Uuid::from_u128(at_first);
        Settles::Accepts { table: TABLE, micros, origin, has_changes: true, known }
    }

    fn accepts(micros: i64) -> Settles {
        accepts_again(micros, micros as u128, None)
    }

    fn writes(micros: i64) -> Settles {
        Settles::Writes { table: TABLE, micros }
    }

    fn one() -> ReadTarget {
        ReadTarget::Keys(vec![key(1)])
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
        let (origin, known) = (Uuid::from_u128(9), None);
        let nothing = Settles::Accepts { table: TABLE, micros: 9, origin, has_changes: false, known };
        unsettled.take_in(nothing, &key(1));
        assert!(!unsettled.may_have(TABLE, &key(1)), "that there is nothing changes nothing");
    }

    #[test]
    fn who_reads_waits_until_what_was_accepted_before_is_written() {
        let unsettled = Unsettled::default();
        let (all, other) = (ReadTarget::Range(RingRange::ALL), ReadTarget::Keys(vec![key(2)]));
        let now = |target: &ReadTarget| unsettled.written(TABLE, target).now_or_never();
        assert_eq!((now(&all), now(&one())), (Some(Ok(())), Some(Ok(()))));
        unsettled.take_in(accepts(7), &key(1));
        assert_eq!((now(&other), now(&one()), now(&all)), (Some(Ok(())), None, None));
        let target = one();
        let mut waiting = Box::pin(unsettled.written(TABLE, &target));
        assert!(waiting.as_mut().now_or_never().is_none());
        unsettled.take_in(accepts_again(8, 8, Some(7)), &key(1));
        assert_eq!(waiting.now_or_never(), Some(Ok(())), "it was written with the next one");
        assert_eq!(now(&one()), None, "which is not");
        unsettled.take_in(writes(8), &key(1));
        assert_eq!(now(&all), Some(Ok(())));
    }

    /// The round that makes it good takes some time before it is written.
    #[test]
    fn who_waits_goes_on_when_the_same_is_proposed_anew() {
        let (unsettled, target) = (Unsettled::default(), one());
        unsettled.take_in(accepts(7), &key(1));
        let mut waiting = Box::pin(unsettled.written(TABLE, &target));
        assert!(waiting.as_mut().now_or_never().is_none());
        unsettled.take_in(accepts_again(9, 7, None), &key(1));
        assert!(waiting.as_mut().now_or_never().is_none());
        unsettled.take_in(writes(9), &key(1));
        assert_eq!(waiting.now_or_never(), Some(Ok(())));
        assert!(!unsettled.may_have(TABLE, &key(1)));
    }

    /// It may have been chosen, and written elsewhere: after another replica was read for the same answer.
    #[test]
    fn who_waits_for_what_is_replaced_is_told() {
        for later in [accepts(8), writes(8)] {
            let (unsettled, target) = (Unsettled::default(), one());
            unsettled.take_in(accepts(7), &key(1));
            let mut waiting = Box::pin(unsettled.written(TABLE, &target));
            assert!(waiting.as_mut().now_or_never().is_none());
            unsettled.take_in(later, &key(1));
            assert_eq!(waiting.now_or_never(), Some(Err(Replaced)), "{later:?}");
        }
        let unsettled = Unsettled::default();
        unsettled.take_in(accepts(7), &key(1));
        unsettled.give_up(TABLE, &key(1));
        assert!(!unsettled.may_have(TABLE, &key(1)));
    }

    #[test]
    fn any_partition_may_be_one_until_it_is_known_what_an_earlier_run_has_left() {
        let (unsettled, all) = (Unsettled::default(), ReadTarget::Range(RingRange::ALL));
        unsettled.note_unknown();
        assert!(unsettled.may_have(TABLE, &key(1)));
        assert_eq!(unsettled.written(TABLE, &one()).now_or_never(), Some(Ok(())), "it was looked for");
        let mut waiting = Box::pin(unsettled.written(TABLE, &all));
        assert!(waiting.as_mut().now_or_never().is_none());
        unsettled.note_known();
        assert!(waiting.now_or_never().is_some() && !unsettled.may_have(TABLE, &key(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_old_is_told_once_for_as_long() {
        let (unsettled, age) = (Unsettled::default(), Duration::from_secs(1));
        for number in 0..5 {
            unsettled.add(TABLE, &key(number), 7, Uuid::nil());
        }
        assert!(unsettled.take_old(age, 3).is_empty());
        let has = |moment| unsettled.has_from_before(TABLE, &key(0), moment);
        let now = Instant::now();
        assert_eq!([now, now - age].map(has), [true, false]);
        tokio::time::advance(age).await;
        assert_eq!([3, 3, 3].map(|most| unsettled.take_old(age, most).len()), [3, 2, 0]);
        tokio::time::advance(age).await;
        assert_eq!(unsettled.take_old(age, 9).len(), 5);
    }
}
