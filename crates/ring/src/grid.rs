//! The grid: the ring cut into `2^g` equal slots, at whose ends vnodes end.
//!
//! ```text
//!   i64::MIN                                                          i64::MAX
//!   |    slot 0    |    slot 1    |    slot 2    |  …  |   slot 2^g − 1   |
//!                  ^ last token   ^ last token                            ^ last token
//! ```
//!
//! Cassandra's rule is that a node with token T owns what lies behind the token before, up to and
//! including T. If T may only be the last token of a slot, a slot is never divided between vnodes. Then
//! a table with one entry for each slot finds the replicas of any token, and whatever is counted or
//! moved can be counted and moved in slots. Drivers see ordinary tokens.
//!
//! This is why a token off the grid is refused, also when an operator wrote it: one such token
//! would bring the search in a sorted list back for all. Nobody loses more by it than the 2^-12th part
//! of the ring; the error names the nearest token that can be had.
//!
//! The grid is made finer when there are many nodes ([`crate::Topology::refined`]): slots are halved, so
//! that every token stays where it is.

use types::Token;

use crate::{RingError, Sharding};

/// How fine the ring is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grid {
    /// Invariant: within [`Grid::SLOT_BITS_MIN`] to [`Grid::SLOT_BITS_MAX`].
    slot_bits: u8,
}

impl Grid {
    /// `g` of the coarsest grid, 4,096 slots. It is [`Sharding::IGNORE_MSB`], so that a slot holds each
    /// shard's tokens once.
    pub const SLOT_BITS_MIN: u8 = Sharding::IGNORE_MSB;
    /// `g` of the finest grid, 65,536 slots: a slot's number fits into 16 bits.
    pub const SLOT_BITS_MAX: u8 = 16;
    /// The grid that rings begin with.
    pub const COARSEST: Grid = Grid { slot_bits: Self::SLOT_BITS_MIN };

    /// A grid of `2^slot_bits` slots.
    ///
    /// # Errors
    /// [`RingError::SlotBits`] when it would be too coarse or too fine.
    pub fn new(slot_bits: u8) -> Result<Self, RingError> {
        match (Self::SLOT_BITS_MIN..=Self::SLOT_BITS_MAX).contains(&slot_bits) {
            true => Ok(Grid { slot_bits }),
            false => Err(RingError::SlotBits { slot_bits }),
        }
    }

    /// The logarithm of the number of slots.
    pub fn slot_bits(self) -> u8 {
        self.slot_bits
    }

    /// How many slots there are.
    pub fn slot_count(self) -> usize {
        1 << self.slot_bits
    }

    /// The slot a token lies in, from 0.
    pub fn slot_of(self, token: Token) -> usize {
        (biased(token) >> (64 - self.slot_bits)) as usize
    }

    /// The last token of a slot: where a vnode may end.
    ///
    /// # Panics
    /// When there is no such slot.
    pub fn last_token(self, slot: usize) -> Token {
        assert!(slot < self.slot_count(), "a slot is one of its grid");
        let after = (slot as u128 + 1) << (64 - self.slot_bits);
        Token(((after - 1) as u64 ^ (1 << 63)) as i64)
    }

    /// Is the token the last one of a slot?
    pub fn has(self, token: Token) -> bool {
        self.last_token(self.slot_of(token)) == token
    }

    /// The token of the grid that is nearest to one that may lie off it.
    pub fn nearest(self, token: Token) -> Token {
        let slot = self.slot_of(token);
        let after = self.last_token(slot);
        let before = self.last_token(slot.checked_sub(1).unwrap_or(self.slot_count() - 1));
        // Around the ring: the first slot's predecessor is the last one.
        let distance = |other: Token| {
            biased(token).wrapping_sub(biased(other)).min(biased(other).wrapping_sub(biased(token)))
        };
        if distance(before) < distance(after) { before } else { after }
    }

    /// Does every slot, and so every vnode, hold each shard's tokens in whole turns? Otherwise a vnode
    /// may begin or end within a turn, and some shards of its node get more of it than others.
    pub fn fits(self, sharding: Sharding) -> bool {
        sharding.ignore_msb() >= self.slot_bits
    }
}

/// Tokens in their order as numbers from 0.
pub(crate) fn biased(token: Token) -> u64 {
    (token.0 as u64) ^ (1 << 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(slot_bits: u8) -> Grid {
        Grid::new(slot_bits).expect("a grid")
    }

    #[test]
    fn a_slot_ends_with_its_last_token() {
        for slot_bits in 12..=16 {
            let grid = grid(slot_bits);
            assert_eq!(grid.slot_of(Token::MIN), 0);
            assert_eq!(grid.last_token(grid.slot_count() - 1), Token::MAX);
            for slot in [0, 1, 77, grid.slot_count() / 2, grid.slot_count() - 2] {
                let last = grid.last_token(slot);
                assert!(grid.has(last));
                assert!(!grid.has(Token(last.0 + 1)));
                assert_eq!(grid.slot_of(last), slot);
                assert_eq!(grid.slot_of(Token(last.0 + 1)), slot + 1);
            }
        }
    }

    #[test]
    fn a_finer_grid_has_all_tokens_of_a_coarser_one() {
        let coarse = grid(12);
        for slot in 0..coarse.slot_count() {
            let token = coarse.last_token(slot);
            assert_eq!(grid(13).slot_of(token), 2 * slot + 1);
            assert!(grid(16).has(token));
        }
    }

    #[test]
    fn the_nearest_token_of_the_grid_is_found_around_the_ring() {
        let grid = grid(12);
        let width = 1i64 << 52;
        let last = grid.last_token(7);
        for (token, nearest) in [
            (last.0, last),
            (last.0 + width / 4, last),
            (last.0 - width / 4, last),
            (last.0 + width * 3 / 4, grid.last_token(8)),
            (i64::MIN, Token::MAX),
            (i64::MIN + width / 4, Token::MAX),
            (i64::MIN + width * 3 / 4, grid.last_token(0)),
        ] {
            assert_eq!(grid.nearest(Token(token)), nearest, "{token}");
        }
    }

    #[test]
    fn a_slot_holds_whole_turns_of_the_shards() {
        for shard_count in [1, 3, 8] {
            let sharding = Sharding::new(shard_count, Sharding::IGNORE_MSB).expect("a rule");
            assert!(Grid::COARSEST.fits(sharding));
            for slot in [0, 1, 4_000] {
                let last = Grid::COARSEST.last_token(slot);
                let first = Token(last.0 - ((1 << 52) - 1));
                assert_eq!(sharding.piece_count(first, last), u64::from(shard_count));
                assert_eq!(sharding.shard_of(first), 0);
                assert_eq!(sharding.shard_of(last), usize::from(shard_count) - 1);
            }
            assert!(!grid(13).fits(sharding), "half a turn");
            assert!(grid(16).fits(Sharding::new(shard_count, 16).expect("a rule")));
        }
    }

    #[test]
    fn too_coarse_and_too_fine_grids_are_refused() {
        assert_eq!(Grid::new(11), Err(RingError::SlotBits { slot_bits: 11 }));
        assert_eq!(Grid::new(17), Err(RingError::SlotBits { slot_bits: 17 }));
    }
}
