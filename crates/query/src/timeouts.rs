//! The time that a request has, and what its client is told when it is over.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use coordinator::{Consistency, TimeoutKind, Timeouts};
use tokio::time::Instant;

use crate::{QueryError, WriteType};

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
    /// Of a request of that kind.
    pub(crate) fn of(timeouts: &Timeouts, kind: TimeoutKind) -> Self {
        Deadline::new(timeouts.get(kind))
    }

    fn new(limit: Duration) -> Self {
        Deadline { limit, at: None }
    }

    /// It has to wait: its time begins, if it has not.
    fn begin(&mut self) -> Instant {
        // A limit beyond what can be counted is none.
        let far = Duration::from_secs(1 << 30);
        *self.at.get_or_insert_with(|| Instant::now() + self.limit.min(far))
    }

    /// How much is left of it.
    pub(crate) fn left(&self) -> Duration {
        self.at.map_or(self.limit, |at| at.saturating_duration_since(Instant::now()))
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
        assert_eq!(deadline.left(), Duration::from_secs(5));
        let wait = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        assert_eq!(deadline.within(pin!(wait(3))).await, Ok(()));
        assert_eq!(deadline.left(), Duration::from_secs(2));
        assert_eq!(deadline.give_way().await, Ok(()));
        assert_eq!(deadline.within(pin!(wait(3))).await, Err(TimedOut));
        assert_eq!(deadline.give_way().await, Err(TimedOut));
        let mut endless = Deadline::new(Duration::MAX);
        assert_eq!(endless.within(pin!(wait(100_000))).await, Ok(()));
    }
}
