//! Timestamps that a node gives: unique over its shards, never going back, later than all that it was told of.
//!
//! Shard `i` of `n` gives only microseconds that leave `i` when divided by `n`, so shards need not
//! talk. A clock that stands or jumps back makes the shard count on from its last timestamp. How far the
//! others are it knows by a shared floor, which no timestamp of the node is above: each shard raises it
//! ten thousand times a second, a lead ahead, and looks at it only when the clock is far behind it.
//! After a restart the shards count on from the greatest mark found in logs and manifests.
//!
//! What one shard has heard of another node, all shards go beyond: a client that is shown a row by one of them may
//! write it anew by another.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use runtime::Clock;

/// How far ahead of its timestamps a shard raises the floor, in µs.
const LEAD_MAX: i64 = 100;
/// A floor that is so far ahead of the clock, in µs, was not raised at this time: the clock has jumped
/// back, or some shard gives more than one timestamp a microsecond.
const AHEAD: i64 = 2 * LEAD_MAX;
/// How far ahead of the clock a timestamp of another node is believed, in µs.
const SKEW_MAX: i64 = 10_000_000;
const _: () = assert!(AHEAD > LEAD_MAX, "a floor that was raised just now is not far ahead");

/// What the shards of a node tell each other of timestamps, in µs.
#[derive(Debug)]
pub struct NodeTimestamps {
    /// None that was given is above it.
    floor: AtomicI64,
    /// The greatest that was heard of another node and was ahead of the clock.
    heard: AtomicI64,
}

impl Default for NodeTimestamps {
    fn default() -> Self {
        NodeTimestamps { floor: AtomicI64::new(i64::MIN), heard: AtomicI64::new(i64::MIN) }
    }
}

/// Timestamps that a shard gives.
pub struct Timestamps {
    clock: Arc<dyn Clock>,
    shard: i64,
    shard_count: i64,
    last: Cell<i64>,
    /// How far this shard has raised the floor.
    raised_to: Cell<i64>,
    node: Arc<NodeTimestamps>,
}

impl Timestamps {
    /// Of a shard of `shard_count`, which count on from `last`, in µs. What it shares is one for all of them.
    pub fn new(
        clock: Arc<dyn Clock>,
        shard: usize,
        shard_count: usize,
        last: i64,
        node: Arc<NodeTimestamps>,
    ) -> Self {
        assert!(shard < shard_count, "each shard gives timestamps that no other gives");
        let as_i64 = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Timestamps {
            clock,
            shard: as_i64(shard),
            shard_count: as_i64(shard_count).max(1),
            last: Cell::new(last),
            raised_to: Cell::new(i64::MIN),
            node,
        }
    }

    /// The next one, in µs.
    #[inline]
    pub fn next(&self) -> i64 {
        let now = self.clock.now_micros();
        let is_ahead = |time: i64| time > now.saturating_add(AHEAD);
        let before = self.last.get().max(self.node.heard.load(Ordering::Relaxed));
        let mut least = now.max(before.saturating_add(1));
        let floor = self.node.floor.load(Ordering::Relaxed);
        if is_ahead(floor) {
            least = least.max(floor);
        }
        let ahead = (self.shard - least.rem_euclid(self.shard_count)).rem_euclid(self.shard_count);
        let next = least.saturating_add(ahead);
        self.last.set(next);
        if is_ahead(next) {
            // To the place itself: if each shard went a lead ahead of the other, they would never stop.
            self.node.floor.fetch_max(next, Ordering::Relaxed);
        } else if next > self.raised_to.get() {
            let raised_to = next.saturating_add(LEAD_MAX);
            self.raised_to.set(raised_to);
            self.node.floor.fetch_max(raised_to, Ordering::Relaxed);
        }
        next
    }

    /// The next one, in µs, and later than all that any shard of the node gave so far.
    pub fn next_after_all(&self) -> i64 {
        self.believe(self.latest());
        self.next()
    }

