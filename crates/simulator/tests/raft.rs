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
    let mut lines = Vec::new();
    for seed in 1..6 {
        let (one, other) = (run(seed).events, run(seed).events);
        assert_eq!(one, other, "seed {seed} (cargo xtask sim --only raft --seed {seed})");
        lines.extend_from_slice(one.last(20_000));
    }
    let acknowledged = lines.iter().filter(|line| line.contains(" sent ") && line.contains("Ok(b")).count();
    assert!(acknowledged > 500, "{acknowledged} commands were acknowledged");
    // What the seeds are for has happened in one of them at least.
    for what in
        ["Ok(b", "InDoubt", "NoLeader", "is killed", "lost its power: true", "ends: Err", "has a snapshot"]
    {
        assert!(lines.iter().any(|line| line.contains(what)), "there was no {what}");
    }
    for act in ["AddLearner", "MakeVoter", "Remove", "HandOver"] {
        let is_done = |line: &&String| line.contains(act) && line.ends_with("Some(Ok(()))");
        assert!(lines.iter().any(|line| is_done(&line)), "there was no {act}");
    }
}
