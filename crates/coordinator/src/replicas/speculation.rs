//! When one more replica is asked because an answer is late: by how fast each replica has answered so far.
//!
//! By the replica's time and not the request's: a request that waits for a slow replica is slow itself, and what is fed
//! by that waits longer and longer (CASSANDRA-8783, scylladb#7342). So an answer that nobody waits for any more says
//! nothing of how long it would have taken. But it says that the replica is to be avoided for a moment: others are
//! asked before it, and once in a while one read asks it again. `speculative_retry` of the table says how late is
//! late: a percentile of that time, a time, the lesser or greater of two, always, or never.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use schema::Table;
use storage::ShardHandle;
use tokio::time::Instant;

/// Buckets of latencies: each is a quarter longer than the one before, from 10 µs to some 20 minutes.
const BUCKET_COUNT: usize = 84;
const SHORTEST_MICROS: f64 = 10.0;
const GROWTH: f64 = 1.25;
/// After so many, all counts are halved: what was long ago counts less.
const HALVED_AFTER: u32 = 8_192;
/// Fewer say nothing.
const ENOUGH: u32 = 32;
/// How late is late as long as nothing is known: Cassandra's `speculative_retry` of earlier days.
const UNKNOWN: Duration = Duration::from_millis(50);
/// Not earlier: below it, asking somebody else costs more than it saves.
const SHORTEST: Duration = Duration::from_millis(1);

/// A replica that was late is avoided for so long, and then asked again by one read. By then the ring knows if it does
/// not live; one that was late only once answers others of its requests meanwhile, and is not avoided any more.
const AVOIDED_FOR: Duration = Duration::from_secs(1);

/// How fast a replica has answered.
#[derive(Debug)]
pub struct Latencies {
    counts: RefCell<[u32; BUCKET_COUNT]>,
    count: Cell<u32>,
    /// Until when it is avoided; `None` when it has answered since it was late.
    avoided_until: Cell<Option<Instant>>,
}

impl Default for Latencies {
    fn default() -> Latencies {
        let (counts, count) = (RefCell::new([0; BUCKET_COUNT]), Cell::new(0));
        Latencies { counts, count, avoided_until: Cell::new(None) }
    }
}

impl Latencies {
    /// It is asked. If it was late before, others avoid it until this one has its answer.
    pub(super) fn ask(&self) {
        if self.avoided_until.get().is_some() {
            self.avoid();
        }
    }

    /// Nobody waits for its answer any more, which was waited for so long.
    pub(super) fn give_up(&self, waited: Duration) {
        if waited >= self.percentile(99.0).unwrap_or(UNKNOWN) {
            self.avoid();
        }
    }

    fn avoid(&self) {
        self.avoided_until.set(Some(Instant::now() + AVOIDED_FOR));
    }

    /// Is it better to ask somebody else first?
    pub(super) fn is_avoided(&self) -> bool {
        self.avoided_until.get().is_some_and(|until| Instant::now() < until)
    }

    /// It has answered, and took so long.
    pub(super) fn note(&self, latency: Duration) {
        self.avoided_until.set(None);
        let micros = latency.as_secs_f64() * 1e6;
        let bucket = (micros / SHORTEST_MICROS).max(1.0).log(GROWTH) as usize;
        let counts = &mut *self.counts.borrow_mut();
        counts[bucket.min(BUCKET_COUNT - 1)] += 1;
        if self.count.replace(self.count.get() + 1) >= HALVED_AFTER {
            counts.iter_mut().for_each(|count| *count /= 2);
            self.count.set(counts.iter().sum());
        }
    }

    /// The time within which that part of the answers came, rounded up; `None` while there were too few.
    fn percentile(&self, percent: f64) -> Option<Duration> {
        let count = self.count.get();
        let wanted = (f64::from(count) * percent / 100.0).ceil() as u32;
        let mut seen = 0;
        let counts = self.counts.borrow();
        let bucket = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        let micros = SHORTEST_MICROS * GROWTH.powi(bucket as i32 + 1);
        (count >= ENOUGH).then(|| Duration::from_secs_f64(micros / 1e6))
    }
}

