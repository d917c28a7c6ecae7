//! What became of requests, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of the requests over some connections. Written by one thread as a rule, read by any.
#[derive(Debug, Default)]
pub struct MessageCounts {
    asked: AtomicU64,
    answered: AtomicU64,
    lost: AtomicU64,
}

impl MessageCounts {
    /// Requests that are neither answered nor lost.
    pub fn pending(&self) -> u64 {
        // In this order: what ends meanwhile makes it less, and never negative.
        let ended = self.answered() + self.lost();
        self.asked.load(Ordering::Relaxed).saturating_sub(ended)
    }

    /// Those that were answered, whether somebody waited for it or not.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Those that were not sent, or declined, or whose connection ended before the answer.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(super) fn note_asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_end(&self, is_answered: bool) {
        let count = if is_answered { &self.answered } else { &self.lost };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
