//! Sums of the weights of a zipfian choice: `1/1^theta + 1/2^theta + … + 1/n^theta`.
//!
//! YCSB adds up term by term, which takes a minute for some hundred million rows. Here the first 100,000 terms of a sum
//! are added so, in the same order; the rest is an integral, with the two ends weighed by half (Euler and Maclaurin's
//! first correction):
//!
//! ```text
//!   sum of i^-theta, i from m+1 to n  =  (n^(1-theta) - m^(1-theta)) / (1-theta) + (n^-theta - m^-theta) / 2 + error
//!   0 < error < theta/12 · m^(-theta-1)  <  1e-11 for theta 0.99 and m >= 100,000
//! ```
//!
//! The rounding of 100,000 additions is smaller still. For YCSB's own 10^10 items the sum is within 5e-11 of the
//! constant that YCSB states, 26.46902820178302.

use std::ops::Range;

/// So many terms of a sum are added one by one.
const EXACT_TERM_COUNT: u64 = 100_000;

/// The weights of so many ranks together.
pub(super) fn zeta(rank_count: u64, theta: f64) -> f64 {
    grown_zeta(0.0, 0..rank_count, theta)
}

/// What a sum over the ranks up to the start of a range becomes when those of the range are added to it.
pub(super) fn grown_zeta(sum: f64, ranks: Range<u64>, theta: f64) -> f64 {
    let exact_end = ranks.end.min(ranks.start.saturating_add(EXACT_TERM_COUNT));
    let exact = (ranks.start..exact_end).fold(sum, |sum, rank| sum + 1.0 / ((rank + 1) as f64).powf(theta));
    if exact_end < ranks.end { exact + integral(exact_end as f64, ranks.end as f64, theta) } else { exact }
}

/// The weights of the ranks after the one to the last, both counted from 1.
fn integral(after: f64, last: f64, theta: f64) -> f64 {
    let power = 1.0 - theta;
    (last.powf(power) - after.powf(power)) / power + (last.powf(-theta) - after.powf(-theta)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added_up(rank_count: u64, theta: f64) -> f64 {
        // From the smallest term on, so that rounding does not add up.
        (1..=rank_count).rev().map(|rank| (rank as f64).powf(-theta)).sum()
    }

    #[test]
    fn the_integral_is_as_near_as_told() {
        for (rank_count, theta) in
            [(1, 0.99), (1000, 0.99), (100_001, 0.99), (2_000_000, 0.99), (2_000_000, 0.5)]
        {
            let difference = zeta(rank_count, theta) - added_up(rank_count, theta);
            let error = theta / 12.0 * (EXACT_TERM_COUNT as f64).powf(-theta - 1.0);
            // Rounding comes on top: a sum of 2,800 for theta 0.5 has digits down to 5e-13.
            let rounding = rank_count as f64 * 5e-17 * theta.recip();
            assert!(
                difference.abs() < error + rounding,
                "{rank_count} ranks, theta {theta}: off by {difference}"
            );
        }
    }

    #[test]
    fn a_grown_sum_is_the_sum_from_the_start() {
        let grown = grown_zeta(zeta(1000, 0.99), 1000..1_500_000, 0.99);
        assert!((grown - zeta(1_500_000, 0.99)).abs() < 1e-9);
    }

    #[test]
    fn the_sum_over_ycsbs_universe_is_ycsbs_constant() {
        let difference = zeta(10_000_000_000, 0.99) - 26.46902820178302;
        assert!(difference.abs() < 1e-10, "off by {difference}");
    }
}
