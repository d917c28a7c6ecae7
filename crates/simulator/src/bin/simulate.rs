//! Runs seeds of the simulation: `simulate [--only KIND] [--seeds N] [--seed S] [--events N]`.
//!
//! There are eight kinds of runs: of a node whose coordinator is driven (`coordinator`), of nodes that serve clients
//! over a network (`served`), of nodes that talk to each other (`peers`), of nodes that keep rows together
//! (`replicated`), of nodes that agree on a log (`raft`), of a ring of nodes that serve clients (`ring`), the same of
//! changes with a condition and counters alone (`rivals`), and of one under load of which a node is hit (`failover`),
//! which tells figures; without `--only` each seed is run of all but the last. Which ways requests took is told at the
//! end.
//! `simulate --plants` plants each fault that there is (`runtime::Plant`) in nodes that serve and tells which seed
//! found it, or that none of `--seeds` did; with `--only ring` or `--only rivals` those that such a run can show, in
//! its nodes. `--plant NAME` plants one.
//!
//! `--log FILTER` shows what nodes write to their logs, by the words of `RUST_LOG`.
//!
//! Every seed runs twice, unless `--once`, and the two runs must agree on every event, and on the ways. The seed is
//! printed first and last, then with the hash of its trace, so that the output of two processes can be compared, and
//! with how much it was; a failed one leaves the line that repeats it. How much faster than real time that was is told
//! at the end.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::ExitCode;

use runtime::{Clock, Plant, SystemClock};
use simulator::{
    Outcome, Scale, Way, Ways, simulate, simulate_failover, simulate_peers, simulate_raft,
    simulate_replicated, simulate_ring, simulate_rivals, simulate_served,
};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// What to run.
struct Options {
    first: u64,
    count: u64,
    event_count: usize,
    once: bool,
    kinds: Vec<Kind>,
    /// Faults to plant: these, or all that there are.
    plants: Vec<Plant>,
    plants_all: bool,
}

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Coordinator,
    Served,
    Peers,
    Replicated,
    Raft,
    Ring,
    Rivals,
    Failover,
}

impl Kind {
    const ALL: [Kind; 8] = [
        Kind::Coordinator,
        Kind::Served,
        Kind::Peers,
        Kind::Replicated,
        Kind::Raft,
        Kind::Ring,
        Kind::Rivals,
        Kind::Failover,
    ];

    fn run(self, seed: u64) -> (Outcome, Ways) {
        match self {
            Kind::Coordinator => (simulate(seed), Ways::default()),
            Kind::Served => simulate_served(seed, None),
            Kind::Peers => (simulate_peers(seed), Ways::default()),
            Kind::Replicated => (simulate_replicated(seed), Ways::default()),
            Kind::Raft => (simulate_raft(seed), Ways::default()),
            Kind::Ring => simulate_ring(seed, None),
            Kind::Rivals => simulate_rivals(seed, None),
            Kind::Failover => (simulate_failover(seed, None), Ways::default()),
        }
    }

    /// What ought to come about in many seeds.
    fn ways(self) -> &'static [Way] {
        match self {
            Kind::Served => &Way::OF_SERVED,
            Kind::Ring => &Way::OF_RING,
            Kind::Rivals => &Way::OF_RIVALS,
            Kind::Coordinator | Kind::Peers | Kind::Replicated | Kind::Raft | Kind::Failover => &[],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Coordinator => "coordinator",
            Kind::Served => "served",
            Kind::Peers => "peers",
            Kind::Replicated => "replicated",
            Kind::Raft => "raft",
            Kind::Ring => "ring",
            Kind::Rivals => "rivals",
            Kind::Failover => "failover",
        }
    }
}

