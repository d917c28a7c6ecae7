//! Where on the ring a partition lives.

/// Position of a partition key on the ring: Murmur3 of the serialized key, as Cassandra's
/// `Murmur3Partitioner` computes it. `i64::MIN` is never the token of a key; it bounds ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub i64);

impl Token {
    /// The bound below every key's token.
    pub const MIN: Token = Token(i64::MIN);
}
