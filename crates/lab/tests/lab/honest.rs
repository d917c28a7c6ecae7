//! Is the lab honest? Servers whose behaviour is known are measured, and must be found out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab::{Contender, Limit, Pace, Plan, Preparation, Repetition, Results, Second, Trial, Watch};

use crate::measured::{measured, plan};
use crate::stub::{Manners, Stub};

fn total(results: &Results) -> Second {
    results.repetitions[0].total()
}

#[test]
fn a_known_delay_is_told_as_it_is() {
    let stub = Stub::start(Manners { delay: Duration::from_millis(20), ..Manners::default() });
    let results = measured(&plan(&stub, "ycsb-a", Pace::Open { rate: 20.0 })).unwrap();
    let total = total(&results);
    assert_eq!(total.response.count(), 40, "each that was due within two seconds has an end");
    // Never less than it is; how much more depends on what else this machine does.
    assert!(total.service.quantile_us(0.0) >= 19_900, "{}", total.service.quantile_us(0.0));
    assert!(total.response.quantile_us(0.0) >= total.service.quantile_us(0.0));
}

#[test]
fn a_stall_is_charged_for_all_that_was_due_in_it() {
    let stall = Some((Duration::from_millis(800), Duration::from_secs(1)));
    let stub = Stub::start(Manners { stall, ..Manners::default() });
    let results = measured(&plan(&stub, "ycsb-u", Pace::Open { rate: 500.0 })).unwrap();
    let total = total(&results);
    assert_eq!(total.response.count(), 1000);
    // 500 operations are due while it stands still, evenly: a quarter of all waits for half a second and more.
    let long_count: u64 =
        total.response.steps().filter(|(us, _)| *us >= 500_000).map(|(_, count)| count).sum();
    assert!(long_count >= 200, "{long_count}");
}

#[test]
fn operations_that_wait_for_a_stream_are_charged_for_that_too() {
    let stub = Stub::start(Manners { delay: Duration::from_millis(100), ..Manners::default() });
    // One connection answers what came in one piece 100 ms later, so its streams are soon taken ...
    let mut plan = plan(&stub, "ycsb-u", Pace::Open { rate: 30_000.0 });
    (plan.connection_count, plan.measured_s) = (1, 1.0);
    let total = total(&measured(&plan).unwrap());
    // ... and the response time, not the service time, tells it.
    let [response, service] = [&total.response, &total.service].map(|times| times.quantile_us(0.99));
    assert!(response > service + 500_000, "{response} {service}");
}

#[test]
fn a_wrong_answer_is_found() {
    let stub = Stub::start(Manners { mixes_every: Some(50), ..Manners::default() });
    let results = measured(&plan(&stub, "ycsb-c", Pace::Closed { in_flight: 4 })).unwrap();
    let (right_count, wrong_count) = (total(&results).response.count(), total(&results).wrong_count);
    let expected = (right_count + wrong_count) / 50;
    assert!(wrong_count > 0 && wrong_count.abs_diff(expected) <= 4, "{wrong_count} of {right_count}");
    let wrong = results.repetitions[0].wrongs.keys().next().unwrap();
    assert!(
        wrong.starts_with("field2 of user") && wrong.ends_with("is not what was written there"),
        "{wrong}"
    );
    assert!(lab::report::text(&results).contains(wrong), "a report tells it");
}

#[test]
fn a_row_that_was_not_asked_for_is_found() {
    let stub = Stub::start(Manners { swaps_every: Some(50), ..Manners::default() });
    let results = measured(&plan(&stub, "ycsb-c", Pace::Closed { in_flight: 4 })).unwrap();
    assert!(total(&results).wrong_count > 0 && !results.is_sound());
    assert!(results.repetitions[0].wrongs.keys().all(|wrong| wrong.ends_with("not asked for")));
}

#[test]
fn a_server_that_dies_fails_what_was_under_way_and_ends_the_run() {
    let stub = Stub::start(Manners { dies_after: Some(Duration::from_millis(1500)), ..Manners::default() });
    let mut plan = plan(&stub, "ycsb-u", Pace::Closed { in_flight: 16 });
    (plan.connection_count, plan.measured_s, plan.repetition_count) = (8, 1.0, 3);
    // The second repetition is cut off; the first one stays.
    let results = measured(&plan).unwrap();
    assert_eq!(results.repetitions.len(), 1);
    assert!(results.warnings.iter().any(|warning| warning.starts_with("Repetition 2 of 3 failed")));
    assert!(!results.is_sound());
    // Nothing is left of a server that is dead when it begins.
    assert!(measured(&plan).is_err());
}

