//! A handful of seeds of rings of whole nodes. `cargo xtask sim --only ring` and `--only rivals` run more of them.

use runtime::Plant;
use simulator::{Outcome, Way, Ways, simulate_ring, simulate_rivals};

/// Runs a seed, with a fault or without.
type Simulate = fn(u64, Option<Plant>) -> (Outcome, Ways);

/// The kind of run, as it is asked for.
const RING: (&str, Simulate) = ("ring", simulate_ring);
const RIVALS: (&str, Simulate) = ("rivals", simulate_rivals);

fn run((kind, simulate): (&str, Simulate), seed: u64) -> (Outcome, Ways) {
    let (outcome, ways) = simulate(seed, None);
    if let Some(violation) = &outcome.violation {
        let events = outcome.events.last(30).join("\n  ");
        panic!("seed {seed} fails (cargo xtask sim --only {kind} --seed {seed}): {violation}\n  {events}");
    }
    (outcome, ways)
}

/// Runs seeds; the last one twice, and both times the same must happen. What is never tried is never found wrong.
fn run_all(kind: (&str, Simulate), seeds: std::ops::RangeInclusive<u64>, wanted: &[Way]) {
    let (all, last) = (Ways::default(), *seeds.end());
    let mut events = None;
    for seed in seeds {
        let (outcome, ways) = run(kind, seed);
        all.add_all(&ways);
        events = Some(outcome.events);
    }
    let missing = all.missing(wanted);
    assert!(missing.is_empty(), "never taken: {missing:?}; {all}");
    let again = run(kind, last).0.events;
    assert_eq!(events, Some(again), "seed {last} (cargo xtask sim --only {} --seed {last})", kind.0);
}

#[test]
fn a_ring_keeps_what_it_acknowledged_and_repeats_itself() {
    run_all(RING, 1..=5, &Way::OF_RING);
}

#[test]
fn rivals_are_told_one_order_of_their_changes_and_repeat_themselves() {
    run_all(RIVALS, 1..=5, &Way::OF_RIVALS);
}

/// Faults that the first seeds find; `cargo xtask sim --only ring --plants` tries all that a ring can show.
#[test]
fn planted_faults_are_found() {
    let planted = [
        (RING, Plant::OneIsEnough),
        (RING, Plant::SentCalledRefused),
        (RIVALS, Plant::PromiseForgotten),
        (RIVALS, Plant::RefusedUnproposed),
    ];
    for ((_, simulate), plant) in planted {
        let found = (1..4).find(|seed| simulate(*seed, Some(plant)).0.violation.is_some());
        assert!(found.is_some(), "{plant:?} is not found");
    }
}
