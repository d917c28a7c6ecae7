//! A handful of seeds of nodes that keep rows together. `cargo xtask sim --only replicated` runs more of them.

use simulator::{Outcome, simulate_replicated};

fn run(seed: u64) -> Outcome {
    let outcome = simulate_replicated(seed);
    if let Some(violation) = &outcome.violation {
        let events = outcome.events.last(30).join("\n  ");
        panic!(
            "seed {seed} fails (cargo xtask sim --only replicated --seed {seed}): {violation}\n  {events}"
        );
    }
    outcome
}

#[test]
fn what_enough_replicas_acknowledged_is_read_from_enough() {
    for seed in 1..13 {
        let (one, other) = (run(seed).events, run(seed).events);
        assert_eq!(one, other, "seed {seed} (cargo xtask sim --only replicated --seed {seed})");
        let is_told = |what: &str| one.last(20_000).iter().any(|line| line.contains(what));
        for what in ["cannot achieve", "timed out", "died", "is killed", "loses power", "at QUORUM", "at ALL"]
        {
            assert!(is_told(what) || seed > 3, "seed {seed}: nobody was told {what}");
        }
    }
}
