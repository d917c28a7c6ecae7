//! When what lives for a while only ends, as far as that is known.
//!
//! ```text
//!   sent ──► began, by the clock of the node that was asked ──► ended, by the clock of a node that reads
//!            between sent and answered                         its time to live later, give or take what clocks differ
//! ```

use std::time::Duration;

use tokio::time::Instant;

/// Somebody who does not answer any more may still begin a write so long after it was sent: a process that stood still.
const BEGINS_WITHIN: Duration = Duration::from_secs(40);
/// Expiry times are whole seconds.
const SECOND: Duration = Duration::from_secs(1);

/// Between these two moments a write ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expiry {
    pub(crate) earliest: Instant,
    pub(crate) latest: Instant,
}

impl Expiry {
    /// Of a write that is sent now, where clocks differ by so much at most.
    pub(crate) fn of_sent(seconds: u32, spread: Duration) -> Expiry {
        let (now, lives) = (Instant::now(), Duration::from_secs(seconds.into()));
        let earliest = now + lives.saturating_sub(spread + SECOND);
        Expiry { earliest, latest: now + BEGINS_WITHIN + lives + spread + SECOND }
    }

    /// The same once it was answered.
    pub(crate) fn answered(self, seconds: u32, spread: Duration) -> Expiry {
        let latest = Instant::now() + Duration::from_secs(seconds.into()) + spread + SECOND;
        Expiry { latest: latest.min(self.latest), ..self }
    }
}
