//! The highest rate under which latencies stay below a limit.
//!
//! It begins at a rate that a closed loop has reached, and doubles it while that is borne. Then trials in an open loop
//! halve what is unknown, until it is a twentieth. What is found is where the trials ended: to be sure of it, measure
//! at that rate for longer.

use std::time::Duration;

use crate::engine::Watch;
use crate::error::LabError;
use crate::manifest::{Pace, Plan};
use crate::results::Repetition;
use crate::session::{Preparation, run};

/// The part of a rate that is not worth another trial.
const PRECISION: f64 = 0.05;
/// A trial in which less of the rate is done has failed, whatever its latencies are.
const DONE_PART_MIN: f64 = 0.99;
const TRIAL_S: f64 = 5.0;
const TRIAL_WARMUP_S: f64 = 2.0;
/// More trials than it takes to come from any rate to any other.
const TRIAL_COUNT_MAX: u64 = 24;

/// What latencies must stay below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// So large a part of the operations, from 0 to 1 ...
    pub quantile: f64,
    /// ... has a response time of at most this.
    pub response: Duration,
}

/// One rate that was tried.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// What was offered each second.
    pub rate: f64,
    /// What was done of it.
    pub done: f64,
    /// The response time in question.
    pub response: Duration,
    /// Did it stay within the limit?
    pub is_good: bool,
}

/// Measures briefly, in a closed loop of so many operations: how many there are each second.
///
/// # Errors
/// As [`run`], and if no operation went well.
pub fn closed_loop_rate(
    plan: &Plan,
    in_flight: usize,
    preparation: &Preparation,
    watch: &mut Watch<'_>,
) -> Result<f64, LabError> {
    let trial = Plan { pace: Pace::Closed { in_flight }, ..trial_of(plan, 0) };
    Ok(measured(&trial, preparation, watch)?.rate())
}

/// Searches for the highest rate within the limit, from one that a closed loop has reached. The rows must be there.
///
/// # Errors
/// As [`run`], and if no rate at all is within the limit.
pub fn find_max(
    plan: &Plan,
    reached: f64,
    limit: Limit,
    watch: &mut Watch<'_>,
    tell: &mut dyn FnMut(&Trial),
) -> Result<f64, LabError> {
    let (mut found, mut too_high) = (0.0, f64::INFINITY);
    for number in 1..=TRIAL_COUNT_MAX {
        let rate = match () {
            () if too_high.is_finite() => (found + too_high) / 2.0,
            () if found > 0.0 => found * 2.0,
            () => reached,
        };
        let trial = try_rate(plan, number, rate, limit, watch)?;
        tell(&trial);
        if trial.is_good {
            found = rate
        } else {
            too_high = rate
        }
        let is_found = too_high.is_finite() && too_high - found <= too_high * PRECISION;
        if watch.is_stopped() || is_found {
            break;
        }
    }
    if found == 0.0 {
        let (percent, limit) = (limit.quantile * 100.0, limit.response);
        let reason =
            format!("at no rate that was tried are {percent}% of the operations over within {limit:?}");
        return Err(LabError::Ended { reason });
    }
    Ok(found)
}

fn try_rate(
    plan: &Plan,
    number: u64,
    rate: f64,
    limit: Limit,
    watch: &mut Watch<'_>,
) -> Result<Trial, LabError> {
    let trial = Plan { pace: Pace::Open { rate }, ..trial_of(plan, number) };
    let repetition = measured(&trial, &Preparation::default(), watch)?;
    let total = repetition.total();
    let response = Duration::from_micros(total.response.quantile_us(limit.quantile));
    // Of those that were due, whenever they ended: the limit is for their times.
    let done = total.response.count() as f64 / trial.measured_s;
    let is_good = response <= limit.response
        && done >= rate * DONE_PART_MIN
        && total.error_count + total.wrong_count + repetition.endless_count == 0;
    Ok(Trial { rate, done, response, is_good })
}

/// How long a trial takes.
pub(crate) fn trial_seconds(plan: &Plan) -> f64 {
    plan.warmup_s.max(TRIAL_WARMUP_S) + TRIAL_S
}

/// Operations are drawn anew for each trial, so that none finds what the one before has brought into caches.
fn trial_of(plan: &Plan, number: u64) -> Plan {
    Plan {
        warmup_s: plan.warmup_s.max(TRIAL_WARMUP_S),
        measured_s: TRIAL_S,
        repetition_count: 1,
        dropped_count: 0,
        disturbances: Vec::new(),
        seed: plan.seed.wrapping_add((number + 1) << 48),
        ..plan.clone()
    }
}

/// A trial in which something went well.
fn measured(plan: &Plan, preparation: &Preparation, watch: &mut Watch<'_>) -> Result<Repetition, LabError> {
    let results = run(plan, preparation, watch)?;
    let found = results.repetitions.into_iter().next();
    let said =
        found.as_ref().and_then(|found| found.errors.keys().chain(found.wrongs.keys()).next().cloned());
    match found {
        Some(found) if found.total().response.count() > 0 => Ok(found),
        _ => {
            let reasons = results.warnings.into_iter().chain(said);
            let reason = format!("a trial did nothing. {}", reasons.collect::<Vec<_>>().join(" "));
            Err(LabError::Ended { reason })
        }
    }
}