fn options() -> Result<Options, String> {
    // Figures are asked for by name.
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Failover).collect();
    let mut options = Options {
        first: 1,
        count: 20,
        event_count: 40,
        once: false,
        kinds,
        plants: Vec::new(),
        plants_all: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--once" {
            options.once = true;
            continue;
        }
        if word == "--plants" {
            options.plants_all = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        if word == "--only" {
            options.kinds = Kind::ALL.into_iter().filter(|kind| kind.name() == value).collect();
            continue;
        }
        if word == "--plant" {
            options.plants.extend(Plant::ALL.iter().filter(|plant| format!("{plant:?}") == value));
            continue;
        }
        if word == "--log" {
            let filter = EnvFilter::try_new(&value).map_err(|error| format!("--log {value}: {error}"))?;
            tracing_subscriber::fmt()
                .with_env_filter(filter)
                .without_time()
                .with_writer(std::io::stderr)
                .init();
            continue;
        }
        let number: u64 = value.parse().map_err(|_| format!("{word} does not take {value}"))?;
        match word.as_str() {
            "--seeds" => options.count = number,
            "--seed" => (options.first, options.count) = (number, 1),
            "--from" => options.first = number,
            "--events" => options.event_count = number as usize,
            _ => return Err(format!("unknown option {word}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!(
                "{error}\nusage: simulate [--only coordinator|served|peers|replicated|raft|ring|rivals|failover] [--seeds N] [--from S] [--seed S] [--events N] [--once] [--log FILTER]"
            );
            return ExitCode::from(2);
        }
    };
    if options.plants_all || !options.plants.is_empty() {
        return plants(&options);
    }
    let (mut passed, mut failed) = (0, 0);
    let kinds: Vec<(Kind, Tally)> = options.kinds.iter().map(|kind| (*kind, Tally::default())).collect();
    for seed in options.first..options.first.saturating_add(options.count) {
        for (kind, tally) in &kinds {
            if both(*kind, seed, &options, tally) {
                passed += 1;
            } else {
                failed += 1;
                println!("to repeat: cargo xtask sim --only {} --seed {seed}", kind.name());
            }
        }
    }
    kinds.iter().for_each(|(kind, tally)| tally.tell(*kind));
    for (kind, Tally { ways, .. }) in kinds.iter().filter(|(kind, _)| !kind.ways().is_empty()) {
        println!("ways that requests took, {}:\n{ways}", kind.name());
        let missing = ways.missing(kind.ways());
        if !missing.is_empty() {
            println!("never taken: {missing:?}");
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a seed, with a fault.
type Run = fn(u64, Option<Plant>) -> (Outcome, Ways);

/// Plants each fault, and looks for a seed that finds it.
fn plants(options: &Options) -> ExitCode {
    // What a node says of a broken promise is what is looked for.
    std::panic::set_hook(Box::new(|_| {}));
    let (mut found_count, mut missed_count) = (0, 0);
    let (all, run): (_, Run) = match options.kinds[..] {
        [Kind::Ring] => (Plant::OF_RING.to_vec(), simulate_ring),
        [Kind::Rivals] => (Plant::OF_RIVALS.to_vec(), simulate_rivals),
        _ => {
            let of_lone_node = Plant::ALL.iter().copied().filter(|plant| plant.is_of_lone_node());
            (of_lone_node.collect(), simulate_served)
        }
    };
    for plant in if options.plants_all { all } else { options.plants.clone() } {
        let seeds = options.first..options.first.saturating_add(options.count);
        let finds = |seed: &u64| {
            let violation = run(*seed, Some(plant)).0.violation?;
            // A seed that fails without the fault has not found it.
            run(*seed, None).0.violation.is_none().then_some((*seed, violation))
        };
        match seeds.into_iter().find_map(|seed| finds(&seed)) {
            Some((seed, violation)) => {
                found_count += 1;
                let words: String = violation.what.chars().take(160).collect();
                let count = seed - options.first + 1;
                println!("{plant:?}: found by seed {seed}, the {count}. of them: {words}");
            }
            None => {
                missed_count += 1;
                println!("{plant:?}: NOT found by {} seeds", options.count);
            }
        }
    }
    println!("{found_count} passed, {missed_count} failed");
    if missed_count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What runs of one kind came to.
#[derive(Default)]
struct Tally {
    ways: Ways,
    /// By how many nodes they had: how many there were, of how many simulated seconds, in how many real ones.
    speeds: RefCell<BTreeMap<usize, (u64, f64, f64)>>,
}

impl Tally {
    fn add(&self, scale: &Scale, real_seconds: f64) {
        let mut speeds = self.speeds.borrow_mut();
        let (count, simulated, real) = speeds.entry(scale.node_count).or_default();
        *count += 1;
        *simulated += scale.simulated.as_secs_f64();
        *real += real_seconds;
    }

    /// How fast they were, where that is counted.
    fn tell(&self, kind: Kind) {
        for (nodes, (count, simulated, real)) in
            self.speeds.borrow().iter().filter(|(_, (_, simulated, _))| *simulated > 0.0)
        {
            let (kind, times) = (kind.name(), simulated / real.max(1e-3));
            println!(
                "{kind}, {nodes} nodes: {count} runs of {simulated:.0} s in {real:.1} s, {times:.0} times as fast"
            );
        }
    }
}

/// Runs a seed twice. Did all go well?
fn both(kind: Kind, seed: u64, options: &Options, tally: &Tally) -> bool {
    println!("seed {seed}, {}", kind.name());
    let clock = SystemClock::new();
    let (outcome, taken) = kind.run(seed);
    tally.add(&outcome.scale, clock.elapsed().as_secs_f64());
    let (again, taken_again) = match options.once {
        true => (outcome.clone(), taken.clone()),
        false => kind.run(seed),
    };
    let is_well = report(&outcome, &again, options.event_count);
    tally.ways.add_all(&taken);
    if is_well && taken != taken_again {
        println!("seed {seed} does not repeat: its requests took\n{taken}and then\n{taken_again}");
        return false;
    }
    if kind == Kind::Failover {
        outcome.events.last(usize::MAX).iter().for_each(|line| println!("  {line}"));
    }
    let scale = &outcome.scale;
    let of = if scale.node_count > 0 { format!(" of {scale}") } else { String::new() };
    println!("seed {seed}: {} events{of}, digest {:016x}", outcome.events.count(), outcome.events.digest());
    is_well
}

/// Did both runs go well and alike? Prints what did not.
fn report(outcome: &Outcome, again: &Outcome, event_count: usize) -> bool {
    if let Some(violation) = &outcome.violation {
        for line in outcome.events.last(event_count) {
            println!("  {line}");
        }
        println!("seed {} fails: {violation}", outcome.seed);
        return false;
    }
    if outcome.events != again.events {
        let pairs = outcome.events.last(usize::MAX).iter().zip(again.events.last(usize::MAX));
        let differing = pairs.enumerate().find(|(_, (first, second))| first != second);
        let index = differing.as_ref().map_or(0, |(index, _)| *index);
        for line in &outcome.events.last(usize::MAX)[index.saturating_sub(event_count)..index] {
            println!("  {line}");
        }
        println!("seed {} does not repeat: {differing:?}", outcome.seed);
        return false;
    }
    true
}
