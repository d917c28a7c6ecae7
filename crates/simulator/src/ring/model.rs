//! What a read of a place may show.
//!
//! One client writes a place. Its writes are numbered, the number is the value and the timestamp, and a deletion has a
//! number, too: so the greatest wins. What follows from acknowledgements is as in `replicated/model.rs`: a number that
//! was acknowledged by *w* replicas is on one at least of any *r* of all when *w + r* is more than these, in a data
//! centre or in all (`level.rs`), so a read from *r* shows it, or a greater one; where it shows nothing, a deletion
//! with such a number was sent. What a read from several replicas has shown was made equal on them. No number is shown
//! that was not sent, or that was refused.
//!
//! A write may live for a while only. When exactly it ends is not known: the clocks of nodes differ, and only the node
//! that was asked knows when it began. Before a first moment it is as any other, behind a last one it is a deletion,
//! and between them either (`expiry.rs`).
//!
//! A logged batch of which anything was ever shown is there as a whole in the end. One that several replicas had to
//! acknowledge, in a ring of one data centre, is so without any one node, too, also without the one that was asked:
//! while that stays away, and when it has lost its disk. (In a data centre of two, of which one is away, the other one
//! alone records a batch.)
//!
//! Where nodes give the timestamps nothing is known of the order: there it is checked that what is shown was sent, and
//! that all replicas come to show the same.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::expiry::Expiry;
use super::level::{Factors, Reach};
use super::table::{Place, Table};
use crate::scenario::Violation;

/// What is known of a client's places.
#[derive(Debug)]
pub(crate) struct Model {
    /// Of the keyspace of several replicas.
    factors: Factors,
    registers: BTreeMap<Place, Register>,
    /// Logged batches that were not refused.
    batches: BTreeMap<i64, LoggedBatch>,
}

#[derive(Debug)]
struct LoggedBatch {
    places: Vec<Place>,
    /// Is it whole or absent without any one node?
    needs_nobody: bool,
}

/// What a place gets from a write: a value, or a deletion.
pub(crate) type Effect = (Place, Option<i64>);

#[derive(Debug, Default)]
struct Register {
    sent: BTreeMap<i64, Sent>,
    /// By which replicas have it: the greatest number.
    held: BTreeMap<Reach, i64>,
}

#[derive(Debug, Default)]
struct Sent {
    is_deletion: bool,
    expiry: Option<Expiry>,
    is_refused: bool,
    was_shown: bool,
}

impl Model {
    pub(crate) fn new(factors: Factors) -> Model {
        Model { factors, registers: BTreeMap::new(), batches: BTreeMap::new() }
    }

    /// A write with this number goes out, which may live for a while only.
    pub(crate) fn send(&mut self, number: i64, effects: &[Effect], expiry: Option<Expiry>) {
        for (place, value) in effects {
            let sent = Sent { is_deletion: value.is_none(), expiry, ..Sent::default() };
            self.registers.entry(*place).or_default().sent.insert(number, sent);
        }
    }

    /// And it is a logged batch, of which these replicas must say that they have it.
    pub(crate) fn send_logged(&mut self, number: i64, effects: &[Effect], reach: impl Fn(Table) -> Reach) {
        self.send(number, effects, None);
        let places: Vec<Place> = effects.iter().map(|(place, _)| *place).collect();
        let is_on_several = places.iter().all(|place| reach(place.table).is_of_several());
        let needs_nobody = is_on_several && self.factors.are_of_one_center();
        self.batches.insert(number, LoggedBatch { places, needs_nobody });
    }

    /// Too few nodes said that they have recorded a logged batch: one may be all that has.
    pub(crate) fn record_by_one(&mut self, number: i64) {
        if let Some(batch) = self.batches.get_mut(&number) {
            batch.needs_nobody = false;
        }
    }

    /// These replicas of each place said that they have it.
    pub(crate) fn acknowledge(&mut self, number: i64, effects: &[Effect], reach: impl Fn(Table) -> Reach) {
        for (place, _) in effects {
            // With timestamps of the nodes it may be behind what was there before.
            if place.table != Table::Stamped {
                self.registers.entry(*place).or_default().acknowledge(number, reach(place.table));
            }
        }
    }

    /// A node has lost its disk, and with it what it alone had acknowledged.
    pub(crate) fn lose_what_one_had(&mut self) {
        for register in self.registers.values_mut() {
            register.held.retain(|reach, _| reach.is_of_several());
        }
        self.batches.retain(|_, batch| batch.needs_nobody);
    }

