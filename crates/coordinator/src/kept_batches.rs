//! Logged batches that this node keeps for others, and those of an earlier run: which, how large, and when each is to
//! be written again.
//!
//! What they write stands in `system.batches`; in memory there are ids. Most are let go by their coordinator a moment
//! after they came. One that is not is written again when it is *due*: its coordinator may have died in the midst of
//! it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::CoordinatorError;

/// So many are kept for others at a time. They pile up while replicas of theirs are away.
const COUNT_MAX: usize = 16_384;
/// And so many bytes of them on the disk.
const BYTES_MAX: usize = 1 << 30;

/// How long one rests that could not be written again, at first and at most: as often as Cassandra looks for such
/// batches (`BatchlogManager.REPLAY_INTERVAL`).
const RETRY_AFTER: Duration = Duration::from_secs(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);

/// Those of a node.
#[derive(Debug, Default)]
pub(crate) struct KeptBatches {
    kept: Mutex<Kept>,
    replayed_count: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    by_id: BTreeMap<Uuid, KeptBatch>,
    /// Of all of them.
    bytes: usize,
}

#[derive(Debug)]
struct KeptBatch {
    bytes: usize,
    due: Instant,
    /// How long it rests when it can not be written then.
    retry_after: Duration,
}

impl KeptBatches {
    /// Another node asks for one to be kept.
    ///
    /// # Errors
    /// `Overloaded`: too many are kept.
    pub(crate) fn begin(&self, id: Uuid, bytes: usize, due: Instant) -> Result<(), CoordinatorError> {
        let mut kept = self.kept();
        if kept.by_id.len() >= COUNT_MAX || kept.bytes.saturating_add(bytes) > BYTES_MAX {
            let what =
                format!("{} logged batches of {} bytes are kept for others", kept.by_id.len(), kept.bytes);
            return Err(CoordinatorError::Overloaded { what });
        }
        kept.add(id, bytes, due);
        Ok(())
    }

    /// One of an earlier run is there, however many there are.
    pub(crate) fn find(&self, id: Uuid, bytes: usize, due: Instant) {
        self.kept().add(id, bytes, due);
    }

    /// Its record is gone, or is left where it is.
    pub(crate) fn let_go(&self, id: Uuid) {
        let mut kept = self.kept();
        if let Some(batch) = kept.by_id.remove(&id) {
            kept.bytes -= batch.bytes;
            assert!(kept.bytes == 0 || !kept.by_id.is_empty(), "their bytes are the sum of each one's");
        }
    }

    /// It was written again, as a whole.
    pub(crate) fn replayed(&self, id: Uuid) {
        self.let_go(id);
        self.replayed_count.fetch_add(1, Ordering::Relaxed);
    }

    /// It could not be written again.
    pub(crate) fn try_later(&self, id: Uuid, now: Instant) {
        if let Some(batch) = self.kept().by_id.get_mut(&id) {
            batch.due = now + batch.retry_after;
            batch.retry_after = RETRY_AFTER_MAX.min(2 * batch.retry_after);
        }
    }

    /// Those that are due, longest first, with their bytes.
    pub(crate) fn due(&self, now: Instant) -> Vec<(Uuid, usize)> {
        let kept = self.kept();
        let mut due: Vec<_> = kept.by_id.iter().filter(|(_, batch)| batch.due <= now).collect();
        due.sort_by_key(|(_, batch)| batch.due);
        due.into_iter().map(|(id, batch)| (*id, batch.bytes)).collect()
    }

    /// How many are kept.
    pub(crate) fn count(&self) -> usize {
        self.kept().by_id.len()
    }

    /// How many were written again so far.
    pub(crate) fn replayed_count(&self) -> u64 {
        self.replayed_count.load(Ordering::Relaxed)
    }

    /// What is done under this lock does not end half way, so a poisoned one still holds a sound value.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, id: Uuid, bytes: usize, due: Instant) {
        let before = self.by_id.insert(id, KeptBatch { bytes, due, retry_after: RETRY_AFTER });
        self.bytes = self.bytes + bytes - before.map_or(0, |before| before.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_let_go_is_due_after_a_while_and_less_often_when_it_fails() {
        let (kept, begun) = (KeptBatches::default(), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        for (number, due) in [(1, 4), (2, 3), (3, 4)] {
            kept.begin(id(number), 10, after(due)).expect("there is room");
        }
        kept.let_go(id(3));
        assert_eq!(kept.due(after(2)), []);
        assert_eq!(kept.due(after(4)), [(id(2), 10), (id(1), 10)], "the longest first");
        kept.replayed(id(2));
        for (now, next) in [(4, 5), (5, 7), (7, 11), (11, 19), (19, 29), (29, 39)] {
            kept.try_later(id(1), after(now));
            assert_eq!((kept.due(after(next - 1)).len(), kept.due(after(next)).len()), (0, 1), "{now}");
        }
        assert_eq!((kept.count(), kept.replayed_count()), (1, 1));
    }

    #[tokio::test]
    async fn there_is_a_bound_to_what_is_kept_for_others() {
        let (kept, now) = (KeptBatches::default(), Instant::now());
        let is_refused =
            |bytes| matches!(kept.begin(id(0), bytes, now), Err(CoordinatorError::Overloaded { .. }));
        kept.find(id(1), BYTES_MAX - 10, now);
        assert!(is_refused(11) && !is_refused(10));
        kept.let_go(id(0));
        kept.let_go(id(1));
        (0..COUNT_MAX as u128).for_each(|number| kept.find(id(1 + number), 1, now));
        assert!(is_refused(1));
        kept.let_go(id(7));
        assert!(!is_refused(1));
    }

    #[tokio::test]
    #[should_panic(expected = "their bytes are the sum of each one's")]
    async fn the_bytes_of_all_are_those_of_each() {
        let kept = KeptBatches::default();
        kept.find(id(1), 10, Instant::now());
        kept.kept().bytes += 1;
        kept.let_go(id(1));
    }
}
