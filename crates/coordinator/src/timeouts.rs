//! How long requests may take before their clients are told that they took too long.
//!
//! A request whose client has given up is work for nobody. The limits are Cassandra's (`read_request_timeout` and so
//! on), and so is what they are about: a read of one page, whatever it has to pass; for aggregates, which read page
//! after page, each of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
    /// A change with a condition, until it is decided.
    Contention,
    /// A write that counts.
    Count,
}

impl TimeoutKind {
    /// All there are.
    pub const ALL: [TimeoutKind; 6] = [
        TimeoutKind::Read,
        TimeoutKind::Range,
        TimeoutKind::Write,
        TimeoutKind::Truncate,
        TimeoutKind::Contention,
        TimeoutKind::Count,
    ];

    /// What `nodetool` calls it.
    pub fn name(self) -> &'static str {
        match self {
            TimeoutKind::Read => "read",
            TimeoutKind::Range => "range",
            TimeoutKind::Write => "write",
            TimeoutKind::Truncate => "truncate",
            TimeoutKind::Contention => "cascontention",
            TimeoutKind::Count => "counterwrite",
        }
    }
}

/// The limits of a node. They can be changed while it runs.
#[derive(Debug)]
pub struct Timeouts {
    /// By the kind's place in [`TimeoutKind::ALL`].
    millis: [AtomicU64; TimeoutKind::ALL.len()],
}

impl Default for Timeouts {
    /// Cassandra's.
    fn default() -> Self {
        Timeouts::new([5_000, 10_000, 2_000, 60_000, 1_800, 5_000].map(Duration::from_millis))
    }
}

impl Timeouts {
    /// Limits in the order of [`TimeoutKind::ALL`].
    pub fn new(limits: [Duration; TimeoutKind::ALL.len()]) -> Self {
        Timeouts { millis: limits.map(|limit| AtomicU64::new(millis(limit))) }
    }

    /// The limit of a kind.
    pub fn get(&self, kind: TimeoutKind) -> Duration {
        Duration::from_millis(self.millis[kind as usize].load(Ordering::Relaxed))
    }

    /// Changes the limit of a kind, for requests from now on.
    pub fn set(&self, kind: TimeoutKind, limit: Duration) {
        self.millis[kind as usize].store(millis(limit), Ordering::Relaxed);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_found_by_their_kind_and_can_be_changed() {
        let timeouts = Timeouts::default();
        let all = || TimeoutKind::ALL.map(|kind| timeouts.get(kind).as_millis());
        assert_eq!(all(), [5_000, 10_000, 2_000, 60_000, 1_800, 5_000]);
        timeouts.set(TimeoutKind::Write, Duration::from_millis(7));
        assert_eq!(all(), [5_000, 10_000, 7, 60_000, 1_800, 5_000]);
    }
}
