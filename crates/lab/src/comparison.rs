//! Several servers under one plan, in turns: whatever else the machine does falls on all of them.
//!
//! ```text
//!   repetition 1: A B C   repetition 2: C B A   repetition 3: A B C   ...
//! ```
//!
//! Each repetition has the order of the one before reversed, so that none is always behind the same one. Figures are
//! compared with those of the first server, as ratios with an interval of 95%.

use std::fmt;

use crate::engine::Watch;
use crate::error::LabError;
use crate::manifest::Plan;
use crate::report::Estimate;
use crate::results::Results;
use crate::session::{Measurement, Preparation};

/// A server that takes part.
#[derive(Clone, Debug)]
pub struct Contender {
    /// What it is called in the report.
    pub name: String,
    /// Some of its nodes.
    pub nodes: Vec<String>,
    /// What is done first.
    pub preparation: Preparation,
}

/// What all of them did, in the order in which they were named.
#[derive(Clone, Debug)]
pub struct Comparison(Vec<(String, Results)>);

/// Measures all of them under one plan, whose own nodes do not matter.
///
/// # Errors
/// As [`run`](crate::run), of any of them; and if there are none.
pub fn compare(plan: &Plan, contenders: &[Contender], watch: &mut Watch<'_>) -> Result<Comparison, LabError> {
    if contenders.is_empty() {
        return Err(LabError::Plan("nothing is measured without a server".to_owned()));
    }
    let mut runs = Vec::new();
    for contender in contenders {
        let plan = Plan { nodes: contender.nodes.clone(), ..plan.clone() };
        runs.push(Measurement::begin(&plan, &contender.preparation, watch)?);
    }
    let mut is_forward = true;
    while runs.iter().all(Measurement::goes_on) {
        let mut order: Vec<&mut Measurement> = runs.iter_mut().collect();
        if !is_forward {
            order.reverse();
        }
        order.into_iter().try_for_each(|run| run.repeat(watch))?;
        is_forward = !is_forward;
    }
    let names = contenders.iter().map(|contender| contender.name.clone());
    Ok(Comparison(names.zip(runs.into_iter().map(Measurement::finish)).collect()))
}

impl Comparison {
    /// Of servers that were measured each by itself.
    pub fn of(results: Vec<(String, Results)>) -> Comparison {
        Comparison(results)
    }

    /// Each server's results, by its name.
    pub fn results(&self) -> impl Iterator<Item = (&str, &Results)> {
        self.0.iter().map(|(name, results)| (name.as_str(), results))
    }
}

/// One figure over another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) mean: f64,
    margin: Option<f64>,
}

/// The parts by which both may be wrong add up as independent ones do.
pub(crate) fn ratio(own: &Estimate, first: &Estimate) -> Option<Ratio> {
    if own.mean <= 0.0 || first.mean <= 0.0 {
        return None;
    }
    let mean = own.mean / first.mean;
    let margins = own.margin.zip(first.margin);
    let margin = margins
        .map(|(own_margin, first_margin)| mean * (own_margin / own.mean).hypot(first_margin / first.mean));
    Some(Ratio { mean, margin })
}

impl fmt::Display for Ratio {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.2}", self.mean)?;
        self.margin.map_or(Ok(()), |margin| write!(out, " ± {margin:.2}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_ratio_holds_what_both_may_be_wrong_by() {
        let ratio =
            ratio(&Estimate { mean: 30.0, margin: Some(3.0) }, &Estimate { mean: 10.0, margin: Some(0.0) });
        let ratio = ratio.unwrap();
        assert!((ratio.mean - 3.0).abs() < 1e-9 && (ratio.margin.unwrap() - 0.3).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_told_of_a_figure_that_is_nothing() {
        let none = Estimate { mean: 0.0, margin: None };
        assert!(ratio(&none, &Estimate { mean: 10.0, margin: None }).is_none());
    }
}
