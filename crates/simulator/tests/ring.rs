//! A handful of seeds of rings of whole nodes. `cargo xtask sim --only ring` runs more of them.

use runtime::Plant;
use simulator::{Outcome, Way, Ways, simulate_ring};

fn run(seed: u64) -> (Outcome, Ways) {
    let (outcome, ways) = simulate_ring(seed, None);
    if let Some(violation) = &outcome.violation {
        let events = outcome.events.last(30).join("\n  ");
        panic!("seed {seed} fails (cargo xtask sim --only ring --seed {seed}): {violation}\n  {events}");
    }
    (outcome, ways)
}

/// What is never tried is never found wrong.
#[test]
fn a_ring_keeps_what_it_acknowledged() {
    let all = Ways::default();
    (1..6).for_each(|seed| all.add_all(&run(seed).1));
    let missing = all.missing(&Way::OF_RING);
    assert!(missing.is_empty(), "never taken: {missing:?}; {all}");
}

#[test]
fn the_same_seed_gives_the_same_events() {
    for seed in 6..8 {
        let [one, other] = [(); 2].map(|()| run(seed).0.events);
        assert_eq!(one, other, "seed {seed} (cargo xtask sim --only ring --seed {seed})");
    }
}

/// Faults that the first seeds find; `cargo xtask sim --only ring --plants` tries all that a ring can show.
#[test]
fn planted_faults_are_found() {
    for plant in [Plant::OneIsEnough, Plant::SentCalledRefused] {
        let found = (1..4).find(|seed| simulate_ring(*seed, Some(plant)).0.violation.is_some());
        assert!(found.is_some(), "{plant:?} is not found");
    }
}
