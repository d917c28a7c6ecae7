//! How long simulated work takes.

use std::sync::Arc;
use std::time::Duration;

use crate::random::{Random, SeededRandom};

/// A time to wait before doing something at once.
#[derive(Clone, Debug)]
pub(crate) struct Delay {
    max: Duration,
    /// Decides each delay; without it every one is `max`.
    random: Option<Arc<SeededRandom>>,
}

impl Delay {
    pub(crate) fn fixed(delay: Duration) -> Delay {
        Delay { max: delay, random: None }
    }

    pub(crate) fn seeded(seed: u64, max: Duration) -> Delay {
        Delay { max, random: Some(Arc::new(SeededRandom::new(seed))) }
    }

    /// Lets the time pass; none of it, not even a turn of the scheduler, if the delay is zero.
    pub(crate) async fn pass(&self) {
        let micros = u64::try_from(self.max.as_micros()).unwrap_or(u64::MAX);
        let delay = match &self.random {
            None => self.max,
            Some(random) => Duration::from_micros(random.below(micros.saturating_add(1))),
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }
}
