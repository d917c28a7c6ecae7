//! How long requests of clients have taken on one shard, from when they were carried out until their answer was there,
//! with all that they waited for on other nodes. A batch of plain requests takes as long for each of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stdx::histogram::{Counts, Histogram};

/// Half of what *lately* means, at least.
const PERIOD: Duration = Duration::from_secs(150);

/// What a request does, as far as its time tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// It reads partitions by their keys.
    Read,
    /// It reads a part of the ring.
    Range,
    /// It writes: one statement, or a batch of them.
    Write,
    /// It reads at a serial level.
    SerialRead,
    /// It writes under a condition.
    ConditionalWrite,
}

impl RequestKind {
    /// All of them.
    pub const ALL: [RequestKind; 5] = [
        RequestKind::Read,
        RequestKind::Range,
        RequestKind::Write,
        RequestKind::SerialRead,
        RequestKind::ConditionalWrite,
    ];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Range => "range",
            RequestKind::Write => "write",
            RequestKind::SerialRead => "serial_read",
            RequestKind::ConditionalWrite => "conditional_write",
        }
    }
}

/// The times of a shard's requests.
#[derive(Debug, Default)]
pub struct Latencies {
    of_kinds: [OfKind; RequestKind::ALL.len()],
}

#[derive(Debug, Default)]
struct OfKind {
    all: Histogram,
    /// Those of the period that goes on and of the one before, each in the place of its number.
    lately: [Histogram; 2],
    /// The number of the period that goes on.
    period: AtomicU64,
}

impl Latencies {
    /// So many requests have each taken so long, and are over now.
    pub(crate) fn note(&self, kind: RequestKind, now: Duration, took: Duration, count: usize) {
        if count > 0 {
            self.of_kinds[kind as usize].note(period_of(now), took, count as u64);
        }
    }

    /// Those of all requests.
    pub fn all(&self, kind: RequestKind) -> Counts {
        self.of_kinds[kind as usize].all.counts()
    }

    /// Those of requests that were over not long ago.
    pub fn lately(&self, kind: RequestKind, now: Duration) -> Counts {
        self.of_kinds[kind as usize].lately(period_of(now))
    }
}

fn period_of(now: Duration) -> u64 {
    now.as_secs() / PERIOD.as_secs()
}

impl OfKind {
    /// Called by the shard's thread alone. Who reads just when a period begins may see some of an older one.
    fn note(&self, period: u64, took: Duration, count: u64) {
        let before = self.period.swap(period, Ordering::Relaxed);
        if before != period {
            self.lately[place_of(period)].clear();
            if before + 1 != period {
                self.lately[place_of(period + 1)].clear();
            }
        }
        self.lately[place_of(period)].note(took, count);
        self.all.note(took, count);
    }

    fn lately(&self, now: u64) -> Counts {
        let (last, mut counts) = (self.period.load(Ordering::Relaxed), Counts::default());
        if now <= last + 1 {
            counts += &self.lately[place_of(last)].counts();
        }
        if now == last {
            counts += &self.lately[place_of(last + 1)].counts();
        }
        counts
    }
}

fn place_of(period: u64) -> usize {
    (period % 2) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lately_is_forgotten_and_all_is_not() {
        let latencies = Latencies::default();
        let note = |period: u32, count| {
            latencies.note(RequestKind::Read, period * PERIOD, Duration::from_millis(1), count);
        };
        let lately = |period: u32| latencies.lately(RequestKind::Read, period * PERIOD).count();
        note(0, 1);
        assert_eq!([lately(0), lately(1), lately(2)], [1, 1, 0]);
        note(1, 10);
        assert_eq!([lately(1), lately(2), lately(3)], [11, 10, 0]);
        note(2, 100);
        assert_eq!([lately(2), lately(3)], [110, 100]);
        note(5, 1_000);
        assert_eq!([lately(5), lately(6)], [1_000, 1_000], "nothing came for a while");
        note(5, 0);
        assert_eq!(latencies.all(RequestKind::Read).count(), 1_111);
        assert_eq!(latencies.all(RequestKind::Write).count(), 0);
    }
}
