//! A run from its first connection to its last answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::disturber::Disturber;
use super::link::Link;
use super::pacer::Pacer;
use super::recorder::{Found, Recorder, Window};
use super::shared::Shared;
use super::worker::{Work, Worker};
use crate::error::LabError;
use crate::latencies::Latencies;
use crate::manifest::{Pace, Plan};
use crate::process::Usage;
use crate::results::{Event, Repetition};
use crate::target::Session;
use crate::workload::{Operations, Part, Workload};

/// How long late operations are waited for after a measurement.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often whoever watches is told.
const TELL_EVERY: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A run in which nothing is answered for so long is ended.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Under way over all connections while rows are loaded.
const LOAD_IN_FLIGHT: usize = 256;
/// Fewer operations say nothing about how many fail.
const ENOUGH: u64 = 1000;

/// How a run goes, told each second.
#[derive(Debug)]
pub struct Progress {
    /// What is done: `load`, `warm-up`, `measure`.
    pub phase: &'static str,
    /// Since the phase began.
    pub elapsed: Duration,
    /// How long it will take, if that is known.
    pub length: Option<Duration>,
    /// Operations that have ended, and those of them that failed.
    pub counts: (u64, u64),
    /// Response times of the last second.
    pub recent: Latencies,
}

/// Somebody who watches a run, and may end it.
pub struct Watch<'a> {
    /// Is told each second.
    pub tell: &'a mut dyn FnMut(Progress),
    /// Is told once the rows of a plan are written.
    pub loaded: &'a mut dyn FnMut(&Plan, &Repetition),
    /// Ends the run early; what was measured until then is kept.
    pub stop: &'a AtomicBool,
}

impl Watch<'_> {
    /// Was the run ended?
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What is done in a pass over the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Rows are written until all are there.
    Load,
    /// Operations are measured for a time.
    Measure,
}

/// A thread of the client.
type Handle = JoinHandle<Result<Found, LabError>>;

/// What one pass over the threads brought.
struct Pass {
    found: Found,
    seconds: f64,
    usage: Usage,
    events: Vec<Event>,
    end: PassEnd,
}

/// Why a pass ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PassEnd {
    /// All was done.
    Done,
    /// Whoever watches has ended it.
    Stopped,
    /// Something was wrong: what, in a sentence.
    Cut(String),
}

/// Writes the rows that a plan wants to be there.
///
/// # Errors
/// No connection, or rows that are refused.
pub(crate) fn load(
    plan: &Plan,
    workload: &dyn Workload,
    session: &Session,
    watch: &mut Watch<'_>,
) -> Result<Repetition, LabError> {
    all_once(plan, workload, session, watch, &|part| workload.loader(part))
}

/// Reads all that a workload counts, if it counts something. Tells whether it does.
///
/// # Errors
/// No connection, or something that can not be read.
pub(crate) fn audit(
    plan: &Plan,
    workload: &dyn Workload,
    session: &Session,
    watch: &mut Watch<'_>,
) -> Result<bool, LabError> {
    if workload.auditor(Part { index: 0, count: 1, seed: 0 }).is_none() {
        return Ok(false);
    }
    let auditor = |part| workload.auditor(part).expect("a workload that counts does so in each of its parts");
    let plan = Plan { consistency: level_of_audits(&plan.consistency).to_owned(), ..plan.clone() };
    let read = all_once(&plan, workload, session, watch, &auditor)?;
    match read.wrongs.into_iter().next() {
        Some((message, count)) => Err(LabError::Load { count, message }),
        None => Ok(true),
    }
}

/// What was acknowledged at a level is read for certain at this one.
fn level_of_audits(level: &str) -> &str {
    match level {
        "ANY" | "ONE" | "TWO" | "THREE" | "LOCAL_ONE" => "ALL",
        level => level,
    }
}

