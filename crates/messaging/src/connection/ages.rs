//! How long a frame was on its way, as far as the side that gets it can know.
//!
//! Each side counts the time since the handshake, and says in each frame how far it is, and how far the other side was
//! by what it has heard last. The two clocks do not run at one speed, and a machine may have stood still without
//! noticing. So what they say is held to what is sure:
//!
//! ```text
//!   this side    ──┬──────────────────────────────┬──►  now
//!            says 7│                              │says 5, has heard 7
//!   the other    ──┴───────────────┬──────────────┴──►
//!                                  seals, at its 5: behind this side's 7
//! ```
//!
//! A frame was sealed after its sender had heard what it says to have heard: it is no older than that. From frames of
//! which that says enough it is known by how much this side's count is ahead; and with that how old one is behind which
//! nothing was heard for long: it has stood still, or there was nothing to say before.

use std::time::Duration;

use tokio::time::Instant;

use crate::message::Stamp;

/// What one side of a connection knows of that.
#[derive(Debug)]
pub(super) struct Ages {
    /// From when it counts.
    since: Instant,
    /// How far the other side was, as it has said last.
    heard: Duration,
    /// By how many µs this side's count is ahead of the other one's, at most.
    ahead_micros: i64,
}

impl Ages {
    /// Of a connection that is made then. Who was connected to counts from a moment later, so it is behind at first.
    pub(super) fn since(since: Instant) -> Ages {
        Ages { since, heard: Duration::ZERO, ahead_micros: 0 }
    }

    /// What a frame says that is sealed now.
    pub(super) fn stamp(&self) -> Stamp {
        Stamp { sender: self.since.elapsed(), receiver: self.heard }
    }

    /// A frame has come that says this: when was it sealed? Not later than it is told, but for the time that the end of
    /// the handshake was on its way.
    pub(super) fn take_in(&mut self, stamp: Stamp) -> Instant {
        self.heard = self.heard.max(stamp.sender);
        let now = Instant::now();
        let elapsed = micros(now.saturating_duration_since(self.since));
        let age_max = (elapsed - micros(stamp.receiver)).max(0);
        let apart = elapsed - micros(stamp.sender);
        self.ahead_micros = self.ahead_micros.clamp(apart - age_max, apart);
        let age =
            u64::try_from(apart - self.ahead_micros).expect("it is ahead by no more than they are apart");
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
        assert_eq!(age(&mut ages, 2 * SECOND, SECOND), 4 * SECOND);
        // Nothing was said for long, and now something is: it is new.
        advance(60 * SECOND).await;
        assert_eq!(age(&mut ages, 66 * SECOND, SECOND), Duration::ZERO);
        assert_eq!(ages.stamp(), Stamp { sender: 66 * SECOND, receiver: 66 * SECOND });
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

    /// The machine of the other side stood still, and its clock with it.
    #[tokio::test(start_paused = true)]
    async fn after_one_frame_that_is_taken_for_old_it_is_known_what_the_time_is() {
        let mut ages = Ages::since(Instant::now());
        advance(100 * SECOND).await;
        assert_eq!(age(&mut ages, 40 * SECOND, Duration::ZERO), 60 * SECOND);
        // It has heard the answer to that.
        advance(SECOND).await;
        assert_eq!(age(&mut ages, 41 * SECOND, 100 * SECOND), SECOND);
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
