//! What another shard's thread may do here while this shard's own sleeps ([`runtime::Residence`]).
//!
//! Only what needs no waiting and starts no task: a task that is spawned during a visit would run on
//! the visitor's thread, and what waits would wait there. A visitor that finds that more is needed
//! gives up, or leaves the rest, and sends an errand.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use commitlog::LogPosition;
use rows::Mutation;
use runtime::Plant;

use super::Shard;
use crate::{ReadCommand, ReadPage, StorageError};

/// What is left of a visitor's write.
pub(crate) enum Rest {
    /// Nothing: it is durable in the sense of the sync mode.
    Nothing,
    /// [`Shard::finish_write`], on the shard itself.
    Finish(LogPosition),
}

/// The visits of other shards' threads.
#[derive(Default)]
pub(super) struct Visits {
    /// Reads and writes that they have done.
    count: Cell<u64>,
    /// Is what runs to give up rather than wait?
    is_hurried: Cell<bool>,
}

impl Visits {
    pub(super) fn add(&self, count: u64) {
        self.count.set(self.count.get() + count);
    }
}

impl Shard {
    /// [`Shard::read`] for a visitor; `None` when it would wait, for the disk or for others' turns.
    pub(crate) fn visiting_read(&self, command: &ReadCommand) -> Option<Result<ReadPage, StorageError>> {
        let _hurry = Hurry::begin(self);
        let reading = pin!(self.read(command));
        let Poll::Ready(page) = reading.poll(&mut Context::from_waker(Waker::noop())) else { return None };
        self.visits.add(1);
        Some(page)
    }

    /// [`Shard::write`] for a visitor; `None` when it would wait for room or a flush is due.
    pub(crate) fn visiting_write(&self, mutations: &[Mutation]) -> Option<Result<Rest, StorageError>> {
        if self.is_short_of_room() {
            return None;
        }
        let _hurry = Hurry::begin(self);
        let started = self.runtime.clock.elapsed();
        let taken = match self.take(mutations) {
            Ok(taken) => taken,
            Err(error) => return Some(Err(error)),
        };
        self.count_writes(&taken.stores, started);
        self.visits.add(1);
        let is_unfinished = |position: &LogPosition| {
            let is_synced = position.segment == self.log_segment.get() && self.log.is_synced(*position);
            !is_synced && !self.runtime.plants.has(Plant::VisitorDoesNotWait)
        };
        Some(Ok(taken.position.filter(is_unfinished).map_or(Rest::Nothing, Rest::Finish)))
    }

    /// [`Shard::write_at_once`] for a visitor.
    pub(crate) fn visiting_write_at_once(&self, mutations: &[&Mutation], tell: impl FnMut(usize)) {
        let written_count = self.write_at_once(mutations, tell);
        self.visits.add(written_count);
    }

    /// Reads and writes that other shards' threads have done here.
    pub fn visit_count(&self) -> u64 {
        self.visits.count.get()
    }

    /// Is it a visit that runs?
    pub(super) fn is_hurried(&self) -> bool {
        self.visits.is_hurried.get()
    }
}

/// The time of a visit, which must not wait.
struct Hurry<'a>(&'a Shard);

impl<'a> Hurry<'a> {
    fn begin(shard: &'a Shard) -> Self {
        let was_hurried = shard.visits.is_hurried.replace(true);
        assert!(!was_hurried, "one visits at a time");
        Hurry(shard)
    }
}

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        self.0.visits.is_hurried.set(false);
    }
}
