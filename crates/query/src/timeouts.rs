//! How long requests may take before their clients are told that they took too long.
//!
//! A request whose client has given up is work for nobody. The limits are Cassandra's (`read_request_timeout` and so
//! on), and so is what they are about: a read of one page, whatever it has to pass; for aggregates, which read page
//! after page, each of them.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use coordinator::Consistency;
use tokio::time::Instant;

use crate::{QueryError, WriteType};

/// What takes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// A read of partitions by their keys.
    Read,
    /// A read of a part of the ring.
    Range,
    /// A write.
    Write,
    /// A TRUNCATE.
    Truncate,
}

impl TimeoutKind {
    /// All there are.
    pub const ALL: [TimeoutKind; 4] =
        [TimeoutKind::Read, TimeoutKind::Range, TimeoutKind::Write, TimeoutKind::Truncate];

    /// What `nodetool` calls it.
    pub fn name(self) -> &'static str {
        match self {
            TimeoutKind::Read => "read",
            TimeoutKind::Range => "range",
            TimeoutKind::Write => "write",
            TimeoutKind::Truncate => "truncate",
        }
    }
}

/// The limits of a node. They can be changed while it runs.
#[derive(Debug)]
pub struct Timeouts {
    /// By the kind's place in [`TimeoutKind::ALL`].
    millis: [AtomicU64; 4],
}

impl Default for Timeouts {
    /// Cassandra's.
    fn default() -> Self {
        Timeouts::new([5_000, 10_000, 2_000, 60_000].map(Duration::from_millis))
    }
}

impl Timeouts {
    /// Limits in the order of [`TimeoutKind::ALL`].
    pub fn new(limits: [Duration; 4]) -> Self {
        Timeouts { millis: limits.map(|limit| AtomicU64::new(millis(limit))) }
    }

    /// The limit of a kind.
    pub fn get(&self, kind: TimeoutKind) -> Duration {
        Duration::from_millis(self.millis[kind as usize].load(Ordering::Relaxed))
    }

    /// The time of a request of that kind.
    pub(crate) fn deadline(&self, kind: TimeoutKind) -> Deadline {
        Deadline::new(self.get(kind))
    }

    /// Changes the limit of a kind, for requests from now on.
    pub fn set(&self, kind: TimeoutKind, limit: Duration) {
        self.millis[kind as usize].store(millis(limit), Ordering::Relaxed);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A request took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedOut;

/// What the client is told: one replica was to answer, and none has. That of a write is no failure: it may be there.
impl TimedOut {
    pub(crate) fn of_read(self, consistency: Consistency) -> QueryError {
        QueryError::ReadTimeout { consistency, received: 0, block_for: 1, data_present: false }
    }

    pub(crate) fn of_write(self, consistency: Consistency, write_type: WriteType) -> QueryError {
        QueryError::WriteTimeout { consistency, received: 0, block_for: 1, write_type }
    }
}

/// The time a request has, which begins when it first waits for something: most never do.
#[derive(Debug)]
pub(crate) struct Deadline {
    limit: Duration,
    at: Option<Instant>,
}

impl Deadline {
    fn new(limit: Duration) -> Self {
        Deadline { limit, at: None }
    }

    /// It has to wait: its time begins, if it has not.
    fn begin(&mut self) -> Instant {
        // A limit beyond what can be counted is none.
        let far = Duration::from_secs(1 << 30);
        *self.at.get_or_insert_with(|| Instant::now() + self.limit.min(far))
    }

    /// Gives it all of its time again.
    pub(crate) fn begin_anew(&mut self) {
        self.at = None;
    }

    /// Lets others go first.
    ///
    /// # Errors
    /// The time is over.
    pub(crate) async fn give_way(&mut self) -> Result<(), TimedOut> {
        let at = self.begin();
        tokio::task::yield_now().await;
        if Instant::now() >= at { Err(TimedOut) } else { Ok(()) }
    }

    /// Waits for something that is part of the request. It is pinned by the caller: one that is moved here would have
    /// its place twice in the request's future.
    ///
    /// # Errors
    /// The time is over.
    pub(crate) async fn within<F: Future>(&mut self, mut future: Pin<&mut F>) -> Result<F::Output, TimedOut> {
        // What is ready needs no clock. What is not is polled again at once, and then learns whom to wake.
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Ok(value);
        }
        tokio::time::timeout_at(self.begin(), future).await.map_err(|_| TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_request_begins_when_it_waits_and_is_one_for_all_its_parts() {
        let mut deadline = Deadline::new(Duration::from_secs(5));
        assert_eq!(deadline.within(pin!(async { 1 })).await, Ok(1));
        tokio::time::advance(Duration::from_secs(100)).await;
        let wait = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        assert_eq!(deadline.within(pin!(wait(3))).await, Ok(()));
        assert_eq!(deadline.give_way().await, Ok(()));
        assert_eq!(deadline.within(pin!(wait(3))).await, Err(TimedOut));
        assert_eq!(deadline.give_way().await, Err(TimedOut));
        let mut endless = Deadline::new(Duration::MAX);
        assert_eq!(endless.within(pin!(wait(100_000))).await, Ok(()));
    }

    #[test]
    fn limits_are_found_by_their_kind_and_can_be_changed() {
        let timeouts = Timeouts::default();
        let all = || TimeoutKind::ALL.map(|kind| timeouts.get(kind).as_millis());
        assert_eq!(all(), [5_000, 10_000, 2_000, 60_000]);
        timeouts.set(TimeoutKind::Write, Duration::from_millis(7));
        assert_eq!(all(), [5_000, 10_000, 7, 60_000]);
    }
}
