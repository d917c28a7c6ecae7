//! The partition key and where it lives.

use std::cmp::Ordering;

use bytes::Bytes;
use types::Token;

/// A serialized partition key and its token: Cassandra's decorated key.
///
/// One column: its value as it is. Several: for each, `u16` big-endian length, value, a zero byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    /// Place on the ring.
    pub token: Token,
    /// The serialized key, at most [`types::encoding::KEY_BYTES_MAX`] bytes.
    pub bytes: Bytes,
}

impl PartitionKey {
    /// The key of these bytes.
    pub fn new(bytes: Bytes) -> Self {
        PartitionKey { token: Token::of(&bytes), bytes }
    }

    /// The same key in memory of its own.
    pub fn copied(&self) -> PartitionKey {
        PartitionKey { token: self.token, bytes: Bytes::copy_from_slice(&self.bytes) }
    }
}

impl PartialOrd for PartitionKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Ring order: by token, then by key bytes (unsigned).
impl Ord for PartitionKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.token.cmp(&other.token).then_with(|| self.bytes.cmp(&other.bytes))
    }
}
