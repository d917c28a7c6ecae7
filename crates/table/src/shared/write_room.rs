//! Room for writes: memtables may grow to the budget, and are written out when half of it is spent.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};

use super::Shared;
use super::tables::Tables;
use crate::TableError;

/// After a failed flush writers are told at once that there is no room, for so long.
pub(super) const RETRY_FLUSH_AFTER: Duration = Duration::from_secs(1);

/// Memory for the memtables of a shard, and how the flushes stand that give it back.
pub struct WriteRoom {
    budget: usize,
    /// Bytes in all memtables, active and frozen.
    taken_bytes: Cell<usize>,
    /// Flushes that the shard started by itself and that have not ended.
    flush_count: Cell<usize>,
    /// How the last flush failed, if none went well since.
    failure: RefCell<Option<FlushFailure>>,
    /// Is one that failed to be tried again soon?
    is_tried_again: Cell<bool>,
    /// Told when memtables shrink or a flush ends: a writer may be waiting for room.
    freed: Notify,
    /// Held by the writer that waits for room; the others wait for that, in the order of coming.
    turn: Mutex<()>,
}

/// How a flush failed.
#[derive(Clone)]
struct FlushFailure {
    at: Duration,
    /// Was there no space, for a file or in the log?
    is_full: bool,
    reason: String,
}

impl WriteRoom {
    /// Of so many bytes, of which some are taken.
    pub(super) fn new(budget: usize, taken_bytes: usize) -> Self {
        WriteRoom {
            budget,
            taken_bytes: Cell::new(taken_bytes),
            flush_count: Cell::new(0),
            failure: RefCell::new(None),
            is_tried_again: Cell::new(false),
            freed: Notify::new(),
            turn: Mutex::default(),
        }
    }

    /// Bytes in all memtables.
    #[inline]
    pub fn taken_bytes(&self) -> usize {
        self.taken_bytes.get()
    }

    /// Do memtables hold more than they may?
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.taken_bytes.get() > self.budget
    }

    /// Do they hold so much that one is to be written out?
    #[inline]
    fn is_half_spent(&self) -> bool {
        self.taken_bytes.get() > self.budget / 2
    }

    /// Would a write have to wait, or to start a flush?
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.is_half_spent() && (!self.is_flushing() || self.is_spent() || self.is_waited_for())
    }

    /// Do others wait for room, who came first?
    fn is_waited_for(&self) -> bool {
        self.turn.try_lock().is_err()
    }

    /// Takes in that a memtable has grown.
    #[inline]
    pub(crate) fn take(&self, bytes: usize) {
        self.taken_bytes.set(self.taken_bytes.get() + bytes);
    }

    /// Takes in that memtables have gone.
    pub(super) fn give_back(&self, bytes: usize) {
        let counted_bytes = self.taken_bytes.get();
        assert!(bytes <= counted_bytes, "the memory of a memtable is counted until it is let go");
        self.taken_bytes.set(counted_bytes - bytes);
    }

    /// Does a flush go on that the shard started by itself?
    #[inline]
    pub fn is_flushing(&self) -> bool {
        self.flush_count.get() > 0
    }

    /// Has writers look again.
    pub(super) fn tell_writers(&self) {
        self.freed.notify_waiters();
    }

    /// Takes in how a flush came out.
    pub(crate) fn note_flush(&self, outcome: &Result<(), TableError>, now: Duration) {
        *self.failure.borrow_mut() = outcome.as_ref().err().map(|error| FlushFailure {
            at: now,
            is_full: error.is_full(),
            reason: error.to_string(),
        });
    }

    /// What writers without room are told while flushes fail; `None` when they do not, or when it is time to try again.
    fn recent_failure(&self, now: Duration) -> Option<TableError> {
        let FlushFailure { at, is_full, reason } = self.failure.borrow().clone()?;
        let is_recent = now.saturating_sub(at) < RETRY_FLUSH_AFTER;
        is_recent.then_some(match is_full {
            true => TableError::DiskFull { reason },
            false => TableError::NoRoom { reason },
        })
    }

    /// Starts flushes when memtables grow, and holds writers back only when the budget is spent; then each has room in
    /// its turn, if it takes it before it waits for anything else.
    ///
    /// # Errors
    /// The node stops; or the budget is spent and flushes fail: waiting would not help.
    ///
    /// # Cancel safety
    /// Dropped, the turn is given up.
    pub async fn wait(&self, shared: &Shared, tables: &Tables) -> Result<(), TableError> {
        shared.check_open()?;
        if !self.is_half_spent() {
            return Ok(());
        }
        let recent_failure = || self.recent_failure(shared.runtime.clock.elapsed());
        if !self.is_flushing() && recent_failure().is_none() {
            tables.flush_largest();
        }
        if !self.is_spent() && !self.is_waited_for() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        while self.is_spent() {
            shared.check_open()?;
            if !self.is_flushing() {
                if let Some(refusal) = recent_failure() {
                    return Err(refusal);
                }
                if !tables.flush_largest() {
                    // Nothing is left to write out: the budget is smaller than an empty table.
                    return Ok(());
                }
            }
            self.freed.notified().await;
        }
        Ok(())
    }

    /// Is a flush that failed to be tried again by whoever asks this? Not when somebody else does.
    pub(super) fn begin_retry(&self) -> bool {
        !self.is_tried_again.replace(true)
    }

    /// The retry begins now.
    pub(super) fn end_retry(&self) {
        self.is_tried_again.set(false);
    }
}

