//! A plan carried out: tables, rows, repetitions, and what they found.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use client::ClientError;
use protocol::ErrorKind;

use crate::disturbance::Hand;
use crate::engine::{self, PassEnd, Watch};
use crate::error::LabError;
use crate::manifest::{Manifest, Pace, Plan, VERSION};
use crate::process::machine;
use crate::results::{Repetition, Results};
use crate::target::Session;
use crate::workload::{Workload, workload_of};

/// What is done before a plan is measured.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// The rows are written first.
    pub loads: bool,
    /// Processes of the servers on this machine, whose CPU time and memory are taken.
    pub process_ids: Vec<u32>,
    /// Who does to the servers what the plan says.
    pub hand: Option<Arc<dyn Hand>>,
}

/// Carries out a plan.
///
/// # Errors
/// The plan makes no sense, no node answers, or all connections broke.
pub fn run(plan: &Plan, preparation: &Preparation, watch: &mut Watch<'_>) -> Result<Results, LabError> {
    let mut measurement = Measurement::begin(plan, preparation, watch)?;
    while measurement.goes_on() {
        measurement.repeat(watch)?;
    }
    Ok(measurement.finish())
}

/// What a server says to a plan that it can not do: its tables are made, and its statements prepared.
///
/// # Errors
/// The plan makes no sense, no node answers, or something else than that goes wrong.
pub(crate) fn refusal(plan: &Plan, preparation: &Preparation) -> Result<Option<String>, LabError> {
    let mut workload = workload_of(plan)?;
    match Session::open(plan, &mut *workload, preparation) {
        Ok(_) => Ok(None),
        Err(LabError::Statement { source, .. }) if is_refusal(&source) => Ok(Some(source.to_string())),
        Err(error) => Err(error),
    }
}

/// Does a server say that it does not have what a statement needs? Whatever else fails says nothing of that.
fn is_refusal(error: &ClientError) -> bool {
    let kinds = |kind: &ErrorKind| matches!(kind, ErrorKind::Invalid | ErrorKind::Syntax | ErrorKind::Config);
    error.server().is_some_and(|error| kinds(&error.kind))
}

/// A plan under way, repetition by repetition, so that those of several can take turns.
pub(crate) struct Measurement {
    plan: Plan,
    workload: Box<dyn Workload>,
    session: Session,
    results: Results,
    /// It was stopped, or too much failed.
    is_ended: bool,
}

impl Measurement {
    /// Makes tables and, if it was asked for, rows.
    pub(crate) fn begin(
        plan: &Plan,
        preparation: &Preparation,
        watch: &mut Watch<'_>,
    ) -> Result<Measurement, LabError> {
        let plan = &plan.clone().completed()?;
        check(plan)?;
        let mut workload = workload_of(plan)?;
        let session = Session::open(plan, &mut *workload, preparation)?;
        let manifest = Manifest {
            version: VERSION,
            plan: plan.clone(),
            began_at_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            lab: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine(),
            target: session.describe()?,
        };
        if preparation.loads {
            let load = engine::load(plan, &*workload, &session, watch)?;
            (watch.loaded)(plan, &load);
        }
        if engine::audit(plan, &*workload, &session, watch)? {
            workload.begin_audit();
        }
        let results = Results { manifest, repetitions: Vec::new(), warnings: Vec::new() };
        Ok(Measurement { plan: plan.clone(), workload, session, results, is_ended: false })
    }

    /// Are there repetitions left?
    pub(crate) fn goes_on(&self) -> bool {
        !self.is_ended && self.results.repetitions.len() < self.plan.repetition_count
    }

    /// Measures once. What was measured before is kept, also when all connections break now.
    pub(crate) fn repeat(&mut self, watch: &mut Watch<'_>) -> Result<(), LabError> {
        let (index, count) = (self.results.repetitions.len(), self.plan.repetition_count);
        if watch.is_stopped() {
            self.end(format!("The run was ended after {index} of {count} repetitions."));
            return Ok(());
        }
        let measured = engine::measure(&self.plan, index, &*self.workload, &self.session, watch);
        let (mut repetition, end) = match measured {
            Err(error) if index > 0 => {
                self.end(format!("Repetition {} of {count} failed: {error}.", index + 1));
                return Ok(());
            }
            measured => measured?,
        };
        repetition.is_kept = index >= self.plan.dropped_count;
        self.audit(&mut repetition, watch);
        match end {
            PassEnd::Done => {}
            PassEnd::Cut(reason) => {
                repetition.is_kept &= repetition.seconds >= PART_MIN_S;
                self.end(reason);
            }
            PassEnd::Stopped => {
                // A part is better than nothing, and worse than a whole repetition beside it.
                repetition.is_kept &= self.results.kept().count() == 0 && repetition.seconds >= PART_MIN_S;
                let (number, seconds) = (index + 1, repetition.seconds);
                self.end(format!("The run was ended {seconds:.0} s into repetition {number} of {count}."));
            }
        }
        self.results.repetitions.push(repetition);
        Ok(())
    }