    /// None that the node gave so far or has heard of is above this one, in µs: what other nodes are told.
    pub fn latest(&self) -> i64 {
        self.clock.now_micros().max(self.greatest())
    }

    /// The same, whatever the clock shows.
    #[inline]
    fn greatest(&self) -> i64 {
        let of_node = self.node.floor.load(Ordering::Relaxed).max(self.node.heard.load(Ordering::Relaxed));
        self.last.get().max(of_node)
    }

    /// Another node has given this one, in µs, or may have: the next one is later. One that is too far ahead of the
    /// clock is not believed, or one wrong clock would take all others along; `SKEW_MAX` says how far.
    pub fn hear(&self, micros: i64) {
        if micros <= self.clock.now_micros().saturating_add(SKEW_MAX) {
            self.believe(micros);
        }
    }

    /// The same, however far ahead of the clock it is.
    pub fn believe(&self, micros: i64) {
        // Looked at first: shards that write to one place wait for each other.
        if micros > self.clock.now_micros() && micros > self.node.heard.load(Ordering::Relaxed) {
            self.node.heard.fetch_max(micros, Ordering::Relaxed);
        }
    }

    /// No timestamp that this node gave so far is above this one, nor will one be soon that the
    /// clock does not reach: what a log record remembers for the next start.
    #[inline]
    pub fn mark(&self) -> i64 {
        let lead = self.clock.now_micros().saturating_add(LEAD_MAX);
        lead.max(self.greatest())
    }
}

#[cfg(test)]
mod tests {
    use runtime::ManualClock;

    use super::*;

