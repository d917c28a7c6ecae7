//! The processor's own counter of time: a reading costs a few nanoseconds, and what it counts is learnt by holding it
//! against the system's clock.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A reading of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(u64);

impl Ticks {
    /// The counter now.
    #[inline]
    #[allow(unsafe_code, reason = "the processor's counter has no safe form")]
    pub fn now() -> Ticks {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reading the counter has no other effect, and every processor of this kind has it.
        let count = unsafe { std::arch::x86_64::_rdtsc() };
        #[cfg(not(target_arch = "x86_64"))]
        let count = u64::try_from(origin().elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ticks(count)
    }

    /// How many ticks came after an earlier reading; none if it was later, as it may seem on another core.
    #[inline]
    pub fn since(self, earlier: Ticks) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[allow(clippy::disallowed_methods, reason = "an origin, and no time of day")]
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// How fast the counter counts.
#[derive(Debug)]
pub struct TickRate {
    start: Instant,
    start_ticks: Ticks,
    ticks_per_milli: OnceLock<u64>,
}

/// The rate is learnt once so much time has passed; before that it is measured anew each time.
const LEARNT_AFTER: Duration = Duration::from_millis(100);

impl Default for TickRate {
    #[allow(clippy::disallowed_methods, reason = "a rate, and no time of day")]
    fn default() -> Self {
        TickRate { start: Instant::now(), start_ticks: Ticks::now(), ticks_per_milli: OnceLock::new() }
    }
}

impl TickRate {
    /// How many ticks a time is.
    #[inline]
    pub fn ticks(&self, time: Duration) -> u64 {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        micros.saturating_mul(self.ticks_per_milli()) / 1000
    }

    /// How long so many ticks are.
    pub fn duration(&self, ticks: u64) -> Duration {
        let nanos = u128::from(ticks) * 1_000_000 / u128::from(self.ticks_per_milli());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    #[inline]
    fn ticks_per_milli(&self) -> u64 {
        self.ticks_per_milli.get().copied().unwrap_or_else(|| self.learn())
    }

    #[cold]
    fn learn(&self) -> u64 {
        let (mut elapsed, mut ticks) = (self.start.elapsed(), Ticks::now().since(self.start_ticks));
        while elapsed < Duration::from_micros(100) {
            (elapsed, ticks) = (self.start.elapsed(), Ticks::now().since(self.start_ticks));
        }
        let rate = u128::from(ticks) * 1_000_000 / elapsed.as_nanos().max(1);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX).max(1);
        if elapsed >= LEARNT_AFTER {
            return *self.ticks_per_milli.get_or_init(|| rate);
        }
        rate
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the clock that the counter is held against")]
mod tests {
    use super::*;

    #[test]
    fn ticks_tell_time_as_the_clock_does() {
        let rate = TickRate::default();
        let (clock, ticks) = (Instant::now(), Ticks::now());
        while clock.elapsed() < Duration::from_millis(150) {}
        let (elapsed, told) = (clock.elapsed(), rate.duration(Ticks::now().since(ticks)));
        let difference = elapsed.abs_diff(told);
        assert!(difference < elapsed / 10, "{elapsed:?} by the clock, {told:?} by ticks");
        assert!(rate.duration(rate.ticks(TIME)).abs_diff(TIME) < Duration::from_micros(100));
    }

    const TIME: Duration = Duration::from_millis(20);
}
