//! `cargo xtask attack`: hostile clients beside a bystander who asks for one row at a time.
//!
//! ```text
//!   attackers ──► many, large, endless, half of it ──►┐
//!                                                     ├──► a node ──► memory ≤ --memory, turns ≤ 20 ms,
//!   bystander ──► one row, and one more, … ──────────►┘                waits, nothing acknowledged lost
//! ```
//!
//! Each scenario runs against a node of its own, for each of the budgets and numbers of shards; with `--ring` against
//! the first node of a ring of three, which have a replica of every row each, and another bystander asks the second
//! node, also when the first one has been ended in the midst of the attack. What can be judged on
//! any machine fails the run: more resident memory than `--memory`, an answer that is wrong, a write that was
//! acknowledged and is gone, a panic, a process that does not end. Waits and turns depend on what else the machine
//! does: they are told beside what is promised, and fail the run only where something is broken.

mod arena;
mod bystander;
mod crowd;
mod grammar;
mod hostile;
mod internode;
mod place;
mod scenarios;

use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::crash::Dice;
use crate::measure::{Ceiling, mebibytes};
use crate::node::binary;
use crate::report::{Failure, Tally, complain};
use arena::{Arena, Effect, Outcome};
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
    arguments.only(&["memory", "shards", "only", "seconds", "minutes", "seed", "short", "ring"])?;
    binary()?;
    let short = arguments.flag("short");
    let listed = |name: &str, usual: &[&str]| match arguments.list(name) {
        given if given.is_empty() => usual.iter().map(|word| (*word).to_owned()).collect(),
        given => given,
    };
    let is_ring = arguments.flag("ring");
    // A node of a ring needs more than 64 MiB.
    let usual: &[&str] = match (short, is_ring) {
        (true, _) => &["128MiB"],
        (false, true) => &["128MiB", "512MiB"],
        (false, false) => &["64MiB", "128MiB", "512MiB"],
    };
    let budgets = listed("memory", usual);
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
                for scenario in SCENARIOS.iter().filter(|scenario| is_ring || !scenario.is_internode) {
                    if arguments.picks("only", scenario.name) {
                        tally += one(scenario, &Setting { memory, shards, is_ring }, time, dice.next());
                    }
                }
            }
        }
        if started.elapsed() >= Duration::from_secs(60 * minutes) {
            return Ok(tally);
        }
    }
}

/// What a scenario is run against.
struct Setting<'a> {
    /// Of each node.
    memory: &'a str,
    shards: &'a str,
    is_ring: bool,
}

/// Runs one scenario.
fn one(scenario: &Scenario, setting: &Setting<'_>, time: Duration, seed: u64) -> Tally {
    let Setting { memory, shards, is_ring } = *setting;
    let place = if is_ring { " each of a ring" } else { "" };
    let name = format!("{} with {memory} on {shards} shards{place}", scenario.name);
    let arena = Arena::start(scenario, memory, shards, is_ring);
    match arena.and_then(|arena| arena.fight(scenario, time, seed)) {
        Ok(outcome) => judge(scenario, &name, setting, &outcome),
        Err(failure) => {
            complain!("{name}: {failure}");
            Tally::FAIL
        }
    }
}

fn judge(scenario: &Scenario, name: &str, setting: &Setting<'_>, outcome: &Outcome) -> Tally {
    let mut tally = judge_node(scenario.name, scenario, name, setting, outcome, &outcome.attacked);
    if let Some(others) = &outcome.others {
        let name = format!("{name}: beside it");
        tally += judge_node("  others", scenario, &name, setting, outcome, others);
    }
    tally += judge_figure(name, "stop", &STOP_SECONDS, outcome.stop_seconds, "s");
    outcome.long_turns.iter().for_each(|line| println!("    {line}"));
    for wrong in &outcome.wrong {
        complain!("{name}: {wrong}");
        tally += Tally::FAIL;
    }
    tally
}

/// What the attack did to a node, and to who asks it.
fn judge_node(
    title: &str,
    scenario: &Scenario,
    name: &str,
    setting: &Setting<'_>,
    outcome: &Outcome,
    effect: &Effect,
) -> Tally {
    let Effect { figures, waits } = effect;
    println!(
        "{title:<11} {:>7} {:>6} {:>9.0} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9} {:>9}",
        setting.memory,
        setting.shards,
        mebibytes(figures.resident_bytes),
        waits.p99_ms,
        waits.worst_ms,
        figures.turn_ms,
        figures.queued_ms,
        waits.count,
        outcome.attack_count,
    );
    let budget = mebibytes(outcome.memory_bytes);
    let wait_p99 = if scenario.is_crowd { &CROWD_WAIT_P99_MS } else { &WAIT_P99_MS };
    let mut tally = Tally::default();
    for (what, ceiling, figure, unit) in [
        ("VmHWM", &Ceiling { most: budget, aim: budget }, mebibytes(figures.resident_bytes), "MiB"),
        ("p99 wait", wait_p99, waits.p99_ms, "ms"),
        ("worst wait", &WAIT_WORST_MS, waits.worst_ms, "ms"),
        ("longest turn", &TURN_MS, figures.turn_ms, "ms"),
    ] {
        tally += judge_figure(name, what, ceiling, figure, unit);
    }
    tally
}

fn judge_figure(name: &str, what: &str, ceiling: &Ceiling, figure: f64, unit: &str) -> Tally {
    let (words, judged) = ceiling.judge(figure, unit);
    let line = format!("{name}: {what} {figure:.1} {unit}: {words}");
    if judged.failed > 0 {
        complain!("{line}");
    } else if figure > ceiling.aim {
        println!("    {line}");
    }
    judged
}