#[test]
fn as_many_are_under_way_as_were_asked_for() {
    let stub = Stub::start(Manners { delay: Duration::from_millis(20), ..Manners::default() });
    let mut plan = plan(&stub, "ycsb-u", Pace::Closed { in_flight: 1 });
    plan.connection_count = 8;
    let rate = measured(&plan).unwrap().repetitions[0].rate();
    assert!(rate > 0.0 && rate <= 50.0, "one after the other, each 20 ms: {rate}");
}

#[test]
fn an_early_end_is_told_and_counts_nothing_that_was_not_due() {
    let stub = Stub::start(Manners::default());
    let mut plan = plan(&stub, "ycsb-u", Pace::Open { rate: 200.0 });
    (plan.measured_s, plan.repetition_count) = (60.0, 2);
    let (stop, mut told_count) = (AtomicBool::new(false), 0);
    let mut tell = |_| {
        told_count += 1;
        stop.store(told_count == 3, Ordering::Relaxed);
    };
    let mut watch = Watch { tell: &mut tell, loaded: &mut |_, _| {}, stop: &stop };
    let preparation = Preparation { loads: true, ..Preparation::default() };
    let results = lab::run(&plan, &preparation, &mut watch).unwrap();
    assert_eq!(results.repetitions.len(), 1);
    assert!(results.repetitions[0].endless_count < 200, "{}", results.repetitions[0].endless_count);
    assert!(
        results.warnings[0].starts_with("The run was ended 3 s into repetition 1"),
        "{:?}",
        results.warnings
    );
    assert!((results.repetitions[0].rate() / 200.0 - 1.0).abs() < 0.2 && !results.is_sound());
}

#[test]
fn repetitions_draw_anew_and_a_run_can_be_repeated() {
    // What is drawn can not be seen, but two rows that are chosen among two hundred are not always the same ones.
    let stub = Stub::start(Manners::default());
    let mut plan = plan(&stub, "ycsb-u", Pace::Open { rate: 20.0 });
    (plan.measured_s, plan.repetition_count) = (0.5, 2);
    measured(&plan).unwrap();
    let first = stub.written();
    measured(&plan).unwrap();
    let again = stub.written();
    assert_eq!(first.len(), 2 * 10);
    assert_eq!(first, again[first.len()..], "the same plan writes the same rows");
    assert_ne!(first[..10], first[10..], "its second repetition others than its first");
}

#[test]
fn the_search_for_a_rate_goes_beyond_what_a_closed_loop_did() {
    let stub = Stub::start(Manners { delay: Duration::from_millis(5), ..Manners::default() });
    let plan = plan(&stub, "ycsb-u", Pace::Open { rate: 1.0 });
    measured(&plan).unwrap();
    let stop = AtomicBool::new(false);
    let mut watch = Watch { tell: &mut |_| {}, loaded: &mut |_, _| {}, stop: &stop };
    let mut rates = Vec::new();
    let limit = Limit { quantile: 0.5, response: Duration::from_secs(1) };
    let mut tell = |trial: &Trial| {
        rates.push(trial.rate);
        stop.store(rates.len() == 2, Ordering::Relaxed);
    };
    let found = lab::find_max(&plan, 40.0, limit, &mut watch, &mut tell);
    assert_eq!((found.unwrap(), rates), (80.0, vec![40.0, 80.0]));
}

#[test]
fn read_modify_writes_are_one_operation_of_two_requests() {
    let stub = Stub::start(Manners { delay: Duration::from_millis(10), ..Manners::default() });
    let mut plan = plan(&stub, "ycsb-f", Pace::Closed { in_flight: 1 });
    plan.connection_count = 1;
    let results = measured(&plan).unwrap();
    let [reads, both] = [0, 1].map(|kind| results.repetitions[0].kinds[kind].total());
    assert!(reads.response.quantile_us(0.0) >= 9_900 && both.response.quantile_us(0.0) >= 19_900);
    assert_eq!(results.repetitions[0].kinds[1].kind, "read-modify-write");
    assert_eq!(reads.wrong_count + both.wrong_count, 0);
}

#[test]
fn a_run_in_which_too_much_fails_ends_early() {
    let stub = Stub::start(Manners::default());
    let mut plan = plan(&stub, "ycsb-u", Pace::Closed { in_flight: 4 });
    let of_failures =
        |results: &Results| results.warnings.iter().filter(|warning| warning.contains("failed")).count();
    assert_eq!(of_failures(&measured(&plan).unwrap()), 0);
    let stub = Stub::start(Manners { refuses_every: Some(300), ..Manners::default() });
    plan.nodes = vec![stub.address.to_string()];
    (plan.measured_s, plan.error_part_max) = (30.0, 0.001);
    let results = measured(&plan).unwrap();
    assert!(results.repetitions[0].seconds < 20.0);
    assert!(results.warnings[0].starts_with("The run was ended early"), "{:?}", results.warnings);
    assert!(results.repetitions[0].errors.contains_key("the stub has enough"));
}

