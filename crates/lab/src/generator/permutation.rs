//! Numbers below a bound in another order, without a table.
//!
//! A hash taken modulo the bound would send several ranks to one row and none to others, which is how YCSB's
//! scrambled choice loses its skew. So: steps that are each one to one on the next power of two (add, multiply by an
//! odd number, xor with oneself shifted), over again while the result is not below the bound. That ends, because a
//! number's round trip leads through itself, and takes two turns on average at most.

/// A fixed order of the numbers below a bound; the bound decides it, so all threads and runs have the same.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    bound: u64,
    /// The ones of the power of two.
    mask: u64,
    /// Half the bits of the power of two.
    shift: u32,
}

impl Permutation {
    pub(super) fn new(bound: u64) -> Permutation {
        assert!(bound > 0, "nothing to permute");
        let bit_count = u64::BITS - (bound - 1).leading_zeros();
        let mask = u64::MAX.checked_shr(u64::BITS - bit_count).unwrap_or(0);
        Permutation { bound, mask, shift: bit_count.div_ceil(2) }
    }

    /// Where a number goes.
    pub(super) fn of(&self, number: u64) -> u64 {
        assert!(number < self.bound, "{number} is not below {}", self.bound);
        let mut moved = self.turned(number);
        while moved >= self.bound {
            moved = self.turned(moved);
        }
        moved
    }

    fn turned(&self, number: u64) -> u64 {
        let step = |number: u64, factor: u64| {
            let product = number.wrapping_mul(factor) & self.mask;
            product ^ (product >> self.shift)
        };
        let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15) & self.mask;
        [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB, 0xD6E8_FEB8_6659_FD93].into_iter().fold(number, step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_below_the_bound_comes_once() {
        for bound in (1..=300).chain([1000, 1023, 1024, 1025, 65_537, 100_000]) {
            let permutation = Permutation::new(bound);
            let mut seen = vec![false; bound as usize];
            for number in 0..bound {
                let moved = permutation.of(number) as usize;
                assert!(!seen[moved], "{moved} comes twice below {bound}");
                seen[moved] = true;
            }
        }
    }

    #[test]
    fn large_bounds_are_kept_too() {
        for bound in [1 << 40, (1 << 40) + 1, u64::MAX] {
            let permutation = Permutation::new(bound);
            assert!((0..1000).chain(bound - 1000..bound).all(|number| permutation.of(number) < bound));
        }
    }

    #[test]
    fn the_first_numbers_go_everywhere() {
        for bound in [100_000, 1_000_000, 12_345_678, 10_000_000_000] {
            let permutation = Permutation::new(bound);
            let mut tenths = [0u32; 10];
            (0..1000).for_each(|number| {
                tenths[(permutation.of(number) as u128 * 10 / bound as u128) as usize] += 1
            });
            // A shuffle has 100 in each, with a standard deviation of 9.5.
            assert!(tenths.iter().all(|count| count.abs_diff(100) < 48), "{bound}: {tenths:?}");
        }
    }
}
