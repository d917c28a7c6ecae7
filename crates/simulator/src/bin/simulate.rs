//! Runs seeds of the simulation: `simulate [--only KIND] [--seeds N] [--seed S] [--events N]`.
//!
//! There are six kinds of runs: of a node whose coordinator is driven (`coordinator`), of nodes that serve clients
//! over a network (`served`), of nodes that talk to each other (`peers`), of nodes that keep rows together
//! (`replicated`), of nodes that agree on a log (`raft`), and of a ring of nodes that serve clients (`ring`); without
//! `--only` each seed is run of all. Which ways requests took is told at the end.
//! `simulate --plants` plants each fault that there is (`runtime::Plant`) in nodes that serve and tells which seed
//! found it, or that none of `--seeds` did; with `--only ring` those that a ring can show, in its nodes. `--plant NAME`
//! plants one.
//!
//! Every seed runs twice, unless `--once`, and the two runs must agree on every event, and on the ways. The seed is
//! printed first and last; a failed one leaves the line that repeats it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]

use std::process::ExitCode;

use runtime::Plant;
use simulator::{
    Outcome, Way, Ways, simulate, simulate_peers, simulate_raft, simulate_replicated, simulate_ring,
    simulate_served,
};

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
}

impl Kind {
    const ALL: [Kind; 6] =
        [Kind::Coordinator, Kind::Served, Kind::Peers, Kind::Replicated, Kind::Raft, Kind::Ring];

    fn run(self, seed: u64) -> (Outcome, Ways) {
        match self {
            Kind::Coordinator => (simulate(seed), Ways::default()),
            Kind::Served => simulate_served(seed, None),
            Kind::Peers => (simulate_peers(seed), Ways::default()),
            Kind::Replicated => (simulate_replicated(seed), Ways::default()),
            Kind::Raft => (simulate_raft(seed), Ways::default()),
            Kind::Ring => simulate_ring(seed, None),
        }
    }

    /// What ought to come about in many seeds.
    fn ways(self) -> &'static [Way] {
        match self {
            Kind::Served => &Way::OF_SERVED,
            Kind::Ring => &Way::OF_RING,
            Kind::Coordinator | Kind::Peers | Kind::Replicated | Kind::Raft => &[],
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
        }
    }
}

fn options() -> Result<Options, String> {
    let kinds = Kind::ALL.to_vec();
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
            options.kinds.retain(|kind| kind.name() == value);
            continue;
        }
        if word == "--plant" {
            options.plants.extend(Plant::ALL.iter().filter(|plant| format!("{plant:?}") == value));
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
                "{error}\nusage: simulate [--only coordinator|served|peers|replicated|raft|ring] [--seeds N] [--from S] [--seed S] [--events N] [--once]"
            );
            return ExitCode::from(2);
        }
    };
    if options.plants_all || !options.plants.is_empty() {
        return plants(&options);
    }
    let (mut passed, mut failed) = (0, 0);
    let kinds: Vec<(Kind, Ways)> = options.kinds.iter().map(|kind| (*kind, Ways::default())).collect();
    for seed in options.first..options.first.saturating_add(options.count) {
        for (kind, ways) in &kinds {
            if both(*kind, seed, &options, ways) {
                passed += 1;
            } else {
                failed += 1;
                println!("to repeat: cargo xtask sim --only {} --seed {seed}", kind.name());
            }
        }
    }
    for (kind, ways) in kinds.iter().filter(|(kind, _)| !kind.ways().is_empty()) {
        println!("ways that requests took, {}:\n{ways}", kind.name());
        let missing = ways.missing(kind.ways());
        if !missing.is_empty() {
            println!("never taken: {missing:?}");
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plants each fault, and looks for a seed that finds it.
fn plants(options: &Options) -> ExitCode {
    // What a node says of a broken promise is what is looked for.
    std::panic::set_hook(Box::new(|_| {}));
    let (mut found_count, mut missed_count) = (0, 0);
    let in_ring = options.kinds == [Kind::Ring];
    let all = || match in_ring {
        true => Plant::OF_RING.to_vec(),
        false => Plant::ALL.iter().copied().filter(|plant| plant.is_of_lone_node()).collect(),
    };
    for plant in if options.plants_all { all() } else { options.plants.clone() } {
        let seeds = options.first..options.first.saturating_add(options.count);
        let run = if in_ring { simulate_ring } else { simulate_served };
        let finds = |seed: &u64| Some((*seed, run(*seed, Some(plant)).0.violation?));
        match seeds.into_iter().find_map(|seed| finds(&seed)) {
            Some((seed, violation)) => {
                found_count += 1;
                let words: String = violation.what.chars().take(160).collect();
                println!("{plant:?}: found by seed {seed}: {words}");
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

/// Runs a seed twice. Did all go well?
fn both(kind: Kind, seed: u64, options: &Options, ways: &Ways) -> bool {
    println!("seed {seed}, {}", kind.name());
    let (outcome, taken) = kind.run(seed);
    let (again, taken_again) = match options.once {
        true => (outcome.clone(), taken.clone()),
        false => kind.run(seed),
    };
    let is_well = report(&outcome, &again, options.event_count);
    ways.add_all(&taken);
    if is_well && taken != taken_again {
        println!("seed {seed} does not repeat: its requests took\n{taken}and then\n{taken_again}");
        return false;
    }
    println!("seed {seed}: {} events, digest {:016x}", outcome.events.count(), outcome.events.digest());
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
