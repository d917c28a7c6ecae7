//! When the next operation is due.

use crate::manifest::Pace;

/// One thread's pace, in microseconds since the run began.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pacer {
    /// Evenly, whatever becomes of those before.
    Open {
        /// When the next one is due.
        next_us: f64,
        /// From one to the next.
        gap_us: f64,
    },
    /// Whenever a stream is free.
    Closed,
}

impl Pacer {
    /// Of one of several threads, whose operations come in turns.
    pub(super) fn new(pace: Pace, index: usize, thread_count: usize) -> Pacer {
        match pace {
            Pace::Closed { .. } => Pacer::Closed,
            Pace::Open { rate } => {
                let all_us = 1e6 / rate;
                Pacer::Open { next_us: all_us * index as f64, gap_us: all_us * thread_count as f64 }
            }
        }
    }

    /// The intended start of the next operation, if that is not later than now. It stays due until [`Pacer::pass`].
    pub(super) fn due(&self, now_us: u64) -> Option<u64> {
        match self {
            Pacer::Closed => Some(now_us),
            Pacer::Open { next_us, .. } => (*next_us <= now_us as f64).then_some(*next_us as u64),
        }
    }

    /// When the next one is due, if that is known beforehand.
    pub(super) fn next_us(&self) -> Option<u64> {
        match self {
            Pacer::Closed => None,
            Pacer::Open { next_us, .. } => Some(next_us.ceil() as u64),
        }
    }

    /// The operation that was due is begun.
    pub(super) fn pass(&mut self) {
        if let Pacer::Open { next_us, gap_us } = self {
            *next_us += *gap_us;
        }
    }

    /// How many are due before a moment and not begun.
    pub(super) fn overdue_count(&self, until_us: u64) -> u64 {
        match self {
            Pacer::Closed => 0,
            Pacer::Open { next_us, gap_us } => ((until_us as f64 - next_us) / gap_us).ceil().max(0.0) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_turns_and_keep_the_rate_together() {
        let mut pacers = [0, 1].map(|index| Pacer::new(Pace::Open { rate: 1000.0 }, index, 2));
        let mut starts: Vec<u64> = Vec::new();
        for pacer in &mut pacers {
            while let Some(due_us) = pacer.due(9_999) {
                starts.push(due_us);
                pacer.pass();
            }
        }
        starts.sort_unstable();
        assert_eq!(starts, (0..10).map(|index| index * 1000).collect::<Vec<u64>>());
    }

    #[test]
    fn what_is_due_stays_due_until_it_is_begun() {
        let mut pacer = Pacer::new(Pace::Open { rate: 1e6 }, 0, 1);
        pacer.pass();
        assert_eq!((pacer.due(0), pacer.due(5_000_000), pacer.overdue_count(11)), (None, Some(1), 10));
    }
}
