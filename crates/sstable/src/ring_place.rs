//! Places on the ring between partitions: what bounds a scan.

use std::cmp::Ordering;

use rows::PartitionKey;
use types::Token;

/// A place between partitions, in ring order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingPlace {
    /// Before all partitions.
    Start,
    /// Before every key of that token.
    BeforeToken(Token),
    /// After every key of that token.
    AfterToken(Token),
    /// Before that key.
    BeforeKey(PartitionKey),
    /// After that key.
    AfterKey(PartitionKey),
    /// After all partitions.
    End,
}

impl RingPlace {
    /// Is the key behind the place?
    pub fn is_before(&self, key: &PartitionKey) -> bool {
        self.is_before_parts(key.token, &key.bytes)
    }

    /// Is the key of that token and those bytes behind the place?
    pub(crate) fn is_before_parts(&self, token: Token, key: &[u8]) -> bool {
        let order = |place: &PartitionKey| (token, key).cmp(&(place.token, &place.bytes));
        match self {
            RingPlace::Start => true,
            RingPlace::BeforeToken(place) => token >= *place,
            RingPlace::AfterToken(place) => token > *place,
            RingPlace::BeforeKey(place) => order(place) != Ordering::Less,
            RingPlace::AfterKey(place) => order(place) == Ordering::Greater,
            RingPlace::End => false,
        }
    }
}

/// A run of the ring without wrap-around: keys behind `start` and before `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingRange {
    /// Where it begins.
    pub start: RingPlace,
    /// Where it ends.
    pub end: RingPlace,
}

impl RingRange {
    /// Everything.
    pub const ALL: RingRange = RingRange { start: RingPlace::Start, end: RingPlace::End };

    /// Cassandra's token range: after `start` up to and with `end`; [`Token::MIN`] as end has no end.
    pub fn tokens(start: Token, end: Token) -> Self {
        let end = if end == Token::MIN { RingPlace::End } else { RingPlace::AfterToken(end) };
        RingRange { start: RingPlace::AfterToken(start), end }
    }

    /// Is the key in it?
    pub fn contains(&self, key: &PartitionKey) -> bool {
        self.start.is_before(key) && !self.end.is_before(key)
    }
}
