//! What another shard's thread may do here while this shard's own sleeps ([`runtime::Residence`]).
//!
//! Only what needs no waiting and starts no task: a task that is spawned during a visit would run on
//! the visitor's thread, and what waits would wait there. A visitor that finds that more is needed
//! gives up, or leaves the rest, and sends an errand.

use std::borrow::Borrow;
use std::cell::Cell;

use commitlog::LogPosition;
use rows::Mutation;
use runtime::Plant;

use super::read::Reading;
use super::{Outcomes, Shard, Unit, Wait};
use crate::StorageError;
use read::{LivePage, ReadCommand, ReadPage};

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
}

impl Visits {
    pub(super) fn add(&self, count: u64) {
        self.count.set(self.count.get() + count);
    }
}

impl Shard {
    /// [`Shard::read`] for a visitor; `None` when it would wait, for the disk or for others' turns.
    pub(crate) fn visiting_read(&self, command: &ReadCommand) -> Option<Result<ReadPage, StorageError>> {
        self.visiting_try(command).transpose()
    }

    fn visiting_try(&self, command: &ReadCommand) -> Result<Option<ReadPage>, StorageError> {
        let store = self.table(command.table.id())?;
        store.check_readable()?;
        let Some(_room) = self.read_memory.try_enter(store.read_bytes()) else { return Ok(None) };
        let page = LivePage::new(command, self.options.tombstones);
        let mut reading = Reading::begin(&self.shared, &store, command, page);
        let outcome = match reading.advance() {
            Ok(Some(_)) => return Ok(None),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        // An errand begins anew, too, when a file was left out.
        let page = reading.end(&store, outcome)?;
        self.visits.add(u64::from(page.is_some()));
        Ok(page.map(|page| self.cut_short(page)))
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
