//! Which partition, row or number is next.

use super::span::Distribution;
use crate::generator::{Latest, Random, Scrambled, TrueZipfian, Uniform};
use crate::workload::Part;
use crate::workload::acknowledged::Acknowledged;

/// A choice among numbers from 0 on, the same for all threads.
#[derive(Clone, Debug)]
pub(super) enum Spread {
    Uniform(Uniform),
    Scrambled(Scrambled),
    Zipfian(TrueZipfian),
    Normal { mean: f64, deviation: f64, count: u64 },
}

impl Spread {
    /// Below a count, which is above 0; none if this distribution has to remember what it chose before.
    pub(super) fn new(distribution: Distribution, count: u64) -> Option<Spread> {
        Some(match distribution {
            Distribution::Uniform => Spread::Uniform(Uniform::over(0..=count - 1)),
            Distribution::Zipfian => Spread::Scrambled(Scrambled::new(count)),
            Distribution::TrueZipfian(theta) => Spread::Zipfian(TrueZipfian::new(count, theta)),
            Distribution::Normal(part) => {
                Spread::Normal { mean: count as f64 / 2.0, deviation: count as f64 * part, count }
            }
            Distribution::Sequence | Distribution::Latest | Distribution::Next => return None,
        })
    }

    /// The next number.
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Spread::Uniform(uniform) => uniform.draw(random),
            Spread::Scrambled(scrambled) => scrambled.draw(random),
            Spread::Zipfian(zipfian) => zipfian.draw(random),
            // A deviation is at most as large as the range, so more than a third of all draws fall into it.
            Spread::Normal { mean, deviation, count } => loop {
                let drawn = (mean + deviation * normal(random)).floor();
                if drawn >= 0.0 && drawn < *count as f64 {
                    return drawn as u64;
                }
            },
        }
    }
}

/// A number of the standard normal distribution, by Box and Muller.
pub(super) fn normal(random: &mut Random) -> f64 {
    // 1 - fraction is never 0, so its logarithm is finite.
    let radius = (-2.0 * (1.0 - random.fraction()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.fraction()).cos()
}

/// One thread's choice of partitions, or of rows in them.
#[derive(Clone, Debug)]
pub(super) enum Chooser {
    Spread(Spread),
    Sequence { next: u64, step: u64, count: u64 },
    Latest(Latest),
    Next,
}

impl Chooser {
    /// Of one thread, among so many that are there at the beginning.
    pub(super) fn new(distribution: Distribution, count: u64, part: Part) -> Chooser {
        match (Spread::new(distribution, count), distribution) {
            (Some(spread), _) => Chooser::Spread(spread),
            (None, Distribution::Latest) => Chooser::Latest(Latest::new(count - 1)),
            (None, Distribution::Next) => Chooser::Next,
            (None, _) => Chooser::Sequence { next: part.index as u64, step: part.count as u64, count },
        }
    }

    /// The next one. Those that come meanwhile are known to `rows`.
    pub(super) fn next(&mut self, rows: &Acknowledged, random: &mut Random) -> u64 {
        match self {
            Chooser::Spread(spread) => spread.draw(random),
            Chooser::Latest(latest) => latest.draw(rows.count() - 1, random),
            Chooser::Next => rows.begin(),
            Chooser::Sequence { next, step, count } => {
                let chosen = *next % *count;
                *next += *step;
                chosen
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normal_choice_has_its_mean_and_deviation_and_stays_in_the_range() {
        let (mut random, count) = (Random::new(1, 0), 1000u64);
        let spread = Spread::new(Distribution::Normal(0.125), count).unwrap();
        let drawn: Vec<f64> = (0..100_000).map(|_| spread.draw(&mut random) as f64 + 0.5).collect();
        assert!(drawn.iter().all(|number| *number < 1000.0));
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!((mean - 500.0).abs() < 2.0, "{mean}");
        assert!((variance.sqrt() - 125.0).abs() < 2.0, "{}", variance.sqrt());
    }

    #[test]
    fn threads_of_a_sequence_take_all_in_turns() {
        let rows = Acknowledged::new(10);
        let mut seen = Vec::new();
        for index in 0..3 {
            let part = Part { index, count: 3, seed: 1 };
            let mut chooser = Chooser::new(Distribution::Sequence, 10, part);
            let mut random = Random::new(1, 0);
            seen.extend((0..10).map(|_| chooser.next(&rows, &mut random)));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..30).map(|index| index / 3).collect::<Vec<u64>>());
    }

    #[test]
    fn new_ones_follow_those_that_are_there_and_the_latest_are_among_them() {
        let (rows, mut random) = (Acknowledged::new(10), Random::new(1, 0));
        let part = Part { index: 0, count: 1, seed: 1 };
        let mut next = Chooser::new(Distribution::Next, 10, part);
        let mut latest = Chooser::new(Distribution::Latest, 10, part);
        assert_eq!(next.next(&rows, &mut random), 10);
        assert!((0..1000).all(|_| latest.next(&rows, &mut random) < 10));
        rows.acknowledge(10);
        assert!((0..1000).any(|_| latest.next(&rows, &mut random) == 10));
    }

    #[test]
    fn all_distributions_repeat_under_a_seed_and_stay_in_the_range() {
        for distribution in [
            Distribution::Uniform,
            Distribution::Zipfian,
            Distribution::TrueZipfian(0.99),
            Distribution::Normal(0.125),
            Distribution::Sequence,
            Distribution::Latest,
        ] {
            let drawn = || {
                let (rows, mut random) = (Acknowledged::new(50), Random::new(7, 0));
                let mut chooser = Chooser::new(distribution, 50, Part { index: 0, count: 1, seed: 7 });
                (0..200).map(|_| chooser.next(&rows, &mut random)).collect::<Vec<u64>>()
            };
            assert_eq!(drawn(), drawn());
            assert!(drawn().iter().all(|number| *number < 50), "{distribution:?}");
        }
    }
}
