//! Does to the servers what a plan says, at its time, and notes when it was done.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::shared::Shared;
use crate::disturbance::{Act, Disturbance, Hand};
use crate::error::LabError;
use crate::manifest::Plan;
use crate::results::Event;

/// How often it looks whether the run is over.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What takes longer is told when it begins, too.
const LONG: Duration = Duration::from_millis(500);

/// A thread that waits for the next act, and does it; the run goes on meanwhile.
#[derive(Debug)]
pub(super) struct Disturber(Option<JoinHandle<Disturbed>>);

/// What was done, and what could not be.
#[derive(Debug, Default)]
pub(super) struct Disturbed {
    pub(super) events: Vec<Event>,
    /// Why the first of these could not, in a sentence.
    pub(super) failure: Option<String>,
}

impl Disturber {
    /// With nothing to do where the plan has nothing.
    ///
    /// # Errors
    /// There is something to do, and nobody to do it.
    pub(super) fn new(
        plan: &Plan,
        hand: Option<&Arc<dyn Hand>>,
        shared: &Arc<Shared>,
        started: Instant,
    ) -> Result<Disturber, LabError> {
        if plan.disturbances.is_empty() {
            return Ok(Disturber(None));
        }
        let hand = hand.cloned().ok_or_else(|| {
            LabError::Plan(
                "only servers that were started for the run can be disturbed: --start-peer".to_owned(),
            )
        })?;
        let mut acts = plan.disturbances.clone();
        acts.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        let measured_from = started + Duration::from_secs_f64(plan.warmup_s);
        let shared = shared.clone();
        let disturb = move || disturb(&acts, &*hand, &shared, measured_from);
        Ok(Disturber(Some(std::thread::Builder::new().name("disturber".to_owned()).spawn(disturb)?)))
    }

    /// What was done, once all is.
    pub(super) fn finish(self) -> Result<Disturbed, LabError> {
        match self.0 {
            Some(thread) => thread.join().map_err(|_| LabError::Panicked),
            None => Ok(Disturbed::default()),
        }
    }
}

fn disturb(acts: &[Disturbance], hand: &dyn Hand, shared: &Shared, measured_from: Instant) -> Disturbed {
    let (mut disturbed, mut done) = (Disturbed::default(), Vec::new());
    let now_s = || measured_from.elapsed().as_secs_f64();
    for Disturbance { at_s, act } in acts {
        let due = measured_from + Duration::from_secs_f64(*at_s);
        while Instant::now() < due && !shared.is_stopped() {
            std::thread::sleep(LOOK_EVERY.min(due.saturating_duration_since(Instant::now())));
        }
        // What was harmed is put right also when the run ends early, and nothing else is done then.
        if shared.is_stopped() && !puts_right(*act, &done) {
            continue;
        }
        let (began_s, began) = (now_s(), Instant::now());
        if let Err(why) = hand.act(*act) {
            disturbed.failure.get_or_insert_with(|| format!("{act} could not be done: {why}."));
            continue;
        }
        done.push(*act);
        match act {
            Act::Start(node) if began.elapsed() >= LONG => {
                disturbed.events.push(Event { at_s: began_s, text: format!("node {node} started") });
                disturbed.events.push(Event { at_s: now_s(), text: act.past() });
            }
            // While it was being done, operations may have felt it already.
            _ => disturbed.events.push(Event { at_s: began_s, text: act.past() }),
        }
    }
    disturbed
}

/// Does an act take back one that was done?
fn puts_right(act: Act, done: &[Act]) -> bool {
    match act {
        Act::Start(node) => done.contains(&Act::Kill(node)),
        Act::Resume(node) => done.contains(&Act::Pause(node)),
        Act::Heal => done.iter().any(|one| matches!(one, Act::Cut(_))),
        Act::Kill(_) | Act::Pause(_) | Act::Cut(_) => false,
    }
}
