//! The figures of a run over its kept repetitions. Prose and tables of all reports take them from here.

use std::collections::BTreeMap;

use super::cost::Cost;
use super::estimate::Estimate;
use super::words;
use crate::latencies::Latencies;
use crate::manifest::Pace;
use crate::results::{Audit, Repetition, Results, Second};

/// The percentiles that reports tell, with their names.
pub(crate) const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Less than this part of the pace that was asked for is worth a warning.
const PACE_PART_MIN: f64 = 0.99;
/// Tails of repetitions of which one is so many times another are worth one, too.
const SCATTER_MIN: u64 = 5;

/// All that reports tell in figures.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// All kinds of operation together.
    pub(crate) all: Figures,
    /// In the order in which the workload names them.
    pub(crate) kinds: Vec<Figures>,
    /// Repetitions that count, and those that do not.
    pub(crate) kept_count: usize,
    pub(crate) dropped_count: usize,
    pub(crate) cost: Cost,
    /// Operations that were due and had no end.
    pub(crate) endless_count: u64,
    /// Requests of which a second node was asked.
    pub(crate) asked_again_count: u64,
    /// What errors said, and how often.
    pub(crate) errors: BTreeMap<String, u64>,
    /// What was wrong about answers, likewise.
    pub(crate) wrongs: BTreeMap<String, u64>,
    /// What was counted up to the last repetition, where the workload counts.
    pub(crate) audit: Option<Audit>,
    /// What the run warned of, then what the figures themselves give reason to say.
    pub(crate) warnings: Vec<String>,
}

/// Of one kind of operation, or of all.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) kind: String,
    /// Operations that went well within the measurement, each second.
    pub(crate) rate: Estimate,
    /// Operations that went well, those among them that ended behind the measurement.
    pub(crate) count: u64,
    pub(crate) error_count: u64,
    pub(crate) wrong_count: u64,
    pub(crate) response: Quantiles,
    pub(crate) service: Quantiles,
}

/// What one repetition has of a kind, or of all.
struct Share {
    total: Second,
    /// Operations that went well within the measurement, each second.
    rate: f64,
}

/// Latencies of all repetitions added up, in microseconds, and what the repetitions have by themselves.
#[derive(Clone, Debug)]
pub(crate) struct Quantiles {
    /// Of all, for curves.
    pub(crate) latencies: Latencies,
    /// In the order of [`QUANTILES`].
    pub(crate) spreads: [Spread; QUANTILES.len()],
    pub(crate) max: Spread,
}

/// One figure of all repetitions together, with the lowest and the highest that one of them has alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) all_us: u64,
    pub(crate) lowest_us: u64,
    pub(crate) highest_us: u64,
}

impl Summary {
    /// Adds up what was kept.
    pub(crate) fn of(results: &Results) -> Summary {
        let kept: Vec<&Repetition> = results.kept().collect();
        let shares: Vec<Share> = kept.iter().map(|kept| Share::of(kept, |_| true)).collect();
        let counted: Vec<(&Repetition, u64)> =
            kept.iter().copied().zip(shares.iter().map(|share| share.total.response.count())).collect();
        let figures_of = |kind: &String| {
            let shares: Vec<Share> = kept.iter().map(|kept| Share::of(kept, |one| one == kind)).collect();
            Figures::of(kind, &shares)
        };
        let mut summary = Summary {
            all: Figures::of("all", &shares),
            kinds: kind_names(results).iter().map(figures_of).collect(),
            kept_count: kept.len(),
            dropped_count: results.repetitions.len() - kept.len(),
            cost: Cost::of(&counted),
            endless_count: kept.iter().map(|kept| kept.endless_count).sum(),
            asked_again_count: kept.iter().map(|kept| kept.asked_again_count).sum(),
            errors: added(kept.iter().map(|kept| &kept.errors)),
            wrongs: added(kept.iter().map(|kept| &kept.wrongs)),
            audit: kept.iter().rev().find_map(|kept| kept.audit),
            warnings: results.warnings.clone(),
        };
        let (doubt, scatter) = (summary.doubt(&results.manifest.plan.pace), summary.scatter());
        summary.warnings.extend(doubt.into_iter().chain(scatter));
        summary
    }

    /// Rows of a table: each kind, and all together if there are several.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Figures> {
        self.kinds.iter().chain((self.kinds.len() != 1).then_some(&self.all))
    }

    /// Is the tail of all mostly that of one repetition?
    fn scatter(&self) -> Option<String> {
        let Spread { lowest_us, highest_us, .. } = self.all.response.p99();
        (highest_us >= lowest_us.saturating_mul(SCATTER_MIN) && lowest_us > 0).then(|| {
            format!(
                "Repetitions differ much in their tails: 99% of the operations were over within {} in one, and within {} \
                 in another.",
                words::time(lowest_us),
                words::time(highest_us)
            )
        })
    }

    fn doubt(&self, pace: &Pace) -> Option<String> {
        match pace {
            _ if self.kept_count == 0 => Some("No repetition was kept: there are no figures.".to_owned()),
            Pace::Open { rate } if self.all.rate.mean < rate * PACE_PART_MIN => Some(format!(
                "Of the {} operations/s that were due, {} went well in their time: the pace was not kept.",
                words::figure(*rate),
                words::percent(self.all.rate.mean / rate),
            )),
            _ => None,
        }
    }
}

