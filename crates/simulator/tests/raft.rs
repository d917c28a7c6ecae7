//! A handful of seeds of nodes that agree. `cargo xtask sim --only raft` runs more of them.

use simulator::{Outcome, simulate_raft};

fn run(seed: u64) -> Outcome {
    let outcome = simulate_raft(seed);
    if let Some(violation) = &outcome.violation {
        let events = outcome.events.last(30).join("\n  ");
        panic!("seed {seed} fails (cargo xtask sim --only raft --seed {seed}): {violation}\n  {events}");
    }
    outcome
}

#[test]
fn nodes_agree_whatever_breaks() {
    for seed in 1..6 {
        let (one, other) = (run(seed).events, run(seed).events);
        assert_eq!(one, other, "seed {seed} (cargo xtask sim --only raft --seed {seed})");
        let saw = |what: &str| one.last(20_000).iter().any(|line| line.contains(what));
        for what in ["Ok(b", "InDoubt", "is killed", "lost its power: true", "cut ", "together after"] {
            assert!(saw(what), "seed {seed}: there was no {what}");
        }
    }
}
