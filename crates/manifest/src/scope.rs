//! Which partitions of a table file count.
//!
//! After a change of the number of shards a file may be listed by several shards. Each compacts it
//! when it likes, and then counts its own partitions of it no more: they are in another file, and
//! perhaps their tombstones are gone. The next change of the shards must not bring them back:
//!
//! ```text
//!   file F   listed by shards 0, 1, 2 │ shard 1 compacted F │ now 2 shards: both list F,
//!            of 3                     │ 0 and 2 list it     │ without what shard 1 of 3 owned
//! ```
//!
//! So the manifest keeps, beside a file, the shards that listed it at each such change. A scope may also be a part of
//! the ring: what of a file belongs to a node, or is repaired, can so be told by an edit instead of a file written
//! anew. No caller makes such scopes yet; they are read, kept and honoured.

use std::collections::BTreeSet;
use std::sync::Arc;

use ring::Sharding;
use rows::{Step, UnfilteredCursor};
use serde::{Deserialize, Serialize};
use types::Token;

use crate::token_ranges::TokenRanges;

/// One thing that narrows a file. Its fields tell in the manifest which kind it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Scope {
    /// At one change of the shards, the file was listed by these.
    Shards {
        /// How tokens were shared out before the change.
        sharding: Sharding,
        /// The shards that listed the file.
        shards: BTreeSet<usize>,
    },
    /// A part of the ring.
    Tokens {
        /// Which part.
        ranges: TokenRanges,
    },
}

/// All that narrows a file.
pub type Scopes = Arc<[Scope]>;

impl Scope {
    #[inline]
    fn contains(&self, token: Token) -> bool {
        match self {
            Scope::Shards { sharding, shards } => shards.contains(&sharding.shard_of(token)),
            Scope::Tokens { ranges } => ranges.contains(token),
        }
    }
}

/// Does a partition of that token count?
#[inline]
pub fn counts(scopes: &[Scope], token: Token) -> bool {
    scopes.iter().all(|scope| scope.contains(token))
}

/// A cursor over a file that leaves out the partitions that do not count.
pub struct Scoped<C> {
    cursor: C,
    scopes: Option<Scopes>,
    is_skipping: bool,
}

impl<C> Scoped<C> {
    /// A cursor over what those scopes leave of another one's partitions; all when there are none.
    pub fn new(cursor: C, scopes: Option<Scopes>) -> Self {
        Scoped { cursor, scopes, is_skipping: false }
    }
}

impl<C: UnfilteredCursor> UnfilteredCursor for Scoped<C> {
    type Need = C::Need;
    type Error = C::Error;

    fn step(&mut self) -> Result<Step<C::Need>, C::Error> {
        loop {
            let step = self.cursor.step()?;
            match &step {
                Step::Header(header) => {
                    let counts = |scopes: &Scopes| counts(scopes, header.key.token);
                    self.is_skipping = !self.scopes.as_ref().is_none_or(counts);
                }
                Step::Item(_) | Step::Need(_) => {}
                Step::End => self.is_skipping = false,
            }
            if !self.is_skipping || matches!(step, Step::Need(_)) {
                return Ok(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sharding(count: u16) -> Sharding {
        Sharding::new(count, Sharding::IGNORE_MSB).expect("valid")
    }

    fn of_shards(count: u16, shards: &[usize]) -> Scope {
        Scope::Shards { sharding: sharding(count), shards: shards.iter().copied().collect() }
    }

    fn of_tokens(first: i64, last: i64) -> Scope {
        Scope::Tokens { ranges: TokenRanges::new([Token(first)..=Token(last)]) }
    }

    #[test]
    fn a_token_counts_when_its_shard_listed_the_file_at_every_change() {
        let scopes = [of_shards(3, &[0, 2]), of_shards(2, &[0])];
        for step in 0..200i64 {
            let token = Token::of(&step.to_be_bytes());
            let expected = sharding(3).shard_of(token) != 1 && sharding(2).shard_of(token) == 0;
            assert_eq!(counts(&scopes, token), expected);
            assert!(counts(&[], token));
        }
    }

    #[test]
    fn a_scope_is_told_by_its_fields() {
        let of_shards =
            (of_shards(3, &[0, 2]), r#"{"sharding":{"shard_count":3,"ignore_msb":12},"shards":[0,2]}"#);
        let of_tokens = (of_tokens(-7, 9), r#"{"ranges":[[-7,9]]}"#);
        for (scope, text) in [of_shards, of_tokens] {
            assert_eq!(serde_json::to_string(&scope).expect("JSON"), text);
            assert_eq!(serde_json::from_str::<Scope>(text).expect("a scope"), scope);
        }
        for strange in [r#"{"ranges":[[1,2]],"until":5}"#, r#"{"ranges":[[2,1]]}"#, "{}"] {
            assert!(serde_json::from_str::<Scope>(strange).is_err(), "{strange}");
        }
    }

    proptest! {
        /// Whatever narrows a file, and in whatever order.
        #[test]
        fn a_token_counts_when_every_scope_takes_it_in(
            shards in prop::collection::vec((1..6u16, prop::collection::btree_set(0..6usize, 0..5)), 0..3),
            ranges in prop::collection::vec((any::<i64>(), any::<i64>()), 0..3),
            tokens in prop::collection::vec(any::<i64>(), 1..30),
        ) {
            let of_shards = shards.iter().map(|(count, shards)| Scope::Shards {
                sharding: sharding(*count),
                shards: shards.clone(),
            });
            let of_ranges = ranges.iter().map(|(first, last)| of_tokens(*first, *last));
            let scopes: Vec<Scope> = of_shards.chain(of_ranges).collect();
            for token in tokens.into_iter().map(Token) {
                let in_shards = shards.iter().all(|(count, shards)| shards.contains(&sharding(*count).shard_of(token)));
                let in_ranges = ranges.iter().all(|(first, last)| (*first..=*last).contains(&token.0));
                prop_assert_eq!(counts(&scopes, token), in_shards && in_ranges);
                let reversed: Vec<Scope> = scopes.iter().rev().cloned().collect();
                prop_assert_eq!(counts(&reversed, token), in_shards && in_ranges);
            }
        }
    }
}
