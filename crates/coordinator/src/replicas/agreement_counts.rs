//! How replicas have come to agree.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a node has proposed of conditional changes, over all of its shards. Any thread may read it.
#[derive(Debug, Default)]
pub struct AgreementCounts {
    settled: AtomicU64,
    rounds: AtomicU64,
    contended: AtomicU64,
    unfinished: AtomicU64,
}

impl AgreementCounts {
    /// Proposals that were settled as they were made: of one change, or of several that were decided together, or that
    /// nothing is changed.
    pub fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// Rounds of messages that clients waited for, for these: one each when nobody comes between, and when what is
    /// chosen need not be written before it is told.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Of these rounds, those in which somebody else had come before, or a replica had something else than what was
    /// decided on.
    pub fn contended(&self) -> u64 {
        self.contended.load(Ordering::Relaxed)
    }

    /// Proposals of others, or of an earlier run, that were found unfinished and were made good.
    pub fn unfinished(&self) -> u64 {
        self.unfinished.load(Ordering::Relaxed)
    }

    pub(super) fn note_settled(&self) {
        self.settled.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_round(&self, is_contended: bool) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.contended.fetch_add(u64::from(is_contended), Ordering::Relaxed);
    }

    pub(super) fn note_unfinished(&self) {
        self.unfinished.fetch_add(1, Ordering::Relaxed);
    }
}
