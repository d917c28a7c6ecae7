//! How many requests the node traces though their clients have not asked for it.

use std::sync::atomic::{AtomicU64, Ordering};

use runtime::Random;

/// Of so many requests one is traced, in a share of 2⁶⁴: a random number below it. Never, at first.
#[derive(Debug, Default)]
pub(crate) struct TraceChance(AtomicU64);

impl TraceChance {
    /// From 0 to 1.
    pub(crate) fn get(&self) -> f64 {
        match self.0.load(Ordering::Relaxed) {
            u64::MAX => 1.0,
            share => share as f64 / RANGE,
        }
    }

    /// Sets it, until the node ends; `false` when it is no chance.
    #[must_use]
    pub(crate) fn set(&self, chance: f64) -> bool {
        let is_chance = (0.0..=1.0).contains(&chance);
        if is_chance {
            // What is too large for the number is its greatest.
            self.0.store((chance * RANGE) as u64, Ordering::Relaxed);
        }
        is_chance
    }

    /// Is a request traced that comes now?
    #[inline]
    pub(crate) fn hits(&self, random: &dyn Random) -> bool {
        match self.0.load(Ordering::Relaxed) {
            0 => false,
            u64::MAX => true,
            share => random.next_u64() < share,
        }
    }
}

const RANGE: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
mod tests {
    use runtime::SeededRandom;

    use super::*;

    #[test]
    fn as_many_are_traced_as_the_chance_says() {
        let (chance, random) = (TraceChance::default(), SeededRandom::new(7));
        let hits = || (0..10_000).filter(|_| chance.hits(&random)).count();
        assert_eq!((chance.get(), hits()), (0.0, 0));
        for (of, least, most) in [(0.25, 2_300, 2_700), (1.0, 10_000, 10_000), (0.0, 0, 0)] {
            assert!(chance.set(of));
            assert!((least..=most).contains(&hits()), "{of}");
            assert_eq!(chance.get(), of);
        }
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(!chance.set(wrong), "{wrong}");
        }
        assert_eq!(chance.get(), 0.0);
    }
}
