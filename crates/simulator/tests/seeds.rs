//! A handful of seeds, the first ones twice. `cargo xtask sim` runs more of them, all twice.

use simulator::{Outcome, simulate};

fn run(seed: u64) -> Outcome {
    let outcome = simulate(seed);
    if let Some(violation) = &outcome.violation {
        let events = outcome.events.last(30).join("\n  ");
        panic!("seed {seed} fails (cargo xtask sim --seed {seed}): {violation}\n  {events}");
    }
    outcome
}

#[test]
fn a_node_keeps_what_it_acknowledged_through_power_cuts() {
    (1..19).for_each(|seed| _ = run(seed));
}

/// Seeds that found something: see `docs/internals/simulation.md`.
#[test]
fn what_seeds_found_stays_mended() {
    [59, 1017].into_iter().for_each(|seed| _ = run(seed));
}

#[test]
fn the_same_seed_gives_the_same_events() {
    for seed in (1..5).chain([273]) {
        assert_eq!(run(seed).events, run(seed).events, "seed {seed} (cargo xtask sim --seed {seed})");
    }
}
