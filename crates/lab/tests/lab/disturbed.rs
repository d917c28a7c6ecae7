//! Servers that are harmed while they are measured, and come back.

use std::sync::atomic::AtomicBool;

use lab::{LabError, Pace, Plan, Preparation, Results, Watch};

use crate::measured::{measured, plan};
use crate::stub::{Manners, Stub};

/// Two hundred operations a second for three seconds, with what is done meanwhile.
fn disturbed_plan(stub: &Stub, disturbances: &[&str]) -> Plan {
    let mut plan = plan(stub, "ycsb-u", Pace::Open { rate: 200.0 });
    (plan.measured_s, plan.timeout_s) = (3.0, 0.5);
    plan.disturbances = disturbances.iter().map(|text| text.parse().unwrap()).collect();
    plan
}

fn run(stub: &Stub, plan: &Plan) -> Result<Results, LabError> {
    let stop = AtomicBool::new(false);
    let mut watch = Watch { tell: &mut |_| {}, loaded: &mut |_, _| {}, stop: &stop };
    let hand = Some(stub.fate.clone() as _);
    lab::run(plan, &Preparation { loads: true, hand, ..Preparation::default() }, &mut watch)
}

/// Operations that went well, of all kinds, in a second of the first repetition.
fn good_count(results: &Results, second: usize) -> u64 {
    let kinds = results.repetitions[0].kinds.iter();
    kinds.filter_map(|kind| kind.by_second.get(second)).map(|second| second.response.count()).sum()
}

#[test]
fn connections_come_back_with_the_server() {
    let stub = Stub::start(Manners::default());
    let results = run(&stub, &disturbed_plan(&stub, &["0.5:kill:1", "1.5:start:1"])).unwrap();
    let repetition = &results.repetitions[0];
    let events: Vec<&str> = repetition.events.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(events, ["node 1 killed", "node 1 serves again"]);
    assert!(repetition.errors.keys().any(|text| text.contains("broke")), "{:?}", repetition.errors);
    let waited = repetition.errors.get("no connection was free for 0.5 s").copied().unwrap_or(0);
    assert!(waited > 0, "what was due in the outage has failed: {:?}", repetition.errors);
    assert!(good_count(&results, 2) > 100, "it serves again: {}", good_count(&results, 2));
    let total = repetition.total();
    assert_eq!(total.response.count() + total.error_count + repetition.endless_count, 600);
}

#[test]
fn an_operation_without_an_answer_fails_in_time_and_its_late_answer_is_borne() {
    let stub = Stub::start(Manners::default());
    let results = run(&stub, &disturbed_plan(&stub, &["0.5:pause:1", "1.5:resume:1"])).unwrap();
    let repetition = &results.repetitions[0];
    let late = format!("{} did not answer for 0.5 s", stub.address);
    let late_count = repetition.errors.get(&late).copied().unwrap_or(0);
    assert!((50..=150).contains(&late_count), "{:?}", repetition.errors);
    assert!(repetition.total().response.max_us() >= 400_000, "those of the last half second were answered");
    assert!(good_count(&results, 2) > 100);
    let total = repetition.total();
    assert_eq!(total.response.count() + total.error_count + repetition.endless_count, 600);
}

#[test]
fn what_can_not_be_done_to_a_server_ends_the_run_in_words() {
    let stub = Stub::start(Manners::default());
    let results = run(&stub, &disturbed_plan(&stub, &["0.5:cut:1"])).unwrap();
    assert_eq!(results.warnings, ["cut:1 could not be done: the stub knows no cut:1."]);
    let nobody = measured(&disturbed_plan(&stub, &["0.5:kill:1"])).unwrap_err().to_string();
    assert!(nobody.contains("--start-peer"), "{nobody}");
    let late = run(&stub, &disturbed_plan(&stub, &["4:kill:1"])).unwrap_err().to_string();
    assert!(late.contains("not later"), "{late}");
}

#[test]
fn where_a_node_lacks_replicas_another_one_is_asked_once() {
    let lacking = || Manners { lacks_replicas: true, ..Manners::default() };
    let peer = Stub::start(lacking());
    let stub = Stub::start(Manners { peer: Some(peer.address), ..Manners::default() });
    let results = measured(&plan(&stub, "ycsb-a", Pace::Open { rate: 400.0 })).unwrap();
    let (repetition, total) = (&results.repetitions[0], results.repetitions[0].total());
    assert_eq!((total.response.count(), total.error_count, total.wrong_count), (800, 0, 0));
    // Half of the rows are the peer's.
    assert!((1..800).contains(&repetition.asked_again_count), "{}", repetition.asked_again_count);

    let stub = Stub::start(Manners { peer: Some(peer.address), ..lacking() });
    let stop = AtomicBool::new(false);
    let mut watch = Watch { tell: &mut |_| {}, loaded: &mut |_, _| {}, stop: &stop };
    let plan = plan(&stub, "ycsb-a", Pace::Open { rate: 400.0 });
    let results = lab::run(&plan, &Preparation::default(), &mut watch).unwrap();
    let (repetition, total) = (&results.repetitions[0], results.repetitions[0].total());
    assert_eq!((total.response.count(), total.error_count), (0, 800), "and a second refusal is an error");
    assert_eq!(repetition.asked_again_count, 800);
}

#[test]
fn a_connection_that_was_mended_asks_another_node_too() {
    let peer = Stub::start(Manners::default());
    let lacking = Manners { lacks_replicas: true, peer: Some(peer.address), ..Manners::default() };
    let stub = Stub::start(lacking);
    let mut plan = disturbed_plan(&stub, &["0.5:kill:1", "1:start:1"]);
    // Each thread reaches each node by one connection, which is the one that breaks.
    plan.connection_count = 2;
    let hand = Some(stub.fate.clone() as _);
    let stop = AtomicBool::new(false);
    let mut watch = Watch { tell: &mut |_| {}, loaded: &mut |_, _| {}, stop: &stop };
    let results = lab::run(&plan, &Preparation { hand, ..Preparation::default() }, &mut watch).unwrap();
    let refused =
        results.repetitions[0].errors.keys().filter(|text| text.contains("consistency level")).count();
    assert_eq!(refused, 0, "no refusal is an error, before and after: {:?}", results.repetitions[0].errors);
    assert!(good_count(&results, 2) > 150, "all goes well again");
}
