//! Tombstones that a read comes upon: how many there were, and how many there may be.

use rows::PartitionKey;

/// How many tombstones a read came upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionTombstones {
    /// In which partition; of a range, the last one that was looked at.
    pub key: PartitionKey,
    /// So many.
    pub count: u64,
}

/// How many tombstones a read may come upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TombstoneThresholds {
    /// Above this the client and the log are told.
    pub warn: u64,
    /// Above this the read fails.
    pub failure: u64,
}

impl TombstoneThresholds {
    /// As many as there are.
    pub const NONE: TombstoneThresholds = TombstoneThresholds { warn: u64::MAX, failure: u64::MAX };
}

impl Default for TombstoneThresholds {
    fn default() -> Self {
        TombstoneThresholds { warn: 1_000, failure: 100_000 }
    }
}