/// A flush that the shard started by itself, counted as long as it lives.
pub(crate) struct FlushUnderWay(Rc<Shared>);

impl FlushUnderWay {
    pub(crate) fn new(shared: &Rc<Shared>) -> Self {
        let count = &shared.room.flush_count;
        count.set(count.get() + 1);
        FlushUnderWay(Rc::clone(shared))
    }
}

impl Drop for FlushUnderWay {
    fn drop(&mut self) {
        let room = &self.0.room;
        room.flush_count.set(room.flush_count.get() - 1);
        room.tell_writers();
    }
}

impl Shared {
    /// Would a write have to wait for room, or to start a flush?
    #[inline]
    pub fn is_short_of_room(&self) -> bool {
        self.room.is_short() || self.is_stopping()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_short_when_half_of_it_is_spent_and_no_flush_gives_it_back() {
        let room = WriteRoom::new(100, 20);
        let states = |room: &WriteRoom| (room.taken_bytes(), room.is_short(), room.is_spent());
        room.take(30);
        assert_eq!(states(&room), (50, false, false));
        room.take(2);
        assert_eq!(states(&room), (52, true, false));
        room.flush_count.set(1);
        assert_eq!(states(&room), (52, false, false), "a flush is under way");
        room.take(48);
        assert_eq!(states(&room), (100, false, false));
        room.take(1);
        assert_eq!(states(&room), (101, true, true));
        room.give_back(71);
        assert_eq!(states(&room), (30, false, false));
    }

    /// Else those who come would take the room of those who wait, again and again.
    #[test]
    fn who_comes_while_others_wait_for_room_has_to_wait_too() {
        let room = WriteRoom::new(100, 60);
        room.flush_count.set(1);
        assert!(!room.is_short() && !room.is_waited_for());
        let turn = room.turn.try_lock().expect("nobody waits");
        assert!(room.is_short() && room.is_waited_for());
        room.give_back(20);
        assert!(!room.is_short(), "there is room for all");
        drop(turn);
        assert!(!room.is_waited_for());
    }

    #[test]
    #[should_panic(expected = "the memory of a memtable is counted until it is let go")]
    fn what_was_not_taken_is_not_given_back() {
        WriteRoom::new(100, 20).give_back(21);
    }

    #[test]
    fn a_failure_is_told_for_a_second_and_until_a_flush_goes_well() {
        let (room, failed_at) = (WriteRoom::new(100, 0), Duration::from_secs(9));
        room.note_flush(&Err(TableError::NoDirectory), failed_at);
        let told = |after| room.recent_failure(failed_at + after);
        let last = RETRY_FLUSH_AFTER - Duration::from_nanos(1);
        assert!(matches!(told(last), Some(TableError::NoRoom { .. })));
        assert!(told(RETRY_FLUSH_AFTER).is_none(), "it is time to try again");
        room.note_flush(&Ok(()), failed_at);
        assert!(told(Duration::ZERO).is_none());
    }

    #[test]
    fn what_failed_is_tried_again_by_one_who_asks_and_not_by_the_next() {
        let room = WriteRoom::new(100, 0);
        assert_eq!([room.begin_retry(), room.begin_retry()], [true, false]);
        room.end_retry();
        assert!(room.begin_retry());
    }
}
