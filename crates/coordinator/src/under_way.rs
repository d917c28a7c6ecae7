//! Logged batches over several shards that are under way: how many there may be that could not be finished, and how
//! many of these are written again at a time.
//!
//! An *unfinished* batch is one that was recorded and failed since. It keeps nothing in memory but a small task, which
//! reads its record when its turn comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::CoordinatorError;

/// When so many are unfinished, no other is begun: what is in their way is in the way of most. Each takes up to
/// `BATCH_BYTES_MAX` of the disk until it is done.
const UNFINISHED_MAX: usize = 256;

/// So many of them are in memory, to be written again, at a time.
const TRIED_TOGETHER_MAX: usize = 4;

/// Those of a node.
#[derive(Debug)]
pub(crate) struct BatchesUnderWay {
    unfinished_count: AtomicUsize,
    turns: Semaphore,
}

/// One of them, until this is dropped.
#[derive(Debug)]
pub(crate) struct BatchUnderWay {
    all: Arc<BatchesUnderWay>,
    is_unfinished: bool,
}

impl Default for BatchesUnderWay {
    fn default() -> Self {
        BatchesUnderWay {
            unfinished_count: AtomicUsize::new(0),
            turns: Semaphore::new(TRIED_TOGETHER_MAX),
        }
    }
}

impl BatchesUnderWay {
    /// Begins one that is not recorded yet.
    ///
    /// # Errors
    /// `Overloaded`: too many are unfinished.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<BatchUnderWay, CoordinatorError> {
        let count = self.unfinished_count();
        if count >= UNFINISHED_MAX {
            let what = format!("{count} logged batches could not be finished yet");
            return Err(CoordinatorError::Overloaded { what });
        }
        Ok(BatchUnderWay { all: Arc::clone(self), is_unfinished: false })
    }

    /// How many failed after they were recorded, and are written again until they are whole.
    pub(crate) fn unfinished_count(&self) -> usize {
        self.unfinished_count.load(Ordering::Relaxed)
    }
}

impl BatchUnderWay {
    /// It failed after it was recorded.
    pub(crate) fn note_failure(&mut self) {
        if !std::mem::replace(&mut self.is_unfinished, true) {
            self.all.unfinished_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until it may be written again, as long as what this gives is kept.
    pub(crate) async fn turn(&self) -> SemaphorePermit<'_> {
        self.all.turns.acquire().await.expect("nobody closes it")
    }
}

impl Drop for BatchUnderWay {
    fn drop(&mut self) {
        if self.is_unfinished {
            self.all.unfinished_count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn no_more_than_a_few_are_tried_together() {
        let all = Arc::<BatchesUnderWay>::default();
        let begun: Vec<_> = (0..=TRIED_TOGETHER_MAX).map(|_| all.begin().expect("none failed")).collect();
        let turns: Vec<_> = begun.iter().map(|batch| batch.turn().now_or_never()).collect();
        let count = turns.iter().flatten().count();
        assert_eq!((count, turns.len()), (TRIED_TOGETHER_MAX, TRIED_TOGETHER_MAX + 1));
        drop(turns);
        assert!(begun[0].turn().now_or_never().is_some(), "the next has its turn");
    }
}