    #[test]
    fn shards_never_give_the_same_timestamp_and_never_go_back() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000));
        let node = Arc::default();
        let shards: Vec<_> =
            (0..3).map(|shard| Timestamps::new(Arc::clone(&clock), shard, 3, 0, Arc::clone(&node))).collect();

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
    fn one_that_is_after_all_is_after_those_of_other_shards_and_stays_near_the_clock() {
        let clock = Arc::new(ManualClock::new(1_000));
        let node = Arc::default();
        let shard =
            |shard| Timestamps::new(Arc::<ManualClock>::clone(&clock), shard, 2, 0, Arc::clone(&node));
        let shards = [shard(0), shard(1)];
        let mut last = 0;
        for step in 0..10_000i64 {
            clock.set_micros(1_000 + 4 * step);
            let (one, other) = (&shards[(step % 2) as usize], &shards[(1 - step % 2) as usize]);
            let plain = one.next();
            let given = other.next_after_all();
            assert!(given > plain && given > last, "{given} after {plain} and {last}");
            last = given;
        }
        assert!(last < 1_000 + 40_000 + AHEAD + 2 * LEAD_MAX, "{last}");
    }

    #[test]
    #[should_panic(expected = "each shard gives timestamps that no other gives")]
    fn a_shard_that_would_give_those_of_another_is_seen() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000));
        Timestamps::new(clock, 3, 3, 0, Arc::default());
    }

    #[test]
    fn what_was_heard_of_another_node_is_passed_unless_its_clock_is_wrong() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000));
        let timestamps = Timestamps::new(clock, 0, 1, 0, Arc::default());
        timestamps.hear(1_000 + SKEW_MAX + 1);
        assert_eq!((timestamps.latest(), timestamps.next()), (1_000, 1_000));
        timestamps.hear(900);
        assert_eq!(timestamps.next(), 1_001);
        timestamps.hear(1_500);
        assert_eq!((timestamps.latest(), timestamps.next()), (1_500, 1_501));
        assert_eq!(timestamps.latest(), 1_501, "far ahead of the clock it is exact");
        timestamps.hear(1_000 + SKEW_MAX);
        assert_eq!(timestamps.next(), 1_001 + SKEW_MAX);
    }

    /// A row was shown by one shard, and another one gave what was written then a timestamp before the row's.
    #[test]
    fn what_one_shard_has_heard_all_shards_pass_and_tell() {
        for ahead in [1, AHEAD / 2, AHEAD, AHEAD + 1, 5_000_000] {
            let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000));
            let node = Arc::default();
            let [one, other] =
                [0, 1].map(|shard| Timestamps::new(Arc::clone(&clock), shard, 2, 0, Arc::clone(&node)));
            one.hear(1_000 + ahead);
            assert!(other.latest() >= 1_000 + ahead, "{ahead}");
            let given = other.next();
            assert!(given > 1_000 + ahead, "{ahead}: {given}");
            assert!(one.latest() >= given, "{ahead}: the other one has given it");
            assert!(one.latest() <= given + LEAD_MAX, "{ahead}");
        }
    }

    /// Two nodes that hear of each other do not drive each other away from the clock.
    #[test]
    fn what_nodes_tell_each_other_stays_near_the_quickest_clock() {
        let node_of = |clock: &Arc<ManualClock>| {
            Timestamps::new(Arc::<ManualClock>::clone(clock), 0, 1, 0, Arc::default())
        };
        let clocks = [1_000_000, 1_000_700].map(|micros| Arc::new(ManualClock::new(micros)));
        let nodes = clocks.each_ref().map(node_of);
        for step in 0..10_000i64 {
            clocks
                .iter()
                .zip([1_000_000, 1_000_700])
                .for_each(|(clock, start)| clock.set_micros(start + 5 * step));
            let from = step.rem_euclid(2) as usize;
            nodes[from].next();
            nodes[1 - from].hear(nodes[from].latest());
            let ahead = nodes[1 - from].next() - (1_000_700 + 5 * step);
            assert!(ahead <= AHEAD + LEAD_MAX + 2, "{ahead} µs ahead after {step} steps");
        }
    }

    #[test]
    fn a_restart_with_the_clock_set_back_counts_on() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000));
        assert!(Timestamps::new(clock, 0, 2, 5_000, Arc::default()).next() > 5_000);
    }

    /// A shard that had not given any for a while took the clock's word, and its writes lost against older ones.
    #[test]
    fn a_clock_that_jumps_back_while_shards_run_takes_no_shard_back() {
        let clock = Arc::new(ManualClock::new(0));
        let node = Arc::default();
        let shard =
            |shard| Timestamps::new(Arc::<ManualClock>::clone(&clock), shard, 3, 0, Arc::clone(&node));
        let shards = [shard(0), shard(1), shard(2)];
        let last = Cell::new(0);
        let give = |shard: &Timestamps, what: &str| {
            let next = shard.next();
            let before = last.replace(next);
            assert!(next > before, "{what}: {next} after {before}");
        };
        for second in 1..5i64 {
            clock.set_micros(second * 1_000_000);
            give(&shards[0], "the clock runs");
            clock.set_micros(second * 1_000_000 + 700);
            give(&shards[1], "within a lead");
        }
        clock.set_micros(10_000);
        // The third was never asked before.
        for round in 0..1_000 {
            give(&shards[2 - round % 3], "the clock is back");
        }
        assert!(last.get() < 4_100_000, "the shards do not drive each other on: {last:?}");
        clock.set_micros(5_000_000);
        give(&shards[1], "the clock has caught up");
        assert!(last.get() < 5_000_003);
    }

    #[test]
    fn a_shard_whose_clock_went_back_takes_the_others_along() {
        let node = Arc::default();
        let clock = |micros| Arc::new(ManualClock::new(micros)) as Arc<dyn Clock>;
        let ahead = Timestamps::new(clock(1_000), 0, 2, 90_000, Arc::clone(&node));
        let behind = Timestamps::new(clock(1_000), 1, 2, 0, node);
        assert!(behind.next() < 90_000);
        let given = ahead.next();
        assert!(behind.next() > given);
        assert!(behind.mark() >= given);
    }
}
