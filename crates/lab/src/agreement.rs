//! Do two runs of one plan agree?
//!
//! Figures of one run scatter over its repetitions, and so have an interval. Two runs agree in a figure if their
//! intervals meet. One repetition has no interval: then nothing can be said, and that is what is said. Intervals that
//! reach further than half of the mean to each side meet easily: that is said, too.

use std::fmt;

use crate::figures::{FIGURES, estimate};
use crate::report::Estimate;
use crate::results::Results;

/// Two runs, figure by figure.
#[derive(Clone, Debug)]
pub struct Agreement(Vec<Compared>);

/// One figure of both.
#[derive(Clone, Debug)]
struct Compared {
    name: &'static str,
    before: Estimate,
    now: Estimate,
}

/// Compares the kept repetitions of two runs.
pub fn agreement(before: &Results, now: &Results) -> Agreement {
    let nothing = Estimate { mean: 0.0, margin: None };
    let of = |results, figure| estimate(results, figure).unwrap_or_else(|| nothing.clone());
    let compared = |(name, figure)| Compared { name, before: of(before, figure), now: of(now, figure) };
    Agreement(FIGURES.map(compared).to_vec())
}

impl Agreement {
    /// Do all figures agree? Those of which nothing can be said do not.
    pub fn agrees(&self) -> bool {
        self.0.iter().all(|compared| compared.agrees() == Some(true))
    }
}

impl Compared {
    /// Would runs that differ much agree as well?
    fn is_vague(&self) -> bool {
        let is_wide =
            |estimate: &Estimate| estimate.margin.is_some_and(|margin| margin > estimate.mean / 2.0);
        is_wide(&self.before) || is_wide(&self.now)
    }

    /// None if one of both has no interval.
    fn agrees(&self) -> Option<bool> {
        let margin = self.before.margin? + self.now.margin?;
        Some((self.before.mean - self.now.mean).abs() <= margin)
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for compared in &self.0 {
            let verdict = match compared.agrees() {
                Some(true) if compared.is_vague() => "agree, in intervals that are too wide to tell much",
                Some(true) => "agree",
                Some(false) => "do NOT agree",
                None => "can not be compared: one repetition has no interval",
            };
            let (before, now) = (Shown(&compared.before), Shown(&compared.now));
            writeln!(out, "{:<30} then {before}, now {now}: {verdict}", compared.name)?;
        }
        Ok(())
    }
}

/// A mean with its margin.
struct Shown<'a>(&'a Estimate);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.0}", self.0.mean)?;
        self.0.margin.map_or(Ok(()), |margin| write!(out, " ± {margin:.0}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(before: &[f64], now: &[f64]) -> Option<bool> {
        Compared { name: "operations/s", before: Estimate::of(before), now: Estimate::of(now) }.agrees()
    }

    #[test]
    fn runs_agree_whose_intervals_meet() {
        assert_eq!(compared(&[100.0, 102.0, 104.0], &[106.0, 107.0, 105.0]), Some(true));
        assert_eq!(compared(&[100.0, 102.0, 104.0], &[120.0, 121.0, 122.0]), Some(false));
        assert_eq!(compared(&[100.0], &[100.0, 101.0]), None);
    }

    #[test]
    fn agreement_of_wide_intervals_is_told_as_what_it_is() {
        let text = |before: &[f64], now: &[f64]| {
            let (before, now) = (Estimate::of(before), Estimate::of(now));
            Agreement(vec![Compared { name: "p99, µs", before, now }]).to_string()
        };
        assert!(text(&[100.0, 300.0, 900.0], &[100.0, 110.0, 120.0]).ends_with("too wide to tell much\n"));
        assert!(text(&[100.0, 102.0, 104.0], &[101.0, 102.0, 103.0]).ends_with(": agree\n"));
    }
}
