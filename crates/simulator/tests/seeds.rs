//! A handful of seeds, each twice. `cargo xtask sim` runs more of them.

use simulator::simulate;

fn check(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let (outcome, again) = (simulate(seed), simulate(seed));
        if let Some(violation) = &outcome.violation {
            let events = outcome.events.last(30).join("\n  ");
            panic!("seed {seed} fails (cargo xtask sim --seed {seed}): {violation}\n  {events}");
        }
        assert_eq!(outcome.events, again.events, "seed {seed} repeats (cargo xtask sim --seed {seed})");
    }
}

#[test]
fn a_node_keeps_what_it_acknowledged_through_power_cuts() {
    check(1..21);
}