/// Does all of some operations, each once, many at a time.
fn all_once(
    plan: &Plan,
    workload: &dyn Workload,
    session: &Session,
    watch: &mut Watch<'_>,
    operations: &dyn Fn(Part) -> Box<dyn Operations>,
) -> Result<Repetition, LabError> {
    let plan = Plan {
        pace: Pace::Closed { in_flight: LOAD_IN_FLIGHT.max(plan.thread_count) },
        warmup_s: 0.0,
        error_part_max: 0.0,
        disturbances: Vec::new(),
        ..plan.clone()
    };
    let pass = pass(Phase::Load, &plan, workload, session, watch, operations)?;
    if let Some((message, count)) = pass.found.errors.iter().next() {
        return Err(LabError::Load { count: *count, message: message.clone() });
    }
    match pass.end {
        PassEnd::Cut(reason) => Err(LabError::Ended { reason }),
        PassEnd::Done | PassEnd::Stopped => Ok(repetition_of(pass).0),
    }
}

/// Measures once: a warm-up, then the time that counts. Operations are drawn anew for each number.
///
/// # Errors
/// No connection, or none is left.
pub(crate) fn measure(
    plan: &Plan,
    number: usize,
    workload: &dyn Workload,
    session: &Session,
    watch: &mut Watch<'_>,
) -> Result<(Repetition, PassEnd), LabError> {
    // Far from the seeds that users choose beside each other.
    let seed = plan.seed.wrapping_add((number as u64 + 1) << 32);
    let operations = |part: Part| workload.operations(Part { seed, ..part });
    Ok(repetition_of(pass(Phase::Measure, plan, workload, session, watch, &operations)?))
}

fn repetition_of(pass: Pass) -> (Repetition, PassEnd) {
    let repetition = Repetition {
        is_kept: true,
        seconds: pass.seconds,
        kinds: pass.found.kinds,
        client_cpu_s: pass.usage.client_cpu_s,
        client_waited_s: pass.found.waited_s,
        server_cpu_s: pass.usage.server_cpu_s,
        server_resident_bytes: pass.usage.server_resident_bytes,
        server_disk_bytes: pass.usage.server_disk_bytes,
        received_bytes: pass.found.received_bytes,
        caches: pass.usage.caches,
        endless_count: pass.found.endless_count,
        asked_again_count: pass.found.asked_again_count,
        errors: pass.found.errors,
        wrongs: pass.found.wrongs,
        events: pass.events,
        audit: None,
    };
    (repetition, pass.end)
}

/// Starts the threads, waits for their end, adds up what they found.
fn pass(
    phase: Phase,
    plan: &Plan,
    workload: &dyn Workload,
    session: &Session,
    watch: &mut Watch<'_>,
    operations: &dyn Fn(Part) -> Box<dyn Operations>,
) -> Result<Pass, LabError> {
    let door = session.door(plan)?;
    let parts = session.links(plan, &door)?;
    let (shared, started) = (Arc::new(Shared::default()), Instant::now());
    let window = window(phase, plan);
    let kinds = workload.kinds();
    let disturber = Disturber::new(plan, session.hand(), &shared, started)?;
    let mut workers = Vec::new();
    for (index, links) in parts.into_iter().enumerate() {
        let part = Part { index, count: plan.thread_count, seed: plan.seed };
        let work = Work {
            operations: operations(part),
            nodes: session.nodes().clone(),
            pacer: Pacer::new(plan.pace, index, plan.thread_count),
            in_flight_max: in_flight_max(plan, index),
            window,
            timeout: Duration::from_secs_f64(plan.timeout_s),
            repeats: phase == Phase::Load,
            bears_all_broken: !plan.disturbances.is_empty(),
            door: door.clone(),
            patience: PATIENCE,
            started,
            shared: shared.clone(),
        };
        workers.push(spawn(index, links, work, Recorder::new(&kinds, window))?);
    }
    let (usage, mut end) = watch_workers(phase, plan, session, &workers, &shared, started, watch);
    let seconds = (started.elapsed().as_secs_f64() - plan.warmup_s).max(0.0);
    // Whatever else went wrong, nobody harms servers any more once this has returned.
    let disturbed = disturber.finish()?;
    let mut found = Found::new(&kinds);
    for worker in workers {
        found.add(worker.join().map_err(|_| LabError::Panicked)??);
    }
    if let (PassEnd::Done, Some(failure)) = (&end, disturbed.failure) {
        end = PassEnd::Cut(failure);
    }
    let seconds = if phase == Phase::Load { seconds } else { seconds.min(plan.measured_s) };
    Ok(Pass { found, seconds, usage, events: disturbed.events, end })
}

/// Has all threads stop when one of them ends by an error or a panic.
struct StopAtFailure {
    shared: Arc<Shared>,
    is_well: bool,
}

