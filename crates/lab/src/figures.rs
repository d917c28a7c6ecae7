//! What two runs are compared by, of all operations of a repetition together.

use crate::report::Estimate;
use crate::results::{Repetition, Results};

/// One figure of a repetition; none if it is not known.
pub(crate) type Figure = fn(&Repetition) -> Option<f64>;

/// What servers do.
pub(crate) const FIGURES: [(&str, Figure); 3] = [
    ("operations/s", |repetition| Some(repetition.rate())),
    ("response time p50, µs", |repetition| Some(repetition.total().response.quantile_us(0.5) as f64)),
    ("response time p99, µs", |repetition| Some(repetition.total().response.quantile_us(0.99) as f64)),
];

/// What it costs them.
pub(crate) const COST: (&str, Figure) = ("server CPU per operation, µs", |repetition| {
    let count = repetition.total().response.count().max(1) as f64;
    repetition.server_cpu_s.map(|cpu_s| cpu_s * 1e6 / count)
});

/// Over the kept repetitions; none if one of these does not know it, or there is none.
pub(crate) fn estimate(results: &Results, figure: Figure) -> Option<Estimate> {
    let samples: Option<Vec<f64>> = results.kept().map(figure).collect();
    samples.filter(|samples| !samples.is_empty()).map(|samples| Estimate::of(&samples))
}
