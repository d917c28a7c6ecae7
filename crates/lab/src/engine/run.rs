//! A run from its first connection to its last answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::link::Link;
use super::pacer::Pacer;
use super::recorder::{Found, Recorder, Window};
use super::shared::Shared;
use super::worker::{Work, Worker};
use crate::error::LabError;
use crate::latencies::Latencies;
use crate::manifest::{Pace, Plan};
use crate::process::Usage;
use crate::results::Repetition;
use crate::target::Session;
use crate::workload::{Operations, Part, Workload};

/// How long late operations are waited for after a measurement.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often whoever watches is told.
const TELL_EVERY: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Streams of each connection in an open loop. More that are due wait at the client.
const STREAM_COUNT_OPEN: i16 = 1024;
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

/// What one pass over the threads brought.
struct Pass {
    found: Found,
    seconds: f64,
    usage: Usage,
    warning: Option<String>,
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
    let plan = Plan {
        pace: Pace::Closed { in_flight: LOAD_IN_FLIGHT },
        warmup_s: 0.0,
        measured_s: f64::from(u32::MAX),
        error_part_max: 0.0,
        ..plan.clone()
    };
    let pass = pass(&plan, workload, session, watch, |part| workload.loader(part))?;
    let repetition = repetition_of(pass, true).0;
    match repetition.errors.iter().next() {
        None => Ok(repetition),
        Some((message, count)) => Err(LabError::Plan(format!("{count} rows can not be loaded: {message}"))),
    }
}

/// Measures once: a warm-up, then the time that counts. A warning says what makes its figures doubtful.
///
/// # Errors
/// No connection, or none is left.
pub(crate) fn measure(
    plan: &Plan,
    workload: &dyn Workload,
    session: &Session,
    is_kept: bool,
    watch: &mut Watch<'_>,
) -> Result<(Repetition, Option<String>), LabError> {
    let pass = pass(plan, workload, session, watch, |part| workload.operations(part))?;
    Ok(repetition_of(pass, is_kept))
}

fn repetition_of(pass: Pass, is_kept: bool) -> (Repetition, Option<String>) {
    let repetition = Repetition {
        is_kept,
        seconds: pass.seconds,
        kinds: pass.found.kinds,
        client_cpu_s: pass.usage.client_cpu_s,
        client_waited_s: pass.usage.client_waited_s,
        server_cpu_s: pass.usage.server_cpu_s,
        server_resident_bytes: pass.usage.server_resident_bytes,
        endless_count: pass.found.endless_count,
        errors: pass.found.errors,
        wrongs: pass.found.wrongs,
        events: Vec::new(),
    };
    (repetition, pass.warning)
}

/// Starts the threads, waits for their end, adds up what they found.
fn pass(
    plan: &Plan,
    workload: &dyn Workload,
    session: &Session,
    watch: &mut Watch<'_>,
    operations: impl Fn(Part) -> Box<dyn Operations>,
) -> Result<Pass, LabError> {
    let mut parts = session.links(plan, stream_count(plan))?;
    let (shared, started) = (Arc::new(Shared::default()), Instant::now());
    let window = window(plan);
    let kinds = workload.kinds();
    let mut workers = Vec::new();
    for (index, links) in parts.drain(..).enumerate() {
        let part = Part { index, count: plan.thread_count, seed: plan.seed };
        let work = Work {
            operations: operations(part),
            nodes: session.nodes().clone(),
            kind_count: kinds.len(),
            pacer: Pacer::new(plan.pace, index, plan.thread_count),
            window,
            patience: PATIENCE,
            started,
            shared: shared.clone(),
        };
        workers.push(spawn(index, links, work)?);
    }
    let watched = watch_workers(plan, session, &workers, &shared, started, watch);
    let seconds = started.elapsed().as_secs_f64() - plan.warmup_s;
    let mut found = Found::default();
    for worker in workers {
        let recorder =
            worker.join().map_err(|_| LabError::Plan("a thread of the client panicked".to_owned()))?;
        recorder?.add_to(&mut found, &kinds);
    }
    Ok(Pass { found, seconds: seconds.clamp(0.0, plan.measured_s), usage: watched.0, warning: watched.1 })
}

fn spawn(
    index: usize,
    links: Vec<Link>,
    work: Work,
) -> Result<JoinHandle<Result<Recorder, LabError>>, LabError> {
    let shared = work.shared.clone();
    let worker = Worker::new(links, work)?;
    let run = move || {
        let outcome = worker.run();
        if outcome.is_err() {
            shared.stop();
        }
        outcome
    };
    Ok(std::thread::Builder::new().name(format!("load-{index}")).spawn(run)?)
}

fn window(plan: &Plan) -> Window {
    let from_us = (plan.warmup_s * 1e6) as u64;
    Window { from_us, until_us: from_us + (plan.measured_s * 1e6) as u64 }
}

/// Streams of each connection.
fn stream_count(plan: &Plan) -> i16 {
    match plan.pace {
        Pace::Open { .. } => STREAM_COUNT_OPEN,
        Pace::Closed { in_flight } => in_flight.div_ceil(plan.connection_count).clamp(1, 1 << 14) as i16,
    }
}

/// Waits for all threads; tells how it goes, takes the CPU time of what is measured, ends a run in which too much
/// fails.
fn watch_workers(
    plan: &Plan,
    session: &Session,
    workers: &[JoinHandle<Result<Recorder, LabError>>],
    shared: &Shared,
    started: Instant,
    watch: &mut Watch<'_>,
) -> (Usage, Option<String>) {
    let (mut told, mut warning) = (started, None);
    let mut before = (plan.warmup_s == 0.0).then(|| session.usage());
    let mut after = None;
    let is_load = plan.measured_s >= f64::from(u32::MAX);
    while workers.iter().any(|worker| !worker.is_finished()) {
        std::thread::sleep(LOOK_EVERY);
        let elapsed = started.elapsed();
        if before.is_none() && elapsed.as_secs_f64() >= plan.warmup_s {
            before = Some(session.usage());
        }
        if after.is_none() && elapsed.as_secs_f64() >= plan.warmup_s + plan.measured_s {
            after = Some(session.usage());
        }
        if watch.is_stopped() {
            shared.stop();
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            warning = warning.or_else(|| too_many_errors(plan, shared));
            (watch.tell)(progress(plan, is_load, shared, elapsed));
        }
    }
    let after = after.unwrap_or_else(|| session.usage());
    (after.since(&before.unwrap_or_else(|| after.clone())), warning)
}

fn progress(plan: &Plan, is_load: bool, shared: &Shared, elapsed: Duration) -> Progress {
    let warmup = Duration::from_secs_f64(plan.warmup_s);
    let (phase, elapsed, length) = match () {
        () if is_load => ("load", elapsed, None),
        () if elapsed < warmup => ("warm-up", elapsed, Some(warmup)),
        () => ("measure", elapsed - warmup, Some(Duration::from_secs_f64(plan.measured_s))),
    };
    Progress { phase, elapsed, length, counts: shared.counts(), recent: shared.take_recent() }
}

/// Ends the run if too much fails, and says so.
fn too_many_errors(plan: &Plan, shared: &Shared) -> Option<String> {
    let (good, bad) = shared.counts();
    let part = bad as f64 / (good + bad).max(1) as f64;
    if good + bad < ENOUGH || part <= plan.error_part_max {
        return None;
    }
    shared.stop();
    let (part, most) = (part * 100.0, plan.error_part_max * 100.0);
    Some(format!(
        "The run was ended early: {part:.1}% of the operations failed, and {most:.1}% were allowed."
    ))
}
