//! Timestamps that a node gives: unique over its shards, never going back.
//!
//! Shard `i` of `n` gives only microseconds that leave `i` when divided by `n`, so shards need not
//! talk. A clock that stands or jumps back makes the shard count on from its last timestamp; after
//! a restart it counts on from the greatest it finds in its log and manifest.

use std::cell::Cell;
use std::sync::Arc;

use runtime::Clock;

pub(crate) struct Timestamps {
    clock: Arc<dyn Clock>,
    shard: i64,
    shard_count: i64,
    last: Cell<i64>,
}

impl Timestamps {
    pub(crate) fn new(clock: Arc<dyn Clock>, shard: usize, shard_count: usize, last: i64) -> Self {
        let as_i64 = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Timestamps {
            clock,
            shard: as_i64(shard),
            shard_count: as_i64(shard_count).max(1),
            last: Cell::new(last),
        }
    }

    /// The next one, in µs.
    pub(crate) fn next(&self) -> i64 {
        let least = self.clock.now_micros().max(self.last.get().saturating_add(1));
        let ahead = (self.shard - least.rem_euclid(self.shard_count)).rem_euclid(self.shard_count);
        let next = least.saturating_add(ahead);
        self.last.set(next);
        next
    }

    /// The last one given.
    pub(crate) fn last(&self) -> i64 {
        self.last.get()
    }
}

#[cfg(test)]
mod tests {
    use runtime::ManualClock;

    use super::*;

    #[test]
    fn shards_never_give_the_same_timestamp_and_never_go_back() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000));
        let shards: Vec<_> = (0..3).map(|shard| Timestamps::new(Arc::clone(&clock), shard, 3, 0)).collect();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10 {
            for shard in &shards {
                let before = shard.last();
                let next = shard.next();
                assert!(next > before && seen.insert(next), "{next} after {before}");
            }
        }
    }

    #[test]
    fn a_restart_with_the_clock_set_back_counts_on() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000));
        assert!(Timestamps::new(clock, 0, 2, 5_000).next() > 5_000);
    }
}