#[test]
fn whoever_watches_can_end_a_run_and_keeps_what_was_measured() {
    let stub = Stub::start(Manners::default());
    let mut plan = plan(&stub, "ycsb-a", Pace::Open { rate: 200.0 });
    plan.measured_s = 60.0;
    let stop = AtomicBool::new(false);
    let mut watch =
        Watch { tell: &mut |_| stop.store(true, Ordering::Relaxed), loaded: &mut |_, _| {}, stop: &stop };
    let preparation = Preparation { loads: false, ..Preparation::default() };
    let results = lab::run(&plan, &preparation, &mut watch).unwrap();
    assert!(results.repetitions[0].seconds < 30.0 && total(&results).response.count() > 0);
}

#[test]
fn two_servers_are_compared_in_turns() {
    let stubs =
        [10, 20].map(|ms| Stub::start(Manners { delay: Duration::from_millis(ms), ..Manners::default() }));
    let contenders: Vec<Contender> = ["quick", "slow"]
        .iter()
        .zip(&stubs)
        .map(|(name, stub)| Contender {
            name: (*name).to_owned(),
            nodes: vec![stub.address.to_string()],
            preparation: Preparation { loads: true, ..Preparation::default() },
        })
        .collect();
    let mut plan = plan(&stubs[0], "ycsb-u", Pace::Open { rate: 50.0 });
    (plan.measured_s, plan.repetition_count) = (1.0, 2);
    let stop = AtomicBool::new(false);
    let mut watch = Watch { tell: &mut |_| {}, loaded: &mut |_, _| {}, stop: &stop };
    let comparison = lab::compare(&plan, &contenders, &mut watch).unwrap();
    let least_us: Vec<u64> = comparison
        .results()
        .map(|(_, results)| {
            assert_eq!(results.repetitions.len(), 2);
            total(results).service.quantile_us(0.0)
        })
        .collect();
    assert!(least_us[0] >= 9_900 && least_us[1] >= 19_900, "{least_us:?}");
    assert_eq!(comparison.results().map(|(name, _)| name).collect::<Vec<_>>(), ["quick", "slow"]);
}

#[test]
fn what_can_not_be_run_is_refused_in_words() {
    let stub = Stub::start(Manners::default());
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan(&stub, "ycsb-a", Pace::Open { rate: 100.0 });
        change(&mut plan);
        measured(&plan).unwrap_err().to_string()
    };
    assert!(refused(&|plan| plan.workload = "ycsb-z".to_owned()).contains("no workload 'ycsb-z'"));
    assert!(refused(&|plan| plan.pace = Pace::Open { rate: 0.0 }).contains("a rate"));
    assert!(refused(&|plan| plan.consistency = "MOST".to_owned()).contains("'MOST'"));
    assert!(refused(&|plan| plan.nodes = vec!["127.0.0.1:1".to_owned()]).contains("127.0.0.1:1"));
    let set = |name: &str, value: &str| {
        refused(&|plan| drop(plan.settings.insert(name.to_owned(), value.to_owned())))
    };
    assert!(set("colour", "red").contains("no setting 'colour'"));
    assert!(set("fields", "many").contains("can not be 'many'"));
    assert!(set("fields", "0").contains("measure nothing"));
}

#[test]
fn a_load_asks_again_for_rows_that_a_server_is_too_busy_for() {
    let load = |stub: &Stub| {
        let (stop, mut found) = (AtomicBool::new(false), None);
        let loaded = &mut |_: &Plan, load: &Repetition| found = Some(load.clone());
        let mut watch = Watch { tell: &mut |_| {}, loaded, stop: &stop };
        let plan = Plan { measured_s: 0.1, ..plan(stub, "ycsb-c", Pace::Closed { in_flight: 1 }) };
        let preparation = Preparation { loads: true, ..Preparation::default() };
        lab::run(&plan, &preparation, &mut watch).map(|_| found.unwrap())
    };
    let stub = Stub::start(Manners { refuses_every: Some(3), ..Manners::default() });
    let load_of_busy = load(&stub).unwrap();
    assert_eq!((load_of_busy.total().response.count(), load_of_busy.total().error_count), (200, 0));
    assert_eq!(load_of_busy.asked_again_count, 99, "every third of 299 requests was refused");
    let stub = Stub::start(Manners { refuses_every: Some(1), ..Manners::default() });
    assert!(load(&stub).unwrap_err().to_string().contains("the stub has enough"), "not for ever");
}
