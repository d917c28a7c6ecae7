//! Which row is next.

use crate::generator::{Latest, Random, Scrambled, TrueZipfian, Uniform, ZIPFIAN_CONSTANT};

/// How rows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distribution {
    /// YCSB's `zipfian`: milder than it says, see [`Scrambled`].
    Scrambled,
    /// Zipfian with the constant 0.99 over exactly the rows that there are.
    Zipfian,
    /// The newest rows most often.
    Latest,
    /// All alike.
    Uniform,
}

impl Distribution {
    /// By its name in settings.
    pub(super) fn named(name: &str) -> Option<Distribution> {
        Some(match name {
            "zipfian" => Distribution::Scrambled,
            "true-zipfian" => Distribution::Zipfian,
            "latest" => Distribution::Latest,
            "uniform" => Distribution::Uniform,
            _ => return None,
        })
    }

    /// Of so many rows that are there, and others that are to come.
    pub(super) fn chooser(self, row_count: u64, expected_count: u64) -> Chooser {
        match self {
            Distribution::Scrambled => {
                Chooser::Scrambled(Scrambled::of_core_workload(0..row_count, expected_count))
            }
            Distribution::Zipfian => Chooser::Zipfian(TrueZipfian::new(row_count, ZIPFIAN_CONSTANT)),
            Distribution::Latest => Chooser::Latest(Latest::new(row_count - 1)),
            Distribution::Uniform => Chooser::Uniform(Uniform::over(0..=row_count - 1)),
        }
    }
}

/// One thread's choice.
pub(super) enum Chooser {
    Scrambled(Scrambled),
    Zipfian(TrueZipfian),
    Latest(Latest),
    Uniform(Uniform),
}

impl Chooser {
    /// A row of those that are there. As in YCSB, it is drawn again while it is none of them.
    pub(super) fn next(&mut self, there_count: u64, random: &mut Random) -> u64 {
        loop {
            let row = match self {
                Chooser::Scrambled(scrambled) => scrambled.draw(random),
                Chooser::Zipfian(zipfian) => zipfian.draw(random),
                Chooser::Latest(latest) => latest.draw(there_count - 1, random),
                Chooser::Uniform(uniform) => uniform.draw(random),
            };
            if row < there_count {
                return row;
            }
        }
    }
}
