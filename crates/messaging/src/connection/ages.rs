//! How long a frame was on its way, as far as the side that gets it can know.
//!
//! Each side counts the time since the handshake, and says in each frame how far it was when it opened it, and how far
//! the other side was by what it had heard last. The two clocks do not run at one speed, and a machine may have stood
//! still without noticing. So what they say is held to what is sure:
//!
//! ```text
//!   this side    ──┬──────────────────────────────┬──►  now
//!            says 7│                              │says 5, has heard 7
//!   the other    ──┴───────────────┬──────────────┴──►
//!                                  opens it, at its 5: behind this side's 7
//! ```
//!
//! A frame is no older than what its sender had heard when it opened it. So a frame that answers something recent
//! bounds how far the two counts are apart. A frame behind a long silence is judged by the last such bound: it was held
//! up, or there was nothing to say before.

use std::time::Duration;

use tokio::time::Instant;

use crate::message::Stamp;

/// Clocks of two machines that run do not differ by more than one part in so many.
const DRIFT_PART: i64 = 1_000;

/// What one side of a connection knows of that.
#[derive(Debug)]
pub(super) struct Ages {
    /// From when it counts.
    since: Instant,
    /// How far the other side was, as it has said last.
    heard: Duration,
    /// By how many µs this side's count is taken to be ahead of the other one's.
    ahead_micros: i64,
}

impl Ages {
    /// Of a connection that is made then.
    pub(super) fn since(since: Instant) -> Ages {
        Ages { since, heard: Duration::ZERO, ahead_micros: 0 }
    }

    /// What a frame says that is opened now.
    pub(super) fn stamp(&self, now: Instant) -> Stamp {
        Stamp { sender: now.saturating_duration_since(self.since), receiver: self.heard }
    }

    /// A frame has come that says this: when was it opened, as far as is known? For who was connected to, which counts
    /// from a moment later, rather too late than too early, unless the other side's machine stood still.
    pub(super) fn take_in(&mut self, stamp: Stamp) -> Instant {
        self.heard = self.heard.max(stamp.sender);
        let now = Instant::now();
        let elapsed = micros(now.saturating_duration_since(self.since));
        let age_max = (elapsed - micros(stamp.receiver)).max(0);
        let apart = elapsed - micros(stamp.sender);
        self.ahead_micros = self.ahead_micros.clamp(apart - age_max, apart);
        let age = apart - self.ahead_micros - age_max / DRIFT_PART;
        let age = u64::try_from(age).unwrap_or(0);
        now.checked_sub(Duration::from_micros(age)).unwrap_or(now)
    }
}

/// In µs; what no connection lasts is as much as that.
fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// How old this side takes a frame for.
    fn age(ages: &mut Ages, sender: Duration, receiver: Duration) -> Duration {
        ages.take_in(Stamp { sender, receiver }).elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_stood_still_is_as_old_as_that_took() {
        let mut ages = Ages::since(Instant::now());
        advance(SECOND).await;
        assert_eq!(age(&mut ages, SECOND, Duration::ZERO), Duration::ZERO);
        advance(5 * SECOND).await;
        let stood_still = age(&mut ages, 2 * SECOND, SECOND);
        assert_eq!(stood_still, 4 * SECOND - 5 * SECOND / 1_000);
        // Nothing was said for long, and now something is: it is new.
        advance(60 * SECOND).await;
        assert_eq!(age(&mut ages, 66 * SECOND, SECOND), Duration::ZERO);
        assert_eq!(ages.stamp(Instant::now()), Stamp { sender: 66 * SECOND, receiver: 66 * SECOND });
    }

    /// The other side's clock is slow by one part in ten.
    #[tokio::test(start_paused = true)]
    async fn who_hears_each_other_is_not_led_astray_by_clocks() {
        let mut ages = Ages::since(Instant::now());
        for second in 1..1_000 {
            advance(SECOND).await;
            let found = age(&mut ages, second * SECOND * 9 / 10, (second - 1) * SECOND);
            assert!(found <= SECOND, "{found:?} after {second} s");
        }
        advance(10 * SECOND).await;
        let found = age(&mut ages, 1_000 * SECOND * 9 / 10, 999 * SECOND);
        assert!(found > 8 * SECOND, "{found:?}: this one stood still");
    }

    /// As between two followers, which tell each other that they live, and ask nothing until there is an election.
    #[tokio::test(start_paused = true)]
    async fn who_has_only_told_something_for_a_day_may_ask() {
        let mut ages = Ages::since(Instant::now());
        for minute in 1..1_440 {
            advance(60 * SECOND).await;
            // Slow by 100 µs in a second.
            let found = age(&mut ages, minute * 60 * SECOND * 9_999 / 10_000, Duration::ZERO);
            assert_eq!(found, Duration::ZERO, "after {minute} minutes");
        }
    }

    /// The machine of the other side stood still, and its clock with it.
    #[tokio::test(start_paused = true)]
    async fn after_one_frame_that_is_taken_for_old_it_is_known_what_the_time_is() {
        let mut ages = Ages::since(Instant::now());
        advance(100 * SECOND).await;
        assert!(age(&mut ages, 40 * SECOND, Duration::ZERO) > 59 * SECOND);
        // It has heard the answer to that.
        advance(SECOND).await;
        assert!(age(&mut ages, 41 * SECOND, 100 * SECOND) <= SECOND);
        advance(SECOND).await;
        assert!(age(&mut ages, 42 * SECOND, 100 * SECOND) <= SECOND, "though nothing was said in between");
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_can_have_counted_makes_no_difference() {
        let mut ages = Ages::since(Instant::now());
        advance(SECOND).await;
        for most in [Duration::MAX, Duration::from_micros(u64::MAX), Duration::ZERO] {
            for other in [Duration::MAX, Duration::ZERO, SECOND] {
                let found = age(&mut ages, most, other);
                assert!(found <= SECOND, "{found:?} of {most:?}, {other:?}");
            }
        }
    }
}