    /// Holds what was counted against what was acknowledged.
    fn audit(&mut self, repetition: &mut Repetition, watch: &mut Watch<'_>) {
        match engine::audit(&self.plan, &*self.workload, &self.session, watch) {
            Ok(false) => {}
            // A pass that was stopped has not read all.
            Ok(true) if watch.is_stopped() => {}
            Ok(true) => repetition.audit = self.workload.audited(),
            // At ALL that is so while a node is away.
            Err(error) => self.results.warnings.push(format!("The counters could not be read: {error}.")),
        }
        if let Some(fault) = repetition.audit.and_then(|audit| audit.fault()) {
            *repetition.wrongs.entry(fault).or_default() += 1;
        }
    }

    fn end(&mut self, warning: String) {
        self.results.warnings.push(warning);
        self.is_ended = true;
    }

    /// What was found, and what makes it doubtful.
    pub(crate) fn finish(mut self) -> Results {
        self.results.warnings.extend(doubts(&self.results));
        self.results
    }
}

/// Longer than anybody waits.
const TIME_MAX_S: f64 = 30.0 * 86_400.0;

/// One that needs no quotes, and stays as it is.
fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().all(is_plain) && name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Can it be carried out?
///
/// # Errors
/// It can not: why.
pub(crate) fn check(plan: &Plan) -> Result<(), LabError> {
    let refuse = |text: &str| Err(LabError::Plan(text.to_owned()));
    let is_paced = match plan.pace {
        Pace::Open { rate } => rate.is_finite() && rate > 0.0,
        Pace::Closed { in_flight } => in_flight > 0,
    };
    match () {
        () if !is_paced => refuse("a load has a rate, or operations in flight"),
        () if plan.connection_count == 0 || plan.thread_count == 0 => {
            refuse("a load has connections and threads")
        }
        () if plan.thread_count > plan.connection_count => refuse("each thread has a connection of its own"),
        () if matches!(plan.pace, Pace::Closed { in_flight } if in_flight < plan.thread_count) => {
            refuse("each thread has an operation under way")
        }
        () if !(plan.measured_s > 0.0 && plan.warmup_s >= 0.0) => refuse("a measurement takes time"),
        () if plan.measured_s > TIME_MAX_S || plan.warmup_s > TIME_MAX_S => {
            refuse("a measurement ends within a month")
        }
        () if !(plan.timeout_s > 0.0 && plan.timeout_s <= TIME_MAX_S) => {
            refuse("an operation has time for an answer")
        }
        () if plan.disturbances.iter().any(|one| !(0.0..=plan.measured_s).contains(&one.at_s)) => {
            refuse("servers are disturbed while they are measured, not later")
        }
        () if !is_plain_name(&plan.keyspace) => {
            refuse("a keyspace has a name of small letters, digits and underscores")
        }
        () if plan.repetition_count <= plan.dropped_count => {
            refuse("of all repetitions some must not be dropped")
        }
        () => Ok(()),
    }
}

/// Less of a repetition says nothing.
const PART_MIN_S: f64 = 1.0;

/// The part of its time that a client may work before it is what is measured.
const BUSY_PART: f64 = 0.9;

/// The part of its time that a client may wait for a core before its latencies are of that.
const WAITING_PART: f64 = 0.1;

/// What makes the figures doubtful: what it is, and behind a colon in which repetitions.
fn doubts(results: &Results) -> Vec<String> {
    let thread_count = results.manifest.plan.thread_count as f64;
    let busy = |one: &Repetition| one.client_cpu_s / (one.seconds * thread_count);
    let waiting = |one: &Repetition| one.client_waited_s / (one.seconds * thread_count);
    let mut doubts: Vec<String> = Vec::new();
    doubts.extend(doubt(
        results,
        "The client was the bottleneck, and needs more threads or machines",
        busy,
        BUSY_PART,
    ));
    doubts.extend(doubt(
        results,
        "The client waited for a core that others had, and latencies are longer by that",
        waiting,
        WAITING_PART,
    ));
    let unreachable = &results.manifest.target.unreachable;
    if !unreachable.is_empty() {
        doubts.push(format!("Nodes took no connection when the run began: {}.", unreachable.join(", ")));
    }
    doubts
}

/// Repetitions in which a part of the time was larger than it may be.
fn doubt(results: &Results, what: &str, part: impl Fn(&Repetition) -> f64, most: f64) -> Option<String> {
    let all = results.repetitions.iter().enumerate().filter(|(_, one)| one.is_kept && part(one) > most);
    let told = |(index, one): (usize, &Repetition)| {
        format!("{:.0}% of the time in repetition {}", part(one) * 100.0, index + 1)
    };
    let told: Vec<String> = all.map(told).collect();
    (!told.is_empty()).then(|| format!("{what}: {}.", told.join(", ")))
}