impl Drop for StopAtFailure {
    fn drop(&mut self) {
        if !self.is_well {
            self.shared.stop();
        }
    }
}

fn spawn(index: usize, links: Vec<Link>, work: Work, recorder: Recorder) -> Result<Handle, LabError> {
    let guard = StopAtFailure { shared: work.shared.clone(), is_well: false };
    let worker = Worker::new(links, work, recorder)?;
    let run = move || {
        let mut guard = guard;
        let outcome = worker.run();
        guard.is_well = outcome.is_ok();
        outcome
    };
    Ok(std::thread::Builder::new().name(format!("load-{index}")).spawn(run)?)
}

/// A thread's share of what is kept under way in a closed loop.
fn in_flight_max(plan: &Plan, index: usize) -> usize {
    match plan.pace {
        Pace::Open { .. } => usize::MAX,
        Pace::Closed { in_flight } => {
            in_flight / plan.thread_count + usize::from(index < in_flight % plan.thread_count)
        }
    }
}

fn window(phase: Phase, plan: &Plan) -> Window {
    let from_us = (plan.warmup_s * 1e6) as u64;
    match phase {
        Phase::Load => Window { from_us, until_us: u64::MAX >> 1 },
        Phase::Measure => Window { from_us, until_us: from_us + (plan.measured_s * 1e6) as u64 },
    }
}

/// Waits for all threads; tells how it goes, takes the CPU time of what is measured, ends a run in which too much fails
/// or nothing is answered.
fn watch_workers(
    phase: Phase,
    plan: &Plan,
    session: &Session,
    workers: &[Handle],
    shared: &Shared,
    started: Instant,
    watch: &mut Watch<'_>,
) -> (Usage, PassEnd) {
    let (mut told, mut end) = (started, PassEnd::Done);
    let (mut answered_count, mut answered) = (0, started);
    let (mut before, mut after) = (None, None);
    while workers.iter().any(|worker| !worker.is_finished()) {
        std::thread::sleep(LOOK_EVERY);
        let elapsed = started.elapsed();
        if before.is_none() && elapsed.as_secs_f64() >= plan.warmup_s {
            before = Some(session.usage());
        }
        let is_measured = elapsed.as_secs_f64() >= plan.warmup_s + plan.measured_s;
        if after.is_none() && phase == Phase::Measure && is_measured {
            after = Some(session.usage());
        }
        if end == PassEnd::Done && watch.is_stopped() {
            end = PassEnd::Stopped;
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            let (good, bad) = shared.counts();
            if good + bad > answered_count {
                (answered_count, answered) = (good + bad, told);
            }
            if end == PassEnd::Done {
                end = cut(plan, good, bad, answered.elapsed());
            }
            (watch.tell)(progress(phase, plan, shared, elapsed));
        }
        if end != PassEnd::Done {
            shared.stop();
        }
    }
    let after = after.unwrap_or_else(|| session.usage());
    (after.since(&before.unwrap_or_else(|| after.clone())), end)
}

fn progress(phase: Phase, plan: &Plan, shared: &Shared, elapsed: Duration) -> Progress {
    let warmup = Duration::from_secs_f64(plan.warmup_s);
    let (phase, elapsed, length) = match () {
        () if phase == Phase::Load => ("load", elapsed, None),
        () if elapsed < warmup => ("warm-up", elapsed, Some(warmup)),
        () => ("measure", elapsed - warmup, Some(Duration::from_secs_f64(plan.measured_s))),
    };
    Progress { phase, elapsed, length, counts: shared.counts(), recent: shared.take_recent() }
}

/// Must the run be ended?
fn cut(plan: &Plan, good: u64, bad: u64, silent: Duration) -> PassEnd {
    let part = bad as f64 / (good + bad).max(1) as f64;
    if good + bad >= ENOUGH && part > plan.error_part_max {
        let (part, most) = (part * 100.0, plan.error_part_max * 100.0);
        return PassEnd::Cut(format!(
            "The run was ended early: {part:.1}% of the operations failed, and {most:.1}% were allowed."
        ));
    }
    if silent >= SILENCE_MAX {
        let seconds = SILENCE_MAX.as_secs();
        return PassEnd::Cut(format!("The run was ended early: nothing was answered for {seconds} s."));
    }
    PassEnd::Done
}
