//! Statements that took long: a line in the log for each, with how often and how long, gathered over all shards.
//!
//! What Cassandra's `slow_query_log_timeout` is for, told where the client waits: by the coordinator, of every
//! statement, with all that it waited for on other nodes. A replica that is slow shows in a trace, and in the times of
//! its tables. A log that is asked for ten thousand times a second must not fill the disk, so a report comes
//! [`REPORT_AFTER`] the first of its statements, and has so many lines at most.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

/// So long statements are gathered: Cassandra's `monitoring_report_interval_ms`.
const REPORT_AFTER: Duration = Duration::from_secs(5);
/// So many different ones are told in a report; of the others, how many there were. Cassandra's
/// `monitoring_max_operations`.
const STATEMENT_COUNT_MAX: usize = 50;

/// What took long since the last report.
#[derive(Debug)]
pub(crate) struct SlowQueries {
    /// What takes longer is told; `None` when nothing is.
    limit: Option<Duration>,
    total_count: AtomicU64,
    gathered: Mutex<Gathered>,
}

/// A statement as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlowQuery {
    /// Its text, or the start of it.
    pub(crate) statement: String,
    /// The session's, which is meant where the text names none.
    pub(crate) keyspace: String,
    pub(crate) consistency: &'static str,
}

#[derive(Debug, Default)]
struct Gathered {
    times: BTreeMap<SlowQuery, Times>,
    left_out_count: u64,
}

/// How often it took long, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    count: u32,
    total: Duration,
    shortest: Duration,
    longest: Duration,
}

impl Default for SlowQueries {
    fn default() -> Self {
        SlowQueries::longer_than(None)
    }
}

impl SlowQueries {
    /// Those that take longer than this.
    pub(crate) fn longer_than(limit: Option<Duration>) -> Self {
        SlowQueries { limit, total_count: AtomicU64::new(0), gathered: Mutex::default() }
    }

    /// Is that long?
    pub(crate) fn is_slow(&self, took: Duration) -> bool {
        self.limit.is_some_and(|limit| took > limit)
    }

    /// How many there were since the start.
    pub(crate) fn total_count(&self) -> u64 {
        self.total_count.load(Ordering::Relaxed)
    }

    /// Takes one in that took so long; it is told in the next report, which goes out by itself.
    pub(crate) fn add(self: &Arc<Self>, query: SlowQuery, took: Duration) {
        self.total_count.fetch_add(1, Ordering::Relaxed);
        if self.gathered().add(query, took) {
            let slow = Arc::clone(self);
            runtime::spawn_local("report of slow statements", async move {
                sleep(REPORT_AFTER).await;
                slow.report();
            });
        }
    }

    fn report(&self) {
        let Gathered { times, left_out_count } = std::mem::take(&mut *self.gathered());
        let limit_ms = self.limit.unwrap_or_default().as_millis();
        for (SlowQuery { statement, keyspace, consistency }, times) in times {
            let Times { count, total, shortest, longest } = times;
            let [mean_ms, shortest_ms, longest_ms] =
                [total / count, shortest, longest].map(|time| time.as_millis());
            tracing::warn!(
                %statement, %keyspace, consistency, count, mean_ms, shortest_ms, longest_ms, limit_ms,
                "a statement took long"
            );
        }
        if left_out_count > 0 {
            tracing::warn!(left_out_count, limit_ms, "further statements took long");
        }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gathered {
    /// Takes one in; is it the first of a report?
    fn add(&mut self, query: SlowQuery, took: Duration) -> bool {
        let (is_first, is_full) = (self.times.is_empty(), self.times.len() >= STATEMENT_COUNT_MAX);
        match self.times.entry(query) {
            Entry::Occupied(times) => times.into_mut().add(took),
            Entry::Vacant(_) if is_full => self.left_out_count += 1,
            Entry::Vacant(place) => _ = place.insert(Times::of(took)),
        }
        is_first
    }
}

impl Times {
    fn of(took: Duration) -> Times {
        Times { count: 1, total: took, shortest: took, longest: took }
    }

    fn add(&mut self, took: Duration) {
        self.count = self.count.saturating_add(1);
        self.total = self.total.saturating_add(took);
        (self.shortest, self.longest) = (self.shortest.min(took), self.longest.max(took));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(number: usize) -> SlowQuery {
        let statement = format!("SELECT {number}");
        SlowQuery { statement, keyspace: "k".into(), consistency: "ONE" }
    }

    #[test]
    fn only_what_takes_longer_is_slow_and_nothing_is_without_a_limit() {
        let slow = SlowQueries::longer_than(Some(Duration::from_millis(500)));
        assert!(!slow.is_slow(Duration::from_millis(500)));
        assert!(slow.is_slow(Duration::from_millis(501)));
        assert!(!SlowQueries::longer_than(None).is_slow(Duration::MAX));
    }

    #[test]
    fn a_report_gathers_what_is_asked_for_again_and_counts_what_there_is_no_room_for() {
        let mut gathered = Gathered::default();
        let [short, long] = [600, 1_000].map(Duration::from_millis);
        assert!(gathered.add(query(0), short), "the first has a report");
        assert!(!gathered.add(query(0), long));
        assert!((1..60).all(|number| !gathered.add(query(number), short)));
        let of_two = Times { count: 2, total: short + long, shortest: short, longest: long };
        assert_eq!(gathered.times[&query(0)], of_two);
        assert_eq!((gathered.times.len(), gathered.left_out_count), (STATEMENT_COUNT_MAX, 10));
        assert!(!gathered.add(query(1), long), "one that is there has its place");
        assert_eq!(gathered.left_out_count, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_report_begins_with_what_comes_after_one() {
        let tasks = tokio::task::LocalSet::new();
        let slow = Arc::new(SlowQueries::longer_than(Some(Duration::ZERO)));
        tasks
            .run_until(async {
                slow.add(query(1), REPORT_AFTER);
                assert_eq!(slow.gathered().times.len(), 1);
                sleep(2 * REPORT_AFTER).await;
                assert!(slow.gathered().times.is_empty(), "it was told");
                slow.add(query(1), REPORT_AFTER);
                sleep(2 * REPORT_AFTER).await;
                assert!(slow.gathered().times.is_empty(), "and again");
            })
            .await;
        assert_eq!(slow.total_count(), 2);
    }
}
