//! A run's figures for programs: JSON without histograms, which take a library to read.
//!
//! What stands in it is what the other reports tell, over the kept repetitions, and then each repetition by itself. Of
//! the distribution of times it has percentiles, and how many were over within fixed times, so that a program can hold
//! a run against a deadline.

use std::collections::BTreeMap;

use serde::Serialize;

use super::summary::{Figures, Summary};
use crate::latencies::Latencies;
use crate::results::{Repetition, Results, Second};

/// Percentiles that are told, with their names.
const PERCENTILES: [(&str, f64); 5] =
    [("p50_us", 0.5), ("p90_us", 0.9), ("p95_us", 0.95), ("p99_us", 0.99), ("p99_9_us", 0.999)];
/// Times of which it is told how many operations they were enough for: 1, 2 and 5 of each power of ten, to 100 s.
const WITHIN_US_MIN: u64 = 10;
const WITHIN_US_MAX: u64 = 100_000_000;

#[derive(Serialize)]
struct Digest<'a> {
    workload: &'a str,
    kept_count: usize,
    dropped_count: usize,
    all: Group<'a>,
    kinds: Vec<Group<'a>>,
    /// Microseconds for an operation.
    client_cpu_us: Option<f64>,
    server_cpu_us: Option<f64>,
    server_resident_bytes: Option<u64>,
    endless_count: u64,
    asked_again_count: u64,
    errors: &'a BTreeMap<String, u64>,
    wrongs: &'a BTreeMap<String, u64>,
    warnings: &'a [String],
    load: Option<Part<'a>>,
    repetitions: Vec<Part<'a>>,
}

/// Of one kind of operation, or of all.
#[derive(Serialize)]
struct Group<'a> {
    kind: &'a str,
    /// Each second.
    rate: f64,
    /// Of a 95% interval, either side.
    rate_margin: Option<f64>,
    count: u64,
    error_count: u64,
    wrong_count: u64,
    response: Times,
    service: Times,
}

/// A repetition, or the load before all of them.
#[derive(Serialize)]
struct Part<'a> {
    is_kept: bool,
    seconds: f64,
    rate: f64,
    count: u64,
    error_count: u64,
    wrong_count: u64,
    endless_count: u64,
    asked_again_count: u64,
    client_cpu_s: f64,
    client_waited_s: f64,
    server_cpu_s: Option<f64>,
    server_resident_bytes: Option<u64>,
    by_second: Vec<Instant>,
    response: Times,
    service: Times,
    errors: &'a BTreeMap<String, u64>,
    wrongs: &'a BTreeMap<String, u64>,
}

/// Operations of all kinds that ended in one second.
#[derive(Serialize)]
struct Instant {
    count: u64,
    error_count: u64,
    p99_us: u64,
    max_us: u64,
}

/// A distribution of times.
#[derive(Serialize)]
struct Times {
    #[serde(flatten)]
    percentiles: BTreeMap<&'static str, u64>,
    max_us: u64,
    mean_us: f64,
    /// How many were over within so many microseconds.
    within_us: BTreeMap<u64, u64>,
}

/// The figures of a run as JSON, with those of the load before it if it is known.
///
/// # Errors
/// None that is known: figures can be written as JSON.
pub fn digest(results: &Results, load: Option<&Repetition>) -> serde_json::Result<String> {
    let summary = Summary::of(results);
    serde_json::to_string_pretty(&Digest {
        workload: &results.manifest.plan.workload,
        kept_count: summary.kept_count,
        dropped_count: summary.dropped_count,
        all: Group::of(&summary.all),
        kinds: summary.kinds.iter().map(Group::of).collect(),
        client_cpu_us: summary.cost.client_cpu_us,
        server_cpu_us: summary.cost.server_cpu_us,
        server_resident_bytes: summary.cost.server_resident_bytes,
        endless_count: summary.endless_count,
        asked_again_count: summary.asked_again_count,
        errors: &summary.errors,
        wrongs: &summary.wrongs,
        warnings: &summary.warnings,
        load: load.map(Part::of),
        repetitions: results.repetitions.iter().map(Part::of).collect(),
    })
}

