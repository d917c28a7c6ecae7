//! What another shard's thread may do here while this shard's own sleeps ([`runtime::Residence`]).
//!
//! Only what needs no waiting and starts no task: a task that is spawned during a visit would run on
//! the visitor's thread, and what waits would wait there. A visitor that finds that more is needed
//! gives up, or leaves the rest, and sends an errand.

use std::borrow::Borrow;
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use commitlog::LogPosition;
use rows::Mutation;
use runtime::Plant;

use super::{Outcomes, Shard, Unit, Wait};
use crate::StorageError;
use read::{ReadCommand, ReadPage};

/// How far a visitor's write has come.
pub(crate) enum VisitingWrite {
    /// To its end.
    Over(Outcomes),
    /// What was taken stands in log and memtables: [`Shard::settle_position`] is left to the shard itself.
    Unsettled(LogPosition),
}

/// The visits of other shards' threads.
#[derive(Default)]
pub(crate) struct Visits {
    /// Reads and writes that they have done.
    count: Cell<u64>,
    /// Is what runs to give up rather than wait?
    is_hurried: Cell<bool>,
}

impl Visits {
    pub(super) fn add(&self, count: u64) {
        self.count.set(self.count.get() + count);
    }

    /// Is it a visit that runs?
    pub(super) fn is_hurried(&self) -> bool {
        self.is_hurried.get()
    }
}

impl Shard {
    /// [`Shard::read`] for a visitor; `None` when it would wait, for the disk or for others' turns.
    pub(crate) fn visiting_read(&self, command: &ReadCommand) -> Option<Result<ReadPage, StorageError>> {
        let _hurry = Hurry::begin(&self.visits);
        let reading = pin!(self.read(command));
        let Poll::Ready(page) = reading.poll(&mut Context::from_waker(Waker::noop())) else { return None };
        self.visits.add(1);
        Some(page)
    }

    /// [`Shard::begin_write`] for a visitor; `None` when it would wait for room or a flush is due.
    pub(crate) fn visiting_write<M: Borrow<Mutation>>(
        &self,
        mutations: &[M],
        unit: Unit,
        wait: Wait,
    ) -> Option<VisitingWrite> {
        if wait != Wait::Never && self.shared.is_short_of_room() {
            return None;
        }
        let begun = self.begin_write(mutations, unit, wait);
        begun.count(&*self.shared.runtime.clock);
        self.visits.add(begun.taken.len() as u64);
        let is_unsettled = |position: &LogPosition| {
            wait != Wait::Never
                && !self.is_settled(*position)
                && !self.shared.runtime.plants.has(Plant::VisitorDoesNotWait)
        };
        Some(match begun.position.filter(is_unsettled) {
            Some(position) => VisitingWrite::Unsettled(position),
            None => VisitingWrite::Over(begun.into_outcomes()),
        })
    }

    /// Reads and writes that other shards' threads have done here.
    pub fn visit_count(&self) -> u64 {
        self.visits.count.get()
    }
}

/// The time of a visit, which must not wait.
struct Hurry<'a>(&'a Visits);

impl<'a> Hurry<'a> {
    fn begin(visits: &'a Visits) -> Self {
        let was_hurried = visits.is_hurried.replace(true);
        assert!(!was_hurried, "one visits at a time");
        Hurry(visits)
    }
}

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        self.0.is_hurried.set(false);
    }
}
