//! Random numbers that a seed repeats: the same on any machine, and for any number of threads.
//!
//! The numbers are xoshiro256++ of Blackman and Vigna ("Scrambled linear pseudorandom number generators", 2021): 32
//! bytes of state, a nanosecond a number, no flaw that a workload could notice. The state is filled by splitmix64, as
//! its authors advise. Every thread of a client has its own, from the run's seed and the thread's index, so that
//! threads share nothing and a run with the same threads draws the same again.

use std::time::Duration;

/// What splitmix64 adds a step: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A source of random numbers under a seed. Not for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    /// Invariant: not all zero, which would stay so for ever.
    state: [u64; 4],
}

impl Random {
    /// The numbers of one thread of a run. Any seed will do; threads of one seed have unlike numbers.
    pub fn new(seed: u64, thread_index: u32) -> Random {
        // Scattered once before the index is added: else the threads of seeds 1 and 2 would be nearly the same ones.
        let start = scattered(scattered(seed.wrapping_add(GOLDEN)).wrapping_add(u64::from(thread_index)));
        // Splitmix64 is one to one, so at most one of four steps gives 0.
        let state = [1, 2, 3, 4].map(|step: u64| scattered(start.wrapping_add(step.wrapping_mul(GOLDEN))));
        Random { state }
    }

    /// The next number, any of 64 bits.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator's next may end and is looped over; this is neither"
    )]
    pub fn next(&mut self) -> u64 {
        let [first, second, third, fourth] = &mut self.state;
        let number = first.wrapping_add(*fourth).rotate_left(23).wrapping_add(*first);
        let shifted = *second << 17;
        *third ^= *first;
        *fourth ^= *second;
        *second ^= *third;
        *first ^= *fourth;
        *third ^= shifted;
        *fourth = fourth.rotate_left(45);
        number
    }

    /// A number below a bound, each as likely as another up to `bound` in 2^64: by the upper half of a product, since
    /// a remainder is dearer.
    ///
    /// # Panics
    /// When the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below 0");
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// From 0 to 1, without 1; a multiple of 2^-53, as Java's `nextDouble`.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// How long until the next arrival of a Poisson process, in whole nanoseconds: exponential with a mean.
    pub fn gap(&mut self, mean: Duration) -> Duration {
        // 1 - fraction is never 0, so its logarithm is finite: the longest gap is 36.7 means.
        let means = -(1.0 - self.fraction()).ln();
        Duration::from_nanos((means * mean.as_nanos() as f64).round() as u64)
    }
}

/// The scattering of splitmix64: one to one, and each bit of the number changes half of the others.
pub(crate) fn scattered(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_numbers_are_those_of_the_authors_xoshiro256_plus_plus() {
        // Of the state 1, 2, 3, 4, as their C code prints them.
        let mut random = Random { state: [1, 2, 3, 4] };
        let expected = [41943041, 58720359, 3588806011781223, 3591011842654386];
        assert_eq!(expected.map(|_| random.next()), expected);
    }

    #[test]
    fn a_seed_repeats_and_threads_differ() {
        let numbers = |seed, thread_index| {
            let mut random = Random::new(seed, thread_index);
            [(); 8].map(|()| random.next())
        };
        assert_eq!(numbers(7, 3), numbers(7, 3));
        let mut seen = BTreeSet::new();
        for seed in 0..64 {
            (0..64).for_each(|thread_index| seen.extend(numbers(seed, thread_index)));
        }
        assert_eq!(seen.len(), 64 * 64 * 8);
    }

    #[test]
    fn numbers_below_a_bound_are_even() {
        let mut random = Random::new(1, 0);
        let mut counts = [0u32; 7];
        (0..700_000).for_each(|_| counts[random.below(7) as usize] += 1);
        // Five standard deviations of 293: a fair source fails for 4 seeds in a million.
        assert!(counts.iter().all(|count| count.abs_diff(100_000) < 1464), "{counts:?}");
        assert_eq!(random.below(1), 0);
        assert!((0..1000).all(|_| random.fraction() < 1.0));
    }

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let mut random = Random::new(2, 0);
        let mean = Duration::from_micros(250);
        let gaps: Vec<f64> =
            (0..1_000_000).map(|_| random.gap(mean).as_secs_f64() / mean.as_secs_f64()).collect();
        let count = gaps.len() as f64;
        // Five standard deviations, of 0.001 for the mean and for the share of a mass of one half.
        assert!((gaps.iter().sum::<f64>() / count - 1.0).abs() < 0.005);
        let longer = gaps.iter().filter(|gap| **gap > 2f64.ln()).count() as f64 / count;
        assert!((longer - 0.5).abs() < 0.0025, "{longer}");
        let far = gaps.iter().filter(|gap| **gap > 5.0).count() as f64 / count;
        assert!((far - (-5f64).exp()).abs() < 0.000_41, "{far}");
    }
}
