//! The highest rate under which latencies stay below a limit.
//!
//! A closed loop finds a rate that is surely too high, since it is all that the server does with many operations
//! waiting. Between that and nothing, trials in an open loop halve what is unknown, until it is a twentieth. What is
//! found is where the trials ended: to be sure of it, measure at that rate for longer.

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
/// Operations under way in the closed loop, over all connections.
const IN_FLIGHT: usize = 256;

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
/// As [`run`].
pub fn closed_loop_rate(
    plan: &Plan,
    in_flight: usize,
    preparation: &Preparation,
    watch: &mut Watch<'_>,
) -> Result<f64, LabError> {
    let trial = Plan { pace: Pace::Closed { in_flight }, ..trial_of(plan) };
    Ok(measured(&trial, preparation, watch)?.rate())
}

/// Searches for the highest rate within the limit. The rows must be there.
///
/// # Errors
/// As [`run`], and if no rate at all is within the limit.
pub fn find_max(
    plan: &Plan,
    limit: Limit,
    watch: &mut Watch<'_>,
    tell: &mut dyn FnMut(&Trial),
) -> Result<f64, LabError> {
    let mut too_high = closed_loop_rate(plan, IN_FLIGHT, &Preparation::default(), watch)?;
    let (mut found, lowest) = (0.0, too_high * PRECISION);
    while too_high - found > too_high * PRECISION && !watch.is_stopped() {
        let rate = ((found + too_high) / 2.0).round();
        let trial = try_rate(plan, rate, limit, watch)?;
        tell(&trial);
        if trial.is_good {
            found = rate
        } else {
            too_high = rate
        }
        if too_high < lowest {
            break;
        }
    }
    if found == 0.0 {
        let (percent, limit) = (limit.quantile * 100.0, limit.response);
        return Err(LabError::Plan(format!(
            "at no rate are {percent}% of the operations over within {limit:?}"
        )));
    }
    Ok(found)
}

fn try_rate(plan: &Plan, rate: f64, limit: Limit, watch: &mut Watch<'_>) -> Result<Trial, LabError> {
    let trial = Plan { pace: Pace::Open { rate }, ..trial_of(plan) };
    let repetition = measured(&trial, &Preparation::default(), watch)?;
    let total = repetition.total();
    let response = Duration::from_micros(total.response.quantile_us(limit.quantile));
    let done = repetition.rate();
    let is_good = response <= limit.response
        && done >= rate * DONE_PART_MIN
        && total.error_count + total.wrong_count + repetition.endless_count == 0;
    Ok(Trial { rate, done, response, is_good })
}

fn trial_of(plan: &Plan) -> Plan {
    Plan {
        warmup_s: TRIAL_WARMUP_S,
        measured_s: TRIAL_S,
        repetition_count: 1,
        dropped_count: 0,
        ..plan.clone()
    }
}

fn measured(plan: &Plan, preparation: &Preparation, watch: &mut Watch<'_>) -> Result<Repetition, LabError> {
    let results = run(plan, preparation, watch)?;
    results.repetitions.into_iter().next().ok_or_else(|| LabError::Plan("the search was ended".to_owned()))
}
