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
//! So the manifest keeps, beside a file, the shards that listed it at each such change.

use std::collections::BTreeSet;
use std::sync::Arc;

use ring::Sharding;
use rows::{Step, UnfilteredCursor};
use serde::{Deserialize, Serialize};
use types::Token;

/// At one change of the shards, a file was listed by these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scope {
    pub(crate) sharding: Sharding,
    pub(crate) shards: BTreeSet<usize>,
}

/// All that narrows a file.
pub(crate) type Scopes = Arc<[Scope]>;

/// Does a partition of that token count?
pub(crate) fn counts(scopes: &[Scope], token: Token) -> bool {
    scopes.iter().all(|scope| scope.shards.contains(&scope.sharding.shard_of(token)))
}

/// A cursor over a file that leaves out the partitions that do not count.
pub(crate) struct Scoped<C> {
    cursor: C,
    scopes: Option<Scopes>,
    is_skipping: bool,
}

impl<C> Scoped<C> {
    pub(crate) fn new(cursor: C, scopes: Option<Scopes>) -> Self {
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
    use super::*;

    #[test]
    fn a_token_counts_when_its_shard_listed_the_file_at_every_change() {
        let sharding = |count| Sharding::new(count, Sharding::IGNORE_MSB).expect("valid");
        let scope = |count, shards: &[usize]| Scope {
            sharding: sharding(count),
            shards: shards.iter().copied().collect(),
        };
        let scopes = [scope(3, &[0, 2]), scope(2, &[0])];
        for step in 0..200i64 {
            let token = Token::of(&step.to_be_bytes());
            let expected = sharding(3).shard_of(token) != 1 && sharding(2).shard_of(token) == 0;
            assert_eq!(counts(&scopes, token), expected);
            assert!(counts(&[], token));
        }
    }
}