    /// Nothing was done.
    pub(crate) fn refuse(&mut self, number: i64, effects: &[Effect]) {
        self.batches.remove(&number);
        for (place, _) in effects {
            if let Some(sent) = self.registers.entry(*place).or_default().sent.get_mut(&number) {
                sent.is_refused = true;
            }
        }
    }

    /// A write that lives for a while only began by now at the latest.
    pub(crate) fn began(&mut self, number: i64, effects: &[Effect], expiry: Expiry) {
        for (place, _) in effects {
            if let Some(sent) = self.registers.entry(*place).or_default().sent.get_mut(&number) {
                sent.expiry = Some(expiry);
            }
        }
    }

    /// From then on nothing is there any more that was to live for a while only.
    pub(crate) fn all_expired_at(&self) -> Option<Instant> {
        let sent = self.registers.values().flat_map(|register| register.sent.values());
        sent.filter_map(|sent| sent.expiry.map(|expiry| expiry.latest)).max()
    }

    /// These replicas have shown it together, to who asked at that time.
    ///
    /// # Errors
    /// They must not.
    pub(crate) fn show(
        &mut self,
        place: Place,
        value: Option<i64>,
        reach: Reach,
        asked: Instant,
    ) -> Result<(), Violation> {
        let factors = self.factors.of(place.table);
        let register = self.registers.entry(place).or_default();
        let wrong = |register: &Register| {
            let what = format!("{reach:?} of {place:?} shows {value:?}, of {register:?}");
            Violation::new(what)
        };
        let Some(number) = register.may_show(value, reach, factors, asked) else {
            return Err(wrong(register));
        };
        if let Some(sent) = value.and_then(|number| register.sent.get_mut(&number)) {
            sent.was_shown = true;
        }
        if reach.is_of_several() && place.table != Table::Stamped {
            register.acknowledge(number, reach);
        }
        Ok(())
    }

    /// A logged batch that is there in part, as this is what there is in the end; while a node is away, only of those
    /// that need nobody.
    pub(crate) fn half_written(
        &self,
        shown: &BTreeMap<Place, Option<i64>>,
        are_all_there: bool,
    ) -> Option<String> {
        let is_torn = |(number, batch): &(&i64, &LoggedBatch)| {
            let was_shown = |place: &&Place| self.registers[*place].sent[*number].was_shown;
            let lacks = |place: &&Place| !self.registers[*place].covers(shown[*place], **number);
            (are_all_there || batch.needs_nobody)
                && batch.places.iter().any(|place| was_shown(&place))
                && batch.places.iter().any(|place| lacks(&place))
        };
        let (number, LoggedBatch { places, .. }) = self.batches.iter().find(is_torn)?;
        let shown: Vec<_> = places.iter().map(|place| (place, shown[place])).collect();
        Some(format!("batch {number} is there in part: {shown:?}"))
    }
}

impl Register {
    fn acknowledge(&mut self, number: i64, reach: Reach) {
        let held = self.held.entry(reach).or_default();
        *held = number.max(*held);
    }

    /// The number that was surely seen, if these replicas may show that: 0 is that of nothing at all.
    fn may_show(&self, value: Option<i64>, reach: Reach, factors: Factors, asked: Instant) -> Option<i64> {
        let met = self.held.iter().filter(|(held, _)| held.meets(reach, factors));
        let least = met.map(|(_, number)| *number).max().unwrap_or(0);
        match value {
            Some(number) => {
                let is_over = |sent: &Sent| sent.expiry.is_some_and(|expiry| expiry.latest < asked);
                let is_sent = |sent: &Sent| !sent.is_deletion && !sent.is_refused && !is_over(sent);
                (number >= least && self.sent.get(&number).is_some_and(is_sent)).then_some(number)
            }
            None if least == 0 => Some(0),
            None => self.deletion_from(least),
        }
    }

    /// The first deletion that has this number or a greater one, or write that may have expired.
    fn deletion_from(&self, least: i64) -> Option<i64> {
        let now = Instant::now();
        let may_be_over = |sent: &Sent| sent.expiry.is_some_and(|expiry| expiry.earliest <= now);
        let mut from = self.sent.range(least..);
        from.find(|(_, sent)| (sent.is_deletion || may_be_over(sent)) && !sent.is_refused)
            .map(|(number, _)| *number)
    }

    /// Is a write with this number done, where this is shown?
    fn covers(&self, value: Option<i64>, number: i64) -> bool {
        match value {
            Some(shown) => shown >= number,
            None => self.deletion_from(number).is_some(),
        }
    }
}
