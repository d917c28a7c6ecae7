//! What all shards of a node share about compaction: how many run at once, and how fast they may be.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runtime::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who waits for its turn at the rate looks so often whether to go on waiting.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Shared by all shards. Asked between pieces of work, never by a read or a write.
#[derive(Debug)]
pub struct CompactionControl {
    slots: Arc<Semaphore>,
    slot_count: usize,
    /// One file at a time is written anew in the background. It takes no slot, so compactions never wait for it.
    rewrite_turn: Arc<Semaphore>,
    /// Bytes a second of all compactions together; 0 is without limit.
    bytes_per_second: AtomicU64,
    /// When the next piece may begin, on the node's clock.
    free_at: Mutex<Duration>,
}

impl CompactionControl {
    /// For so many at once, at least one, and so many bytes a second of all together; 0 is without limit.
    pub fn new(slot_count: usize, bytes_per_second: u64) -> Arc<Self> {
        let slot_count = slot_count.clamp(1, 1_024);
        Arc::new(CompactionControl {
            slots: Arc::new(Semaphore::new(slot_count)),
            slot_count,
            rewrite_turn: Arc::new(Semaphore::new(1)),
            bytes_per_second: AtomicU64::new(bytes_per_second),
            free_at: Mutex::new(Duration::ZERO),
        })
    }

    /// How many compactions may run at once.
    pub fn slot_count(&self) -> usize {
        self.slot_count
    }

    /// Lets none run until what this gives is dropped.
    ///
    /// # Panics
    /// When some run already: those could not be held any more.
    pub fn hold(&self) -> CompactionsHeld {
        let count = u32::try_from(self.slot_count).expect("slots are few");
        let slots = Arc::clone(&self.slots).try_acquire_many_owned(count);
        CompactionsHeld { _slots: slots.expect("compactions are held before any begins") }
    }

    /// Waits until one more may run; it may until the permit is dropped.
    pub async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }

    /// Waits until a file may be written anew in the background; it may until the permit is dropped.
    pub async fn rewrite_turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.rewrite_turn).acquire_owned().await.ok()
    }

    /// Bytes a second that all may read together; 0 is without limit.
    pub fn rate(&self) -> u64 {
        self.bytes_per_second.load(Ordering::Relaxed)
    }

    /// Sets another rate.
    pub fn set_rate(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
        // A debt at the old rate is forgiven.
        *self.free_at.lock().unwrap_or_else(PoisonError::into_inner) = Duration::ZERO;
    }

    /// Takes in that so many bytes were read, and waits as long as they may take; no longer than until the work
    /// is to be given up, or the rate is another.
    pub async fn pay(&self, bytes: u64, clock: &dyn Clock, is_over: impl Fn() -> bool) {
        let rate = self.rate();
        let mut left = self.debt(bytes, clock.elapsed());
        while !left.is_zero() && self.rate() == rate && !is_over() {
            let step = left.min(LOOK_EVERY);
            tokio::time::sleep(step).await;
            left -= step;
        }
    }

    /// Takes in that so many bytes were compacted; how long to wait before the next piece.
    fn debt(&self, bytes: u64, now: Duration) -> Duration {
        let rate = self.rate();
        if rate == 0 {
            return Duration::ZERO;
        }
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = (*free_at).max(now).saturating_add(Duration::from_secs_f64(bytes as f64 / rate as f64));
        free_at.saturating_sub(now)
    }
}

/// As long as this is there, no compaction begins.
#[derive(Debug)]
#[must_use]
pub struct CompactionsHeld {
    _slots: OwnedSemaphorePermit,
}

/// What a merge tells while it goes on, and is told. Read by the shard, written on another thread.
#[derive(Debug, Default)]
pub struct MergeWatch {
    /// Uncompressed bytes read of the inputs.
    pub(crate) read_bytes: AtomicU64,
    /// Set when it is to be given up.
    pub(crate) is_stopped: AtomicBool,
}

impl MergeWatch {
    /// Uncompressed bytes read of the inputs by now.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Has the merge given up.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Is it to be given up?
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_begins_while_all_are_held() {
        let control = CompactionControl::new(3, 0);
        let held = control.hold();
        assert!(control.slots.try_acquire().is_err());
        drop(held);
        assert!(control.slots.try_acquire_many(3).is_ok());
    }

    #[test]
    fn all_share_one_rate() {
        let control = CompactionControl::new(2, 1_000);
        let second = Duration::from_secs(1);
        assert_eq!(control.debt(500, Duration::ZERO), second / 2);
        assert_eq!(control.debt(500, Duration::ZERO), second);
        assert_eq!(control.debt(1_000, 3 * second), second);
        control.set_rate(0);
        assert_eq!(control.debt(u64::MAX, Duration::ZERO), Duration::ZERO);
        assert_eq!(CompactionControl::new(0, 0).slot_count(), 1);
    }
}
