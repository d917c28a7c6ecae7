//! Which shard of a node owns a token.
//!
//! The rule is ScyllaDB's, so that drivers that know it can go to the right core: the token, made
//! unsigned, loses its `ignore_msb` highest bits and what is left is spread evenly.
//!
//! ```text
//!   token + 2^63:  | ignore_msb bits |  …………… the rest …………… |
//!                                       × shard_count, highest bits → shard
//! ```
//!
//! The ring is so cut into `2^ignore_msb` pieces, each of which holds all shards in turn: even a
//! node that owns a few vnodes keeps all its shards busy.

use serde::{Deserialize, Serialize};
use types::Token;

/// The rule that gives each token a shard. Kept in the data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Sharding {
    shard_count: u16,
    ignore_msb: u8,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    shard_count: u16,
    ignore_msb: u8,
}

/// Numbers that make no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sharding over {shard_count} shards without the highest {ignore_msb} bits is not possible")]
pub struct ShardingError {
    /// Must be at least 1.
    pub shard_count: u16,
    /// Must be below 48.
    pub ignore_msb: u8,
}

impl Sharding {
    /// How many bits our own directories ignore, as Scylla's do.
    pub const IGNORE_MSB: u8 = 12;

    /// A rule.
    ///
    /// # Errors
    /// [`ShardingError`] when there is no shard, or hardly a bit left to spread.
    pub fn new(shard_count: u16, ignore_msb: u8) -> Result<Self, ShardingError> {
        if shard_count == 0 || ignore_msb >= 48 {
            return Err(ShardingError { shard_count, ignore_msb });
        }
        Ok(Sharding { shard_count, ignore_msb })
    }

    /// How many shards there are.
    pub fn shard_count(self) -> usize {
        usize::from(self.shard_count)
    }

    /// How many of the highest bits the rule leaves out.
    pub fn ignore_msb(self) -> u8 {
        self.ignore_msb
    }

    /// The shard that owns a token, from 0.
    pub fn shard_of(self, token: Token) -> usize {
        let biased = (token.0 as u64) ^ (1 << 63);
        let spread = u128::from(biased << self.ignore_msb) * u128::from(self.shard_count);
        (spread >> 64) as usize
    }

    /// How many pieces, each of one shard, the tokens from `first` to `last` touch.
    pub fn piece_count(self, first: Token, last: Token) -> u64 {
        if last < first { 0 } else { self.piece_of(last) - self.piece_of(first) + 1 }
    }

    /// The shards that own tokens from `first` to `last`, each once.
    pub fn shards_within(self, first: Token, last: Token) -> impl Iterator<Item = usize> {
        let count = self.shard_count();
        let touched = usize::try_from(self.piece_count(first, last)).unwrap_or(usize::MAX).min(count);
        let start = self.shard_of(first);
        (start..start + touched).map(move |shard| shard % count)
    }

    /// The first token, from `from` on, that another shard than `shard` owns.
    pub fn next_of_others(self, from: Token, shard: usize) -> Option<Token> {
        if self.shard_of(from) != shard {
            return Some(from);
        }
        let here = self.piece_of(from);
        if self.shard_count == 1 || self.piece_of(Token(i64::MAX)) == here {
            return None;
        }
        // Neighbouring pieces are of different shards.
        let (mut own, mut other) = (from.0, i64::MAX);
        while other.abs_diff(own) > 1 {
            let middle = own + (other.abs_diff(own) / 2) as i64;
            match self.piece_of(Token(middle)) == here {
                true => own = middle,
                false => other = middle,
            }
        }
        Some(Token(other))
    }

    /// The piece a token lies in, counted from the lowest token.
    fn piece_of(self, token: Token) -> u64 {
        let biased = (token.0 as u64) ^ (1 << 63);
        let high = biased.checked_shr(64 - u32::from(self.ignore_msb)).unwrap_or(0);
        high * u64::from(self.shard_count) + self.shard_of(token) as u64
    }
}

impl TryFrom<Stored> for Sharding {
    type Error = ShardingError;
    fn try_from(stored: Stored) -> Result<Self, ShardingError> {
        Sharding::new(stored.shard_count, stored.ignore_msb)
    }
}

impl From<Sharding> for Stored {
    fn from(sharding: Sharding) -> Self {
        Stored { shard_count: sharding.shard_count, ignore_msb: sharding.ignore_msb }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shard_owns_everything() {
        let sharding = Sharding::new(1, Sharding::IGNORE_MSB).expect("valid");
        for token in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert_eq!(sharding.shard_of(Token(token)), 0);
        }
    }

    #[test]
    fn shards_share_the_ring_evenly() {
        let sharding = Sharding::new(3, Sharding::IGNORE_MSB).expect("valid");
        let mut counts = [0u32; 3];
        for step in 0..30_000i64 {
            let token = Token::of(&step.to_be_bytes());
            counts[sharding.shard_of(token)] += 1;
        }
        assert!(counts.iter().all(|count| (9_000..11_000).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_shards_within_a_stretch_are_those_of_its_tokens() {
        for (count, ignored) in [(1, 12), (2, 12), (3, 12), (5, 0), (4, 3)] {
            let sharding = Sharding::new(count, ignored).expect("valid");
            let all: Vec<usize> = sharding.shards_within(Token(i64::MIN), Token(i64::MAX)).collect();
            assert_eq!(all.len(), usize::from(count));
            assert_eq!(sharding.piece_count(Token(i64::MIN), Token(i64::MAX)), u64::from(count) << ignored);
            for step in 0..2_000i64 {
                let first = Token::of(&step.to_be_bytes());
                let width = 1i64 << (step % 62);
                let last = Token(first.0.saturating_add(width));
                let shards: Vec<usize> = sharding.shards_within(first, last).collect();
                for part in 0..=32 {
                    let token = Token(first.0 + (last.0 - first.0) / 32 * part);
                    assert!(shards.contains(&sharding.shard_of(token)), "{first:?} {last:?} {shards:?}");
                }
                if sharding.piece_count(first, last) == 1 {
                    assert_eq!(shards, [sharding.shard_of(last)]);
                }
            }
            assert_eq!(sharding.shards_within(Token(5), Token(4)).count(), 0);
        }
    }

    #[test]
    fn the_next_token_of_another_shard_is_where_the_piece_ends() {
        for (count, ignored) in [(2, 12), (3, 12), (5, 0), (4, 3)] {
            let sharding = Sharding::new(count, ignored).expect("valid");
            for step in 0..2_000i64 {
                let from = Token::of(&step.to_be_bytes());
                let shard = sharding.shard_of(from);
                assert_eq!(sharding.next_of_others(from, shard + 1), Some(from));
                match sharding.next_of_others(from, shard) {
                    Some(next) => {
                        assert!(next > from);
                        assert_eq!(sharding.piece_count(from, next), 2, "the piece behind it");
                        assert_eq!(sharding.piece_count(from, Token(next.0 - 1)), 1, "and no token before");
                        assert_ne!(sharding.shard_of(next), shard);
                    }
                    None => assert_eq!(sharding.piece_count(from, Token(i64::MAX)), 1, "the last piece"),
                }
            }
        }
        let alone = Sharding::new(1, 12).expect("valid");
        assert_eq!(alone.next_of_others(Token(0), 0), None);
    }

    #[test]
    fn numbers_that_make_no_rule_are_refused() {
        assert!(Sharding::new(0, 12).is_err());
        assert!(Sharding::new(4, 60).is_err());
    }
}
