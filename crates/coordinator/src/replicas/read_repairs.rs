//! How often the answers of several replicas were compared by a read, and differed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Those of a shard. Written by few threads, read by any.
#[derive(Debug, Default)]
pub struct ReadRepairs {
    compared: AtomicU64,
    mismatched: AtomicU64,
}

impl ReadRepairs {
    /// Reads whose answers from several replicas were compared, by the rows themselves or by their hash.
    pub fn compared(&self) -> u64 {
        self.compared.load(Ordering::Relaxed)
    }

    /// Of these, those of which a replica lacked something, which was written to it before the read was answered.
    pub fn mismatched(&self) -> u64 {
        self.mismatched.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, is_mismatch: bool) {
        self.compared.fetch_add(1, Ordering::Relaxed);
        if is_mismatch {
            self.mismatched.fetch_add(1, Ordering::Relaxed);
        }
    }
}
