//! What another shard's thread may do here while this shard's own sleeps ([`runtime::Residence`]).
//!
//! Only what needs no waiting and starts no task: a task that is spawned during a visit would run on
//! the visitor's thread, and what waits would wait there. A visitor that finds that more is needed
//! leaves the rest to the shard, or gives up and sends an errand.

use std::borrow::Borrow;
use std::cell::Cell;
use std::rc::Rc;

use commitlog::LogPosition;
use rows::Mutation;
use runtime::Plant;

use super::left_reads::{LeftRead, LeftReads};
use super::read::{Reading, cut_short};
use super::write::Unsettled;
use super::{Outcomes, Shard, Unit, Wait};
use crate::StorageError;
use crate::reach::errand::Answer;
use read::{LivePage, ReadCommand, ReadPage};

/// How far a visitor's read has come.
pub(crate) enum VisitingRead {
    /// To its end.
    Over(Result<ReadPage, StorageError>),
    /// To where it lacks something; from there on the shard goes on with it, as soon as it is woken.
    Left(Answer<Result<ReadPage, StorageError>>),
    /// There is no room for it.
    NotBegun,
}

/// How far a visitor's write has come.
pub(crate) enum VisitingWrite {
    /// To its end.
    Over(Outcomes),
    /// What was taken stands in log and memtables: [`Shard::settle_visit`] is left to the shard itself.
    Unsettled(Unsettled),
}

/// The visits of other shards' threads.
#[derive(Default)]
pub(crate) struct Visits {
    /// Reads and writes that they have done.
    count: Cell<u64>,
    /// Reads that they have begun.
    left_reads: LeftReads,
}

/// How much visitors have done on a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitStats {
    /// Reads and writes.
    pub count: u64,
    /// Reads that they began and the shard went on with.
    pub left_read_count: u64,
}

impl Visits {
    pub(super) fn add(&self, count: u64) {
        self.count.set(self.count.get() + count);
    }
}

impl Shard {
    /// [`Shard::read`] for a visitor, as far as that needs no waiting. It is not written as that is: where that waits,
    /// for room or for what is lacking, this gives up or leaves what it has.
    pub(crate) fn visiting_read(&self, command: &ReadCommand) -> VisitingRead {
        loop {
            match self.visiting_try(command) {
                Ok(Some(read)) => return read,
                // Another one begins anew, since a file was left out.
                Ok(None) => {}
                Err(error) => return VisitingRead::Over(Err(error)),
            }
        }
    }

    fn visiting_try(&self, command: &ReadCommand) -> Result<Option<VisitingRead>, StorageError> {
        let store = self.readable_table(command.table.id())?;
        let (visits, room) = (&self.visits, self.read_memory.try_enter(store.read_bytes()));
        let Some(room) = room.filter(|_| visits.left_reads.has_room()) else {
            return Ok(Some(VisitingRead::NotBegun));
        };
        let page = LivePage::new(command, self.options.tombstones);
        let mut reading = Reading::begin(&self.shared, &store, command, page);
        let outcome = match reading.advance() {
            Ok(Some(lack)) => {
                let (page, progress) = (reading.consumer.leave_off(), reading.progress);
                let (store, command) = (Rc::downgrade(&store), command.clone());
                let read = LeftRead { store, command, page, progress, lack, room };
                return Ok(Some(VisitingRead::Left(visits.left_reads.leave(read))));
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let page = reading.end(&store, outcome)?;
        visits.add(u64::from(page.is_some()));
        Ok(page.map(|page| VisitingRead::Over(Ok(cut_short(&self.shared, page)))))
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
        self.visits.add(begun.taken.len() as u64);
        let is_unsettled = |position: &LogPosition| {
            wait != Wait::Never
                && !self.is_settled(*position)
                && !self.shared.runtime.plants.has(Plant::VisitorDoesNotWait)
        };
        Some(match begun.position.filter(is_unsettled) {
            Some(position) => VisitingWrite::Unsettled(begun.into_unsettled(position)),
            None => {
                begun.count(&*self.shared.runtime.clock);
                VisitingWrite::Over(begun.into_outcomes())
            }
        })
    }

    /// Reads that visitors have begun here.
    pub(crate) fn left_reads(&self) -> &LeftReads {
        &self.visits.left_reads
    }

    /// What other shards' threads have done here.
    pub fn visits(&self) -> VisitStats {
        let Visits { count, left_reads } = &self.visits;
        VisitStats { count: count.get(), left_read_count: left_reads.taken_count() }
    }
}
