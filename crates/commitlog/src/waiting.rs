//! What is waited for: the sync that a record needs.
//!
//! | who waits | for |
//! |---|---|
//! | [`CommitLog::synced`] | what the sync mode says of a record |
//! | [`CommitLog::on_disk`] | the disk, whatever it says |
//! | [`CommitLog::sync`] | the same, of everything so far |

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::error::CommitLogError;
use crate::group::Synced;
use crate::log::{CommitLog, Shared, State};
use crate::options::{CommitLogOptions, SyncMode};
use crate::position::LogPosition;

impl CommitLog {
    /// Resolves when the record at `position`, and all before it, are durable in the sense of the
    /// sync mode. In [`SyncMode::Periodic`] that is at once, unless the disk falls behind by half a
    /// period or by more bytes than may wait in memory.
    pub fn synced(&self, position: LogPosition) -> Synced {
        let mut state = self.shared.state.borrow_mut();
        match state.outcome_of(position, &self.shared) {
            Some(outcome) => Synced::done(outcome),
            None => state.wait_for(position, &self.shared.wake),
        }
    }

    /// Resolves when the record at `position`, and all before it, are on the disk, whatever the sync mode.
    pub fn on_disk(&self, position: LogPosition) -> Synced {
        let mut state = self.shared.state.borrow_mut();
        match state.outcome_on_disk(position) {
            Some(outcome) => Synced::done(outcome),
            None => state.wait_for(position, &self.shared.wake),
        }
    }

    /// Would [`CommitLog::synced`] resolve at once, and well?
    pub fn is_synced(&self, position: LogPosition) -> bool {
        matches!(self.shared.state.borrow().outcome_of(position, &self.shared), Some(Ok(())))
    }

    /// Would a record of so many bytes be taken into the segment as it is, and [`CommitLog::synced`] then
    /// resolve at once? `now` is what the clock says.
    pub fn takes_at_once(&self, record_bytes: usize, now: Duration) -> bool {
        let state = self.shared.state.borrow();
        !state.is_waited_for(&self.shared.options, || now)
            && state.fits(record_bytes, self.shared.options.segment_bytes as usize)
            && state.check_open().is_ok()
    }

    /// Resolves when everything appended so far is durable, whatever the sync mode.
    pub fn sync(&self) -> Synced {
        let mut state = self.shared.state.borrow_mut();
        if let Some(stopped) = &state.stopped {
            return Synced::done(Err(stopped.clone()));
        }
        if state.next == state.synced {
            return Synced::done(Ok(()));
        }
        state.want_sync(&self.shared.wake)
    }
}

impl State {
    fn want_sync(&mut self, wake: &Notify) -> Synced {
        if !self.sync_wanted {
            self.sync_wanted = true;
            wake.notify_one();
        }
        Synced::waiting(Rc::clone(&self.group))
    }

    /// What a write that has this record is told at once; `None` when it waits for a sync.
    fn outcome_of(&self, position: LogPosition, shared: &Shared) -> Option<Result<(), CommitLogError>> {
        let is_waited_for = || self.is_waited_for(&shared.options, || shared.clock.elapsed());
        self.outcome_on_disk(position).or_else(|| (!is_waited_for()).then_some(Ok(())))
    }

    /// The same of the disk itself, whatever the sync mode.
    fn outcome_on_disk(&self, position: LogPosition) -> Option<Result<(), CommitLogError>> {
        if let Some(error) = self.loss_of(position) {
            return Some(Err(error));
        }
        if position < self.synced {
            return Some(Ok(()));
        }
        self.stopped.as_ref().map(|stopped| Err(stopped.clone()))
    }

    /// Waits for the sync that covers a position: the one that goes on, or the next.
    fn wait_for(&mut self, position: LogPosition, wake: &Notify) -> Synced {
        match &self.in_flight {
            Some(in_flight) if position < in_flight.end => Synced::waiting(Rc::clone(&in_flight.group)),
            _ => self.want_sync(wake),
        }
    }

    /// Do writes wait until what was appended last is synced? Under `periodic` they do when a record has waited for
    /// more than one and a half periods, or too many bytes wait.
    fn is_waited_for(&self, options: &CommitLogOptions, now: impl FnOnce() -> Duration) -> bool {
        let SyncMode::Periodic { period } = options.sync else { return true };
        if self.pending_bytes > options.pending_bytes_max() {
            return true;
        }
        let since = self.in_flight.as_ref().and_then(|in_flight| in_flight.since).or(self.group_since);
        since.is_some_and(|since| now().saturating_sub(since) > period + period / 2)
    }
}
