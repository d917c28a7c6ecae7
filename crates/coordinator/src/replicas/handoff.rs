//! What is done with what other nodes have missed, as an operator wants it. Names and meanings are Cassandra's.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How what was missed is handed to those who have missed it. All but the window and the bytes of the log can be
/// changed while the node runs.
#[derive(Debug)]
pub struct Handoff {
    is_enabled: AtomicBool,
    is_paused: AtomicBool,
    /// 0 for no limit.
    bytes_per_second: AtomicU64,
    disabled_centers: Mutex<BTreeSet<String>>,
    sent_count: AtomicU64,
    mended_count: AtomicU64,
    /// What was missed longer ago is not sent from the log, but compared.
    pub window: Duration,
    /// So much of each shard's log is held for others, at most.
    pub log_bytes_max: u64,
}

impl Default for Handoff {
    fn default() -> Handoff {
        Handoff::new(Duration::from_secs(3 * 3_600), 1 << 30)
    }
}

impl Handoff {
    /// As fast as nodes take it, for all of them.
    pub fn new(window: Duration, log_bytes_max: u64) -> Handoff {
        Handoff {
            is_enabled: AtomicBool::new(true),
            is_paused: AtomicBool::new(false),
            bytes_per_second: AtomicU64::new(0),
            disabled_centers: Mutex::default(),
            sent_count: AtomicU64::new(0),
            mended_count: AtomicU64::new(0),
            window,
            log_bytes_max,
        }
    }

    /// Is anything kept of what nodes have missed?
    pub fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Begins to keep what nodes miss, or ends it. What was kept before is handed on all the same.
    pub fn enable(&self, is_enabled: bool) {
        self.is_enabled.store(is_enabled, Ordering::Relaxed);
    }

    /// Is nothing handed on for now?
    pub fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Relaxed)
    }

    /// Hands nothing on until it is told to go on.
    pub fn pause(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Relaxed);
    }

    /// Bytes of mutations that a shard sends to one node in a second, at most; `None` for as fast as it takes them.
    pub fn throttle(&self) -> Option<u64> {
        Some(self.bytes_per_second.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// How long to wait after so many bytes were sent, so that it does not become too many.
    pub(super) fn time_for(&self, byte_count: usize) -> Option<Duration> {
        let bytes_per_second = self.throttle()?;
        Some(Duration::from_secs_f64(byte_count as f64 / bytes_per_second as f64))
    }

    /// Sets what [`Handoff::throttle`] says.
    pub fn set_throttle(&self, bytes_per_second: Option<u64>) {
        self.bytes_per_second.store(bytes_per_second.unwrap_or(0), Ordering::Relaxed);
    }

    /// Is nothing kept for nodes of that data centre?
    pub fn is_disabled_for(&self, data_center: &str) -> bool {
        self.centers().contains(data_center)
    }

    /// Data centres for whose nodes nothing is kept.
    pub fn disabled_centers(&self) -> Vec<String> {
        self.centers().iter().cloned().collect()
    }

    /// Keeps nothing for nodes of a data centre from now on, or something again.
    pub fn disable_for(&self, data_center: &str, is_disabled: bool) {
        if is_disabled {
            self.centers().insert(data_center.to_owned());
        } else {
            self.centers().remove(data_center);
        }
    }

    /// Mutations that were sent from logs so far.
    pub fn sent_count(&self) -> u64 {
        self.sent_count.load(Ordering::Relaxed)
    }

    /// Partitions that were found to differ, and made equal, so far.
    pub fn mended_count(&self) -> u64 {
        self.mended_count.load(Ordering::Relaxed)
    }

    pub(super) fn count_sent(&self, mutation_count: u64) {
        self.sent_count.fetch_add(mutation_count, Ordering::Relaxed);
    }

    pub(super) fn count_mended(&self, partition_count: u64) {
        self.mended_count.fetch_add(partition_count, Ordering::Relaxed);
    }

    /// Is what that node misses kept?
    pub(super) fn is_for(&self, data_center: &str) -> bool {
        self.is_enabled() && !self.is_disabled_for(data_center)
    }

    fn centers(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.disabled_centers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
