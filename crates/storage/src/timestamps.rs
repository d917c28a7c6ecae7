//! Timestamps that a node gives: unique over its shards, never going back.
//!
//! Shard `i` of `n` gives only microseconds that leave `i` when divided by `n`, so shards need not
//! talk. A clock that stands or jumps back makes the shard count on from its last timestamp, and tells
//! the others how far that is through a shared floor, which nobody touches while the clock runs.
//! After a restart the shards count on from the greatest mark found in logs and manifests.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use runtime::Clock;

/// How far ahead of the clock timestamps may be before the other shards are told, in µs.
const LEAD_MAX: i64 = 1_000;

pub(crate) struct Timestamps {
    clock: Arc<dyn Clock>,
    shard: i64,
    shard_count: i64,
    last: Cell<i64>,
    /// Some shard is that far ahead of its clock.
    floor: Arc<AtomicI64>,
}

impl Timestamps {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        shard: usize,
        shard_count: usize,
        last: i64,
        floor: Arc<AtomicI64>,
    ) -> Self {
        let as_i64 = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Timestamps {
            clock,
            shard: as_i64(shard),
            shard_count: as_i64(shard_count).max(1),
            last: Cell::new(last),
            floor,
        }
    }

    /// The next one, in µs.
    pub(crate) fn next(&self) -> i64 {
        let now = self.clock.now_micros();
        let least = now.max(self.last.get().saturating_add(1)).max(self.floor.load(Ordering::Relaxed));
        let ahead = (self.shard - least.rem_euclid(self.shard_count)).rem_euclid(self.shard_count);
        let next = least.saturating_add(ahead);
        self.last.set(next);
        if next > now.saturating_add(LEAD_MAX) {
            self.floor.fetch_max(next, Ordering::Relaxed);
        }
        next
    }

    /// No timestamp that this node gave so far is above this one, nor will one be soon that the
    /// clock does not reach: what a log record remembers for the next start.
    pub(crate) fn mark(&self) -> i64 {
        let lead = self.clock.now_micros().saturating_add(LEAD_MAX);
        lead.max(self.last.get()).max(self.floor.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use runtime::ManualClock;

    use super::*;

    #[test]
    fn shards_never_give_the_same_timestamp_and_never_go_back() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000));
        let floor = Arc::new(AtomicI64::new(i64::MIN));
        let shards: Vec<_> = (0..3)
            .map(|shard| Timestamps::new(Arc::clone(&clock), shard, 3, 0, Arc::clone(&floor)))
            .collect();

        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10 {
            for shard in &shards {
                let before = shard.last.get();
                let next = shard.next();
                assert!(next > before && seen.insert(next), "{next} after {before}");
            }
        }
    }

    #[test]
    fn a_restart_with_the_clock_set_back_counts_on() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000));
        assert!(Timestamps::new(clock, 0, 2, 5_000, Arc::new(AtomicI64::new(i64::MIN))).next() > 5_000);
    }

    #[test]
    fn a_shard_whose_clock_went_back_takes_the_others_along() {
        let floor = Arc::new(AtomicI64::new(i64::MIN));
        let clock = |micros| Arc::new(ManualClock::new(micros)) as Arc<dyn Clock>;
        let ahead = Timestamps::new(clock(1_000), 0, 2, 90_000, Arc::clone(&floor));
        let behind = Timestamps::new(clock(1_000), 1, 2, 0, floor);
        assert!(behind.next() < 90_000);
        let given = ahead.next();
        assert!(behind.next() > given);
        assert!(behind.mark() >= given);
    }
}
