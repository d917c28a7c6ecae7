//! A handful of seeds of nodes that serve clients, some twice. `cargo xtask sim --only served` runs more of them.

use runtime::Plant;
use simulator::{Outcome, Way, Ways, simulate_served};

fn run(seed: u64) -> (Outcome, Ways) {
    let (outcome, ways) = simulate_served(seed, None);
    if let Some(violation) = &outcome.violation {
        let events = outcome.events.last(30).join("\n  ");
        panic!("seed {seed} fails (cargo xtask sim --only served --seed {seed}): {violation}\n  {events}");
    }
    (outcome, ways)
}

/// What is never tried is never found wrong.
#[test]
fn clients_see_what_they_wrote_whatever_way_it_took() {
    let all = Ways::default();
    (1..13).for_each(|seed| all.add_all(&run(seed).1));
    let missing = all.missing(&Way::OF_SERVED);
    assert!(missing.is_empty(), "never taken: {missing:?}; {all}");
}

#[test]
fn the_same_seed_gives_the_same_events() {
    for seed in 1..4 {
        let [one, other] = [(); 2].map(|()| run(seed).0.events);
        assert_eq!(one, other, "seed {seed} (cargo xtask sim --only served --seed {seed})");
    }
}

/// Faults that a few seeds find; `cargo xtask sim --plants` tries all of them.
#[test]
fn planted_faults_are_found() {
    let plants = [
        Plant::GroupLost,
        Plant::WrongShardVisited,
        Plant::AnswersSwapped,
        Plant::UnloggedWrite,
        Plant::StalePlan,
        Plant::TimeToLiveForgotten,
        Plant::BatchUnrecorded,
    ];
    for plant in plants {
        let found = (1..40).find(|seed| simulate_served(*seed, Some(plant)).0.violation.is_some());
        assert!(found.is_some(), "{plant:?} is not found");
    }
}