/// How long answers are waited for before somebody else is asked, by the canonical text of `speculative_retry`; `None`
/// for ever.
pub(super) fn delay<'l>(
    policy: &str,
    asked: impl Iterator<Item = &'l Latencies> + Clone,
) -> Option<Duration> {
    match policy {
        "NEVER" => None,
        "ALWAYS" => Some(Duration::ZERO),
        _ => match policy.split_once('(') {
            None => Some(one_delay(policy, asked).max(SHORTEST)),
            Some((which, parts)) => {
                let parts = parts.trim_end_matches(')').split(',');
                let delays = parts.map(|part| one_delay(part.trim(), asked.clone()));
                let delay = if which == "MIN" { delays.min() } else { delays.max() };
                Some(delay.unwrap_or(UNKNOWN).max(SHORTEST))
            }
        },
    }
}

/// So many reads of a table ask somebody else, too, since an answer is late.
pub(super) fn count(shard: &ShardHandle, table: &Table, read_count: usize) {
    // A table that was dropped meanwhile counts nothing.
    if let Ok(store) = shard.local().table(table.id()) {
        store.metrics().note_speculative_retries(read_count as u64);
    }
}

/// Of several replicas that of the slowest.
fn one_delay<'l>(policy: &str, mut asked: impl Iterator<Item = &'l Latencies>) -> Duration {
    let number = |suffix: &str| policy.strip_suffix(suffix).and_then(|number| number.parse::<f64>().ok());
    if let Some(millis) = number("ms") {
        return Duration::try_from_secs_f64(millis / 1e3).unwrap_or(UNKNOWN);
    }
    let percent = number("p").unwrap_or(99.0);
    let slowest = asked.try_fold(Duration::ZERO, |slowest, latencies| {
        latencies.percentile(percent).map(|latency| slowest.max(latency))
    });
    slowest.unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: &[u64]) -> Latencies {
        let latencies = Latencies::default();
        millis.iter().for_each(|millis| latencies.note(Duration::from_millis(*millis)));
        latencies
    }

    #[track_caller]
    fn check(policy: &str, asked: &[Latencies], expected_millis: Option<(u64, u64)>) {
        let delay = delay(policy, asked.iter());
        let millis = delay.map(|delay| delay.as_millis() as u64);
        match (millis, expected_millis) {
            (None, None) => {}
            (Some(millis), Some((least, most))) if (least..=most).contains(&millis) => {}
            _ => panic!("{policy}: {delay:?}, not {expected_millis:?}"),
        }
    }

    #[test]
    fn late_is_what_the_option_says() {
        let mut hundred = vec![2; 98];
        hundred.extend([40, 90]);
        let asked = [of(&hundred)];
        check("NEVER", &asked, None);
        check("ALWAYS", &asked, Some((0, 0)));
        check("50.0ms", &asked, Some((50, 50)));
        check("50p", &asked, Some((2, 3)));
        check("99p", &asked, Some((40, 50)));
        check("MIN(99p,10.0ms)", &asked, Some((10, 10)));
        check("MAX(99p,10.0ms)", &asked, Some((40, 50)));
    }

    #[test]
    fn the_slowest_that_was_asked_counts_and_nothing_is_made_of_a_few() {
        check("99p", &[of(&[2; 100]), of(&[30; 100])], Some((30, 38)));
        check("99p", &[of(&[2; 3])], Some((50, 50)));
        check("99p", &[of(&[0; 100])], Some((1, 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_late_is_avoided_and_asked_again_by_one() {
        let latencies = of(&[2; 100]);
        latencies.give_up(Duration::from_millis(1));
        assert!(!latencies.is_avoided(), "others were quicker, and it was not late");
        latencies.give_up(Duration::from_millis(10));
        assert!(latencies.is_avoided());
        tokio::time::advance(AVOIDED_FOR).await;
        assert!(!latencies.is_avoided());
        latencies.ask();
        assert!(latencies.is_avoided(), "one asks it");
        check("99p", &[of(&[2; 100])], Some((2, 3)));
        latencies.note(Duration::from_millis(40));
        assert!(!latencies.is_avoided(), "it has answered");
        latencies.ask();
        assert!(!latencies.is_avoided());
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let latencies = of(&[900; 1_000]);
        (0..60_000).for_each(|_| latencies.note(Duration::from_millis(2)));
        check("99p", &[latencies], Some((2, 3)));
    }
}
