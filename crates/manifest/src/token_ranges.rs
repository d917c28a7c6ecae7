//! A part of the ring as a list of ranges.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use types::Token;

/// Ranges of tokens, both ends included. One that wraps around the end of the ring is two.
///
/// Invariant: they rise, none is empty, and between two of them is at least one token. So equal parts of the ring are
/// equal lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(i64, i64)>", into = "Vec<(i64, i64)>")]
pub struct TokenRanges(Vec<RangeInclusive<Token>>);

/// Numbers that are no list of ranges as [`TokenRanges`] writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("token ranges must rise, and be neither empty nor next to each other")]
pub struct NoTokenRanges;

impl TokenRanges {
    /// What any of the ranges holds, in whatever order they are; they may overlap.
    pub fn new(ranges: impl IntoIterator<Item = RangeInclusive<Token>>) -> Self {
        let mut sorted: Vec<RangeInclusive<Token>> =
            ranges.into_iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<Token>> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match merged.last_mut() {
                Some(before) if range.start().0 <= before.end().0.saturating_add(1) => {
                    *before = *before.start()..=*before.end().max(range.end());
                }
                _ => merged.push(range),
            }
        }
        TokenRanges(merged)
    }

    /// Is the token in one of them?
    #[inline]
    pub fn contains(&self, token: Token) -> bool {
        let index = self.0.partition_point(|range| *range.end() < token);
        self.0.get(index).is_some_and(|range| range.contains(&token))
    }
}

impl TryFrom<Vec<(i64, i64)>> for TokenRanges {
    type Error = NoTokenRanges;

    fn try_from(stored: Vec<(i64, i64)>) -> Result<Self, NoTokenRanges> {
        let range = |(first, last): &(i64, i64)| Token(*first)..=Token(*last);
        let ranges = TokenRanges::new(stored.iter().map(range));
        if Vec::from(ranges.clone()) == stored { Ok(ranges) } else { Err(NoTokenRanges) }
    }
}

impl From<TokenRanges> for Vec<(i64, i64)> {
    fn from(ranges: TokenRanges) -> Self {
        ranges.0.into_iter().map(|range| (range.start().0, range.end().0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Tokens that meet each other often, and the ends of the ring.
    fn token() -> impl Strategy<Value = i64> {
        prop_oneof![4 => -20..20i64, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
    }

    proptest! {
        #[test]
        fn a_token_is_in_the_list_when_it_is_in_one_of_the_ranges(
            ranges in prop::collection::vec((token(), token()), 0..8),
            tokens in prop::collection::vec(token(), 1..40),
        ) {
            let ranges: Vec<RangeInclusive<Token>> =
                ranges.into_iter().map(|(first, last)| Token(first)..=Token(last)).collect();
            let list = TokenRanges::new(ranges.clone());
            for token in tokens.into_iter().map(Token) {
                let is_in_one = ranges.iter().any(|range| range.contains(&token));
                prop_assert_eq!(list.contains(token), is_in_one, "{:?} in {:?}", token, list);
            }
            prop_assert_eq!(&TokenRanges::new(ranges.into_iter().rev()), &list, "in whatever order");
            let text = serde_json::to_string(&list).expect("JSON");
            prop_assert_eq!(serde_json::from_str::<TokenRanges>(&text).expect("read back"), list);
        }
    }

    #[test]
    fn a_list_that_nobody_would_write_is_refused() {
        for text in [
            "[[5,4]]",
            "[[1,2],[3,4]]",
            "[[1,5],[2,9]]",
            "[[7,8],[1,2]]",
            "[[1]]",
            "[[1,99999999999999999999]]",
        ] {
            assert!(serde_json::from_str::<TokenRanges>(text).is_err(), "{text}");
        }
    }
}
