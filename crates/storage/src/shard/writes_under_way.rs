//! When the writes end that are under way, also those whose asker has gone.
//!
//! A write that another shard sent goes on when its asker gives up, and keeps its mutations in memory while it waits
//! for room or for the log. Who has to know when they are gone asks for the end of all that are under way:
//!
//! ```text
//!   generation 0   ──────────────►
//!                  ─────────────────────►
//!   ended                 ▲ asked        ▲ answered
//!   generation 1           ───────────────────────►     began after the question: not waited for
//! ```

use std::cell::Cell;

use commitlog::CommitLog;
use tokio::sync::{Mutex, Notify};

/// Those of a shard.
#[derive(Debug, Default)]
pub(crate) struct WritesUnderWay {
    /// How many there are of each generation.
    counts: [Cell<usize>; 2],
    /// The generation of those that begin now.
    current: Cell<usize>,
    /// Told when the last of the other generation ends.
    last_ended: Notify,
    /// Held by the one who asks: there are only two generations.
    turn: Mutex<()>,
}

/// One of them, until this is dropped.
#[derive(Debug)]
pub struct WriteUnderWay<'a> {
    all: &'a WritesUnderWay,
    generation: usize,
}

/// The same as others see it.
#[derive(Clone, Copy)]
pub struct Writes<'a> {
    pub(super) under_way: &'a WritesUnderWay,
    pub(super) log: &'a CommitLog,
}

impl<'a> Writes<'a> {
    /// Says that there is one that has mutations in memory, until what this gives is dropped.
    pub fn begin(self) -> WriteUnderWay<'a> {
        self.under_way.begin()
    }

    /// Returns when none that is under way now has anything in memory any more, also none whose asker has gone: each
    /// has ended, and what it appended to the log is on the disk, or the log has failed.
    pub async fn ended(self) {
        self.under_way.ended().await;
        // A failure was told to the writes.
        _ = self.log.sync().await;
    }
}

impl WritesUnderWay {
    /// Begins one.
    #[inline]
    pub(super) fn begin(&self) -> WriteUnderWay<'_> {
        let generation = self.current.get();
        self.counts[generation].set(self.counts[generation].get() + 1);
        WriteUnderWay { all: self, generation }
    }

    /// Returns when those have ended that were under way when it was first polled.
    ///
    /// # Cancel safety
    /// Dropped, nothing is lost.
    pub(super) async fn ended(&self) {
        let _turn = self.turn.lock().await;
        let asked = self.current.get();
        // One who asked and went away may have left some.
        self.empty(1 - asked).await;
        self.current.set(1 - asked);
        self.empty(asked).await;
    }

    async fn empty(&self, generation: usize) {
        while self.counts[generation].get() > 0 {
            self.last_ended.notified().await;
        }
    }
}

impl Drop for WriteUnderWay<'_> {
    fn drop(&mut self) {
        let WriteUnderWay { all, generation } = *self;
        let count = all.counts[generation].get().checked_sub(1).expect("a write ends once");
        all.counts[generation].set(count);
        // Nobody waits for those of the current generation.
        if count == 0 && generation != all.current.get() {
            all.last_ended.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn those_are_waited_for_that_began_before_the_question() {
        let all = WritesUnderWay::default();
        assert!(all.ended().now_or_never().is_some(), "there are none");
        let (one, two) = (all.begin(), all.begin());
        let mut ended = pin!(all.ended());
        assert!(ended.as_mut().now_or_never().is_none(), "two are under way");
        let later = all.begin();
        drop(two);
        assert!(ended.as_mut().now_or_never().is_none(), "one still is");
        drop(one);
        assert!(ended.now_or_never().is_some(), "what came later is not waited for");
        drop(later);
        assert!(all.ended().now_or_never().is_some());
    }

    #[test]
    fn one_who_went_away_leaves_none_behind_that_the_next_does_not_wait_for() {
        let all = WritesUnderWay::default();
        let one = all.begin();
        assert!(all.ended().now_or_never().is_none());
        let two = all.begin();
        let mut ended = pin!(all.ended());
        assert!(ended.as_mut().now_or_never().is_none());
        drop(two);
        assert!(ended.as_mut().now_or_never().is_none(), "the first is older than the first question");
        drop(one);
        assert!(ended.now_or_never().is_some());
    }
}
