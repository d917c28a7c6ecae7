//! Choices that a seed decides.

use runtime::{Random, SeededRandom};

/// Rolls for one actor: what it gets depends on its own seed alone.
#[derive(Debug)]
pub(crate) struct Dice(SeededRandom);

impl Dice {
    /// Dice of an actor in a run.
    pub(crate) fn new(seed: u64, life: u64, actor: u64) -> Dice {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (life << 32) ^ (actor << 48);
        Dice(SeededRandom::new(mixed))
    }

    /// A number below the bound.
    pub(crate) fn below(&self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    /// A number within both ends.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// True once in so many times.
    pub(crate) fn one_in(&self, times: u64) -> bool {
        self.0.below(times) == 0
    }

    /// One of these.
    pub(crate) fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