impl Figures {
    fn of(kind: &str, shares: &[Share]) -> Figures {
        let rates: Vec<f64> = shares.iter().map(|share| share.rate).collect();
        let totals = || shares.iter().map(|share| &share.total);
        Figures {
            kind: kind.to_owned(),
            rate: Estimate::of(&rates),
            count: totals().map(|total| total.response.count()).sum(),
            error_count: totals().map(|total| total.error_count).sum(),
            wrong_count: totals().map(|total| total.wrong_count).sum(),
            response: Quantiles::of(totals().map(|total| &total.response)),
            service: Quantiles::of(totals().map(|total| &total.service)),
        }
    }
}

impl Share {
    fn of(repetition: &Repetition, is_wanted: impl Fn(&str) -> bool) -> Share {
        let mut total = Second::default();
        let wanted = || repetition.kinds.iter().filter(|kind| is_wanted(&kind.kind));
        wanted().for_each(|kind| total.add(&kind.total()));
        Share { total, rate: repetition.rate_of(is_wanted) }
    }
}

impl Quantiles {
    fn of<'a>(repetitions: impl Iterator<Item = &'a Latencies> + Clone) -> Quantiles {
        let mut latencies = Latencies::new();
        repetitions.clone().for_each(|one| latencies.add(one));
        let spread = |figure: &dyn Fn(&Latencies) -> u64| {
            let own = || repetitions.clone().filter(|one| one.count() > 0).map(figure);
            Spread {
                all_us: figure(&latencies),
                lowest_us: own().min().unwrap_or(0),
                highest_us: own().max().unwrap_or(0),
            }
        };
        Quantiles {
            spreads: QUANTILES.map(|(_, quantile)| spread(&|one| one.quantile_us(quantile))),
            max: spread(&Latencies::max_us),
            latencies,
        }
    }

    /// The figure with which 99% of the operations were over.
    pub(crate) fn p99(&self) -> Spread {
        self.spreads[2]
    }
}

/// Names of all kinds of operation, each once.
pub(crate) fn kind_names(results: &Results) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for kind in results.repetitions.iter().flat_map(|repetition| &repetition.kinds) {
        if !names.contains(&kind.kind) {
            names.push(kind.kind.clone());
        }
    }
    names
}

fn added<'a>(counts: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (message, count) in counts.flatten() {
        *all.entry(message.clone()).or_default() += count;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::{example, flat};

    #[test]
    fn figures_are_of_what_was_kept() {
        let summary = Summary::of(&example());
        assert_eq!((summary.kept_count, summary.dropped_count), (3, 1));
        let [read, update] = summary.kinds.as_slice() else { panic!("two kinds") };
        assert_eq!((read.kind.as_str(), update.kind.as_str()), ("read", "update"));
        assert_eq!(read.count + update.count, summary.all.count);
        assert!(summary.all.rate.margin.is_some_and(|margin| margin > 0.0));
        let sum = read.rate.mean + update.rate.mean;
        assert!((sum / summary.all.rate.mean - 1.0).abs() < 1e-9);
        let rates: Vec<f64> = example().kept().map(Repetition::rate).collect();
        assert!((Estimate::of(&rates).mean / summary.all.rate.mean - 1.0).abs() < 1e-9);
    }

    #[test]
    fn percentiles_are_of_histograms_added_up() {
        // 100 operations of 100 µs, and 300 of 900 µs: half of all 400 took 900 µs, whatever a mean of medians says.
        let results = flat(&[(100, 100), (300, 900)]);
        let figures = Summary::of(&results).all;
        let median = figures.response.spreads[0];
        assert_eq!(median, Spread { all_us: 900, lowest_us: 100, highest_us: 900 });
        assert_eq!(figures.response.max.lowest_us, 100);
        assert_eq!(figures.rate.mean, 200.0);
        let margin = figures.rate.margin.unwrap();
        assert!((margin - 12.706 * 100.0).abs() < 1e-6, "{margin}");
    }

    #[test]
    fn what_makes_figures_doubtful_is_said() {
        let mut results = flat(&[(100, 100)]);
        assert!(Summary::of(&results).warnings.is_empty());
        results.manifest.plan.pace = Pace::Open { rate: 200.0 };
        results.warnings.push("The client was busy.".to_owned());
        let warnings = Summary::of(&results).warnings;
        assert!(warnings[0].contains("busy") && warnings[1].contains("50.0% went well"), "{warnings:?}");
        results.repetitions.clear();
        assert!(Summary::of(&results).warnings[1].contains("No repetition"));
    }
}