impl<'a> Group<'a> {
    fn of(figures: &'a Figures) -> Group<'a> {
        Group {
            kind: &figures.kind,
            rate: figures.rate.mean,
            rate_margin: figures.rate.margin,
            count: figures.count,
            error_count: figures.error_count,
            wrong_count: figures.wrong_count,
            response: Times::of(&figures.response.latencies),
            service: Times::of(&figures.service.latencies),
        }
    }
}

impl<'a> Part<'a> {
    fn of(repetition: &'a Repetition) -> Part<'a> {
        let total = repetition.total();
        Part {
            is_kept: repetition.is_kept,
            seconds: repetition.seconds,
            rate: repetition.rate(),
            count: total.response.count(),
            error_count: total.error_count,
            wrong_count: total.wrong_count,
            endless_count: repetition.endless_count,
            asked_again_count: repetition.asked_again_count,
            client_cpu_s: repetition.client_cpu_s,
            client_waited_s: repetition.client_waited_s,
            server_cpu_s: repetition.server_cpu_s,
            server_resident_bytes: repetition.server_resident_bytes,
            by_second: by_second(repetition),
            response: Times::of(&total.response),
            service: Times::of(&total.service),
            errors: &repetition.errors,
            wrongs: &repetition.wrongs,
        }
    }
}

fn by_second(repetition: &Repetition) -> Vec<Instant> {
    let mut all: Vec<Second> = Vec::new();
    for kind in &repetition.kinds {
        all.resize_with(all.len().max(kind.by_second.len()), Second::default);
        all.iter_mut().zip(&kind.by_second).for_each(|(all, second)| all.add(second));
    }
    let instant = |second: Second| Instant {
        count: second.response.count(),
        error_count: second.error_count,
        p99_us: second.response.quantile_us(0.99),
        max_us: second.response.max_us(),
    };
    all.into_iter().map(instant).collect()
}

impl Times {
    fn of(latencies: &Latencies) -> Times {
        let percentiles = PERCENTILES.map(|(name, quantile)| (name, latencies.quantile_us(quantile)));
        Times {
            percentiles: BTreeMap::from(percentiles),
            max_us: latencies.max_us(),
            mean_us: latencies.mean_us(),
            within_us: within_us(latencies),
        }
    }
}

fn within_us(latencies: &Latencies) -> BTreeMap<u64, u64> {
    let decades = std::iter::successors(Some(WITHIN_US_MIN), |us| Some(us * 10));
    let bounds = decades.flat_map(|us| [us, 2 * us, 5 * us]).take_while(|us| *us <= WITHIN_US_MAX);
    let (mut steps, mut count) = (latencies.steps().peekable(), 0);
    bounds
        .map(|bound_us| {
            while let Some((_, more)) = steps.next_if(|(us, _)| *us <= bound_us) {
                count += more;
            }
            (bound_us, count)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::example::{empty, example, flat};

    fn read(results: &Results, load: Option<&Repetition>) -> Value {
        serde_json::from_str(&digest(results, load).unwrap()).unwrap()
    }

    #[test]
    fn figures_are_those_of_the_summary_and_repetitions_stand_by_themselves() {
        let digest = read(&example(), None);
        let summary = Summary::of(&example());
        assert_eq!(digest["kept_count"], 3);
        assert_eq!(digest["repetitions"].as_array().unwrap().len(), 4);
        assert_eq!(digest["all"]["rate"], summary.all.rate.mean);
        assert_eq!(digest["kinds"][0]["kind"], "read");
        assert_eq!(digest["all"]["response"]["p99_us"], summary.all.response.p99().all_us);
        assert_eq!(digest["asked_again_count"], 1234);
        assert_eq!(digest["repetitions"][2]["asked_again_count"], 1234);
        assert_eq!(digest["load"], Value::Null);
        let counts = digest["repetitions"][1]["by_second"].as_array().unwrap().iter();
        let sum: u64 = counts.filter_map(|second| second["count"].as_u64()).sum();
        assert_eq!(digest["repetitions"][1]["count"], sum);
    }

    #[test]
    fn it_is_told_how_many_were_over_within_a_time() {
        let results = flat(&[(100, 100), (300, 900)]);
        let digest = read(&results, results.repetitions.first());
        let of = |times: &Value, us: u64| times["within_us"][us.to_string()].as_u64();
        let response = &digest["all"]["response"];
        assert_eq!(
            [50, 100, 500, 1000, 100_000_000].map(|us| of(response, us)),
            [0, 100, 100, 400, 400].map(Some)
        );
        assert_eq!(of(&digest["load"]["response"], 1000), Some(100));
        assert_eq!(read(&empty(), None)["all"]["count"], 0);
    }
}
