//! Which way requests took: a node whose clients are all slow may find that none took the plain one.

use std::sync::atomic::{AtomicU64, Ordering};

/// Requests of one shard, by their way. Written by the shard alone, read by any thread.
#[derive(Debug, Default)]
pub struct RequestWays {
    /// Prepared reads of one row, answered in the turn in which they came.
    pub plain_reads: WayCount,
    /// Prepared writes of one row, likewise.
    pub plain_writes: WayCount,
    /// Prepared reads of one row that went to another shard in a remote batch.
    pub remote_reads: WayCount,
    /// Prepared writes of one row, likewise, or that waited for the disk together.
    pub remote_writes: WayCount,
    /// All others.
    pub full: WayCount,
    /// Batches whose answers waited for those of others of their turn.
    pub awaiting_batches: WayCount,
    /// How often those did not come in time.
    pub late_batches: WayCount,
}

/// How many.
#[derive(Debug, Default)]
pub struct WayCount(AtomicU64);

impl WayCount {
    /// So many more.
    pub(crate) fn add(&self, count: usize) {
        // One writer: a load and a store are enough.
        self.0.store(self.0.load(Ordering::Relaxed) + count as u64, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
