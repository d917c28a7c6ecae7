//! `cargo xtask attack`: hostile clients beside a bystander who asks for one row at a time.
//!
//! ```text
//!   attackers ──► many, large, endless, half of it ──►┐
//!                                                     ├──► a node ──► memory ≤ --memory, turns ≤ 20 ms,
//!   bystander ──► one row, and one more, … ──────────►┘                waits, nothing acknowledged lost
//! ```
//!
//! Each scenario runs against a node of its own, for each of the budgets and numbers of shards. What can be judged on
//! any machine fails the run: more resident memory than `--memory`, an answer that is wrong, a write that was
//! acknowledged and is gone, a panic, a process that does not end. Waits and turns depend on what else the machine
//! does: they are told beside what is promised, and fail the run only where something is broken.

mod arena;
mod bystander;
mod crowd;
mod grammar;
mod hostile;
mod scenarios;

use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::crash::Dice;
use crate::measure::{Ceiling, mebibytes};
use crate::node::binary;
use crate::report::{Failure, Tally, complain};
use arena::{Arena, Outcome};
use scenarios::{SCENARIOS, Scenario};

/// What is promised of the bystander's waits, and what fails the run on a machine with other things to do.
const WAIT_P99_MS: Ceiling = Ceiling { most: 2_000.0, aim: 100.0 };
const WAIT_WORST_MS: Ceiling = Ceiling { most: 10_000.0, aim: 500.0 };
/// The same beside a crowd.
const CROWD_WAIT_P99_MS: Ceiling = Ceiling { most: 5_000.0, aim: 1_000.0 };
/// A turn of a shard, without the time that it stood in the kernel's run queue.
const TURN_MS: Ceiling = Ceiling { most: 500.0, aim: 20.0 };
/// A node that is told to stop ends within this, whatever its clients do.
const STOP_SECONDS: Ceiling = Ceiling { most: 30.0, aim: 20.0 };

/// Runs the scenarios.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["memory", "shards", "only", "seconds", "minutes", "seed", "short"])?;
    binary()?;
    let short = arguments.flag("short");
    let listed = |name: &str, usual: &[&str]| match arguments.list(name) {
        given if given.is_empty() => usual.iter().map(|word| (*word).to_owned()).collect(),
        given => given,
    };
    let budgets = listed("memory", if short { &["128MiB"] } else { &["64MiB", "128MiB", "512MiB"] });
    let shard_counts = listed("shards", if short { &["2"] } else { &["1", "2", "4"] });
    let time = Duration::from_secs(arguments.value("seconds", if short { 3 } else { 10 })?);
    let minutes: u64 = arguments.value("minutes", 0)?;
    let mut dice = Dice(arguments.value("seed", 1)?);
    let only = arguments.list("only");
    if let Some(name) = only.iter().find(|name| !SCENARIOS.iter().any(|scenario| scenario.name == **name)) {
        let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        return Err(Failure::new(format!("there is no scenario '{name}': {}", names.join(", "))));
    }
    println!(
        "{:<11} {:>7} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "scenario",
        "memory",
        "shards",
        "VmHWM MiB",
        "p99 ms",
        "worst ms",
        "turn ms",
        "queue ms",
        "asked",
        "attacks"
    );
    let started = Instant::now();
    let mut tally = Tally::default();
    loop {
        for memory in &budgets {
            for shards in &shard_counts {
                for scenario in SCENARIOS {
                    if arguments.picks("only", scenario.name) {
                        tally += one(scenario, memory, shards, time, dice.next());
                    }
                }
            }
        }
        if started.elapsed() >= Duration::from_secs(60 * minutes) {
            return Ok(tally);
        }
    }
}

/// Runs one scenario against one node.
fn one(scenario: &Scenario, memory: &str, shards: &str, time: Duration, seed: u64) -> Tally {
    let outcome = Arena::start(scenario, memory, shards).and_then(|arena| arena.fight(scenario, time, seed));
    match outcome {
        Ok(outcome) => judge(scenario, memory, shards, &outcome),
        Err(failure) => {
            complain!("{} with {memory} on {shards} shards: {failure}", scenario.name);
            Tally::FAIL
        }
    }
}

fn judge(scenario: &Scenario, memory: &str, shards: &str, outcome: &Outcome) -> Tally {
    let waits = &outcome.waits;
    println!(
        "{:<11} {memory:>7} {shards:>6} {:>9.0} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9} {:>9}",
        scenario.name,
        mebibytes(outcome.resident_bytes),
        waits.p99_ms,
        waits.worst_ms,
        outcome.turn_ms,
        outcome.queued_ms,
        waits.count,
        outcome.attack_count,
    );
    let budget = mebibytes(outcome.memory_bytes);
    let wait_p99 = if scenario.is_crowd { &CROWD_WAIT_P99_MS } else { &WAIT_P99_MS };
    let mut tally = Tally::default();
    for (what, ceiling, figure, unit) in [
        ("VmHWM", &Ceiling { most: budget, aim: budget }, mebibytes(outcome.resident_bytes), "MiB"),
        ("p99 wait", wait_p99, waits.p99_ms, "ms"),
        ("worst wait", &WAIT_WORST_MS, waits.worst_ms, "ms"),
        ("longest turn", &TURN_MS, outcome.turn_ms, "ms"),
        ("stop", &STOP_SECONDS, outcome.stop_seconds, "s"),
    ] {
        let (words, judged) = ceiling.judge(figure, unit);
        let line =
            format!("{} with {memory} on {shards} shards: {what} {figure:.1} {unit}: {words}", scenario.name);
        if judged.failed > 0 {
            complain!("{line}");
        } else if figure > ceiling.aim {
            println!("    {line}");
        }
        tally += judged;
    }
    outcome.long_turns.iter().for_each(|line| println!("    {line}"));
    for wrong in &outcome.wrong {
        complain!("{} with {memory} on {shards} shards: {wrong}", scenario.name);
        tally += Tally::FAIL;
    }
    tally
}
