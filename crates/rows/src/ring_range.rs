//! Parts of the ring, told by places between partitions.

use std::cmp::Ordering;

use types::Token;

use crate::PartitionKey;

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
    pub fn is_before_parts(&self, token: Token, key: &[u8]) -> bool {
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

/// A run of the ring without wrap-around: keys behind `start` and before `end`; none when these are the wrong way
/// round.
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

    /// All keys of the tokens from `first` to `last`, both included.
    pub const fn tokens(first: Token, last: Token) -> Self {
        RingRange { start: RingPlace::BeforeToken(first), end: RingPlace::AfterToken(last) }
    }

    /// What is left of it behind a key that is in it.
    #[must_use]
    pub fn after(&self, key: PartitionKey) -> Self {
        RingRange { start: RingPlace::AfterKey(key), end: self.end.clone() }
    }

    /// What of it lies in the tokens from `first` to `last`.
    #[must_use]
    pub fn cut(&self, first: Token, last: Token) -> Self {
        let cut = RingRange::tokens(first, last);
        RingRange {
            start: if self.first_token() >= first { self.start.clone() } else { cut.start },
            end: if self.last_token() <= last { self.end.clone() } else { cut.end },
        }
    }

    /// Is the key in it?
    pub fn contains(&self, key: &PartitionKey) -> bool {
        self.start.is_before(key) && !self.end.is_before(key)
    }

    /// The least token of which a key may be in it.
    pub fn first_token(&self) -> Token {
        match &self.start {
            RingPlace::Start => Token(i64::MIN),
            RingPlace::BeforeToken(token) => *token,
            RingPlace::AfterToken(token) => Token(token.0.saturating_add(1)),
            RingPlace::BeforeKey(key) | RingPlace::AfterKey(key) => key.token,
            RingPlace::End => Token(i64::MAX),
        }
    }

    /// The greatest one.
    pub fn last_token(&self) -> Token {
        match &self.end {
            RingPlace::Start => Token(i64::MIN),
            RingPlace::BeforeToken(token) => Token(token.0.saturating_sub(1)),
            RingPlace::AfterToken(token) => *token,
            RingPlace::BeforeKey(key) | RingPlace::AfterKey(key) => key.token,
            RingPlace::End => Token(i64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn key(token: i64, name: u8) -> PartitionKey {
        PartitionKey { token: Token(token), bytes: Bytes::copy_from_slice(&[name]) }
    }

    fn place() -> impl Strategy<Value = RingPlace> {
        let token = || prop_oneof![8 => -3..3i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
        let key = || (token(), 0..3u8).prop_map(|(token, name)| key(token, name));
        prop_oneof![
            Just(RingPlace::Start),
            Just(RingPlace::End),
            token().prop_map(|token| RingPlace::BeforeToken(Token(token))),
            token().prop_map(|token| RingPlace::AfterToken(Token(token))),
            key().prop_map(RingPlace::BeforeKey),
            key().prop_map(RingPlace::AfterKey),
        ]
    }

    proptest! {
        #[test]
        fn a_range_is_cut_to_tokens_key_by_key(
            (start, end) in (place(), place()),
            (first, last) in (-4..4i64, -4..4i64),
        ) {
            let range = RingRange { start, end };
            let cut = range.cut(Token(first), Token(last));
            for token in [i64::MIN, -4, -3, -2, -1, 0, 1, 2, 3, 4, i64::MAX] {
                for name in 0..3 {
                    let key = key(token, name);
                    let expected = range.contains(&key) && (first..=last).contains(&token);
                    prop_assert_eq!(cut.contains(&key), expected, "{:?} in {:?}", key, cut);
                    if range.contains(&key) {
                        prop_assert!(range.first_token() <= key.token && key.token <= range.last_token());
                        let behind = range.after(key.clone());
                        prop_assert!(!behind.contains(&key));
                    }
                }
            }
        }
    }

    #[test]
    fn tokens_are_of_a_range_with_both_ends() {
        let range = RingRange::tokens(Token(1), Token(2));
        let contained: Vec<i64> = (0..4).filter(|token| range.contains(&key(*token, 7))).collect();
        assert_eq!(contained, [1, 2]);
        assert!(!RingRange::tokens(Token(2), Token(1)).contains(&key(1, 7)));
    }
}
