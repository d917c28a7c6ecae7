//! Why rows can not be taken.

use rows::{Clustering, PartitionKey};

/// Why a read ends without an answer, however sound what it reads is.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ReadError {
    /// One row alone: whoever asks has to allow more.
    #[error("a row takes {bytes} bytes, more than the page may have")]
    RowTooLarge { bytes: usize },
    #[error("the read came upon {} tombstones, more than tombstone_failure_threshold", .0.tombstone_count)]
    TooManyTombstones(Box<TooManyTombstones>),
}

/// How far a read came that ended because of tombstones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooManyTombstones {
    /// So many it came upon.
    pub tombstone_count: u64,
    /// Live rows before; of keys, those of the one where it ended.
    pub live_count: u64,
    /// The partition where it ended.
    pub key: PartitionKey,
    /// The row or the edge of a range there.
    pub clustering: Option<Clustering>,
}
