//! Time: what o'clock it is, and how long something took.
//!
//! Wall time is microseconds since 1970, the unit of CQL's write timestamps. It may jump when somebody
//! sets the clock; [`Clock::elapsed`] never goes back. To *wait*, use `tokio::time`, which the simulator
//! runs in virtual time.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A source of time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Microseconds since 1970-01-01 UTC.
    fn now_micros(&self) -> i64;
    /// Time since this clock was made; never goes back.
    fn elapsed(&self) -> Duration;

    /// [`Clock::elapsed`] as it was a few milliseconds ago at most: cheap enough for every request.
    fn elapsed_roughly(&self) -> Duration {
        self.elapsed()
    }

    /// Seconds since 1970-01-01 UTC, as expiry times use them.
    fn now_seconds(&self) -> i64 {
        self.now_micros().div_euclid(1_000_000)
    }

    /// Milliseconds since 1970-01-01 UTC.
    fn now_millis(&self) -> i64 {
        self.now_micros().div_euclid(1_000)
    }
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
    /// The same by the clock that only ticks.
    rough_start: Duration,
}

impl SystemClock {
    /// Starts counting [`Clock::elapsed`] now.
    #[expect(clippy::disallowed_methods, reason = "this is the door the ban points to")]
    pub fn new() -> SystemClock {
        SystemClock { start: std::time::Instant::now(), rough_start: ticks() }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        // Every write asks; `SystemTime` takes three times the instructions. Before 1970 only seconds are negative.
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Realtime);
        tv_sec.saturating_mul(1_000_000).saturating_add(tv_nsec / 1_000)
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn elapsed_roughly(&self) -> Duration {
        ticks().saturating_sub(self.rough_start)
    }

    fn now_seconds(&self) -> i64 {
        clock_gettime(ClockId::RealtimeCoarse).tv_sec
    }
}

/// Time since the machine's start, as it was at the kernel's last tick.
fn ticks() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::MonotonicCoarse);
    // Never negative.
    Duration::new(tv_sec.unsigned_abs(), tv_nsec as u32)
}

/// Follows tokio's time, which a paused runtime moves only when every task sleeps.
///
/// Use it only on the thread of the runtime it was made in: elsewhere tokio falls back to real time.
#[derive(Debug)]
pub struct VirtualClock {
    start: tokio::time::Instant,
    start_micros: i64,
    /// How many µs the wall gains in a second.
    drift: i64,
}

impl VirtualClock {
    /// The wall shows `start_micros` now.
    pub fn new(start_micros: i64) -> VirtualClock {
        VirtualClock::drifting(start_micros, 0)
    }

    /// The same, and the wall gains so many µs in each second, or loses them.
    pub fn drifting(start_micros: i64, drift: i64) -> VirtualClock {
        VirtualClock { start: tokio::time::Instant::now(), start_micros, drift }
    }
}

impl Clock for VirtualClock {
    fn now_micros(&self) -> i64 {
        let micros = i64::try_from(self.elapsed().as_micros()).unwrap_or(i64::MAX);
        let gained = micros / 1_000 * self.drift / 1_000;
        self.start_micros.saturating_add(micros).saturating_add(gained)
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Moves only when told, for tests.
#[derive(Debug)]
pub struct ManualClock {
    start_micros: i64,
    now_micros: AtomicI64,
}

impl ManualClock {
    /// 2024-01-01 00:00:00 UTC, where the default clock stands.
    pub const DEFAULT_START_MICROS: i64 = 1_704_067_200_000_000;

    /// The wall shows `start_micros` until told otherwise.
    pub fn new(start_micros: i64) -> ManualClock {
        ManualClock { start_micros, now_micros: AtomicI64::new(start_micros) }
    }

    /// Lets time pass.
    pub fn advance(&self, duration: Duration) {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.now_micros.fetch_add(micros, Ordering::SeqCst);
    }

    /// Sets the wall to another time, earlier or later.
    pub fn set_micros(&self, micros: i64) {
        self.now_micros.store(micros, Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> ManualClock {
        ManualClock::new(ManualClock::DEFAULT_START_MICROS)
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> i64 {
        self.now_micros.load(Ordering::SeqCst)
    }

    fn elapsed(&self) -> Duration {
        let micros = self.now_micros().saturating_sub(self.start_micros);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clock_shows_this_century() {
        let clock = SystemClock::new();
        let (before, seconds, after) = (clock.now_micros(), clock.now_seconds(), clock.now_micros());
        assert!(seconds > 1_700_000_000);
        // Seconds are those of the last tick of the kernel, some milliseconds ago.
        assert!((before / 1_000_000 - 1..=after / 1_000_000).contains(&seconds));
    }

    #[tokio::test(start_paused = true)]
    async fn virtual_clock_moves_with_paused_time() {
        let clock = VirtualClock::new(5_000_000);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(clock.now_seconds(), 3605);
        assert_eq!(clock.elapsed().as_secs(), 3600);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_drifts_shows_more_than_has_passed() {
        let clock = VirtualClock::drifting(0, 50);
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        assert_eq!((clock.now_micros(), clock.elapsed().as_secs()), (1_000_050_000, 1_000));
    }

    #[test]
    fn manual_clock_moves_when_told() {
        let clock = ManualClock::default();
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now_micros(), ManualClock::DEFAULT_START_MICROS + 1_500_000);
        assert_eq!(clock.elapsed(), Duration::from_millis(1500));
    }
}
