//! A handful of seeds of nodes that talk to each other. `cargo xtask sim --only peers` runs more of them.

use simulator::{Outcome, simulate_peers};

fn run(seed: u64) -> Outcome {
    let outcome = simulate_peers(seed);
    if let Some(violation) = &outcome.violation {
        let events = outcome.events.last(30).join("\n  ");
        panic!("seed {seed} fails (cargo xtask sim --only peers --seed {seed}): {violation}\n  {events}");
    }
    outcome
}

#[test]
fn who_asks_is_told_what_is_known() {
    for seed in 1..9 {
        let (one, other) = (run(seed).events, run(seed).events);
        assert_eq!(one, other, "seed {seed} (cargo xtask sim --only peers --seed {seed})");
        let told = |what: &str| one.last(20_000).iter().any(|line| line.ends_with(what));
        for what in ["Answered", "NotSent", "Lost", "GivenUp"] {
            assert!(told(what), "seed {seed}: nobody was told {what}");
        }
    }
}
