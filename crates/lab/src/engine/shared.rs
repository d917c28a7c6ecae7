//! What threads of a run share: when to stop, and how it goes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::latencies::Latencies;

/// Shared by all threads of a run.
#[derive(Debug, Default)]
pub(super) struct Shared {
    stop: AtomicBool,
    good_count: AtomicU64,
    bad_count: AtomicU64,
    /// Response times since they were last taken out, warm-up included.
    recent: Mutex<Latencies>,
}

impl Shared {
    /// All threads end as soon as they see it.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Is it over?
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A thread tells what it has found since it told last.
    pub(super) fn tell(&self, recent: &mut Latencies, bad_count: u64) {
        self.good_count.fetch_add(recent.count(), Ordering::Relaxed);
        self.bad_count.fetch_add(bad_count, Ordering::Relaxed);
        self.recent.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(recent);
        *recent = Latencies::new();
    }

    /// Operations that went well, and those that did not.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.good_count.load(Ordering::Relaxed), self.bad_count.load(Ordering::Relaxed))
    }

    /// Response times since they were last taken.
    pub(super) fn take_recent(&self) -> Latencies {
        std::mem::take(&mut *self.recent.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}
