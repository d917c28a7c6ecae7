//! Results to test reports with.

use std::collections::BTreeMap;

use crate::latencies::Latencies;
use crate::manifest::{Machine, Manifest, Pace, Plan, Target};
use crate::results::{Event, KindResults, Repetition, Results, Second};

/// So many operations of so many microseconds, in one second of each repetition.
pub(super) fn flat(repetitions: &[(u64, u64)]) -> Results {
    let repetition = |(count, us): &(u64, u64)| {
        let mut second = Second::default();
        (0..*count).for_each(|_| record(&mut second, *us, *us));
        let kind = KindResults { kind: "read".to_owned(), by_second: vec![second], done_count: *count };
        Repetition { is_kept: true, seconds: 1.0, kinds: vec![kind], ..Repetition::default() }
    };
    Results {
        manifest: manifest(Pace::Closed { in_flight: 4 }),
        repetitions: repetitions.iter().map(repetition).collect(),
        warnings: Vec::new(),
    }
}

/// A run as one may look: four repetitions of which the first is dropped, two kinds, a node that is killed and comes
/// back, errors, a late second behind the last repetition. Names and events have characters that must be escaped.
pub(super) fn example() -> Results {
    long_example(30)
}

/// The same with so many seconds in each repetition.
pub(super) fn long_example(second_count: usize) -> Results {
    loaded_example(second_count, 2000.0, 1.0)
}

/// The same at a rate, by a server that takes so many times as long.
pub(super) fn loaded_example(second_count: usize, rate: f64, slowness: f64) -> Results {
    let mut chance = Chance(7);
    let load = Load { second_count, rate, slowness };
    let repetitions = (0..4).map(|index| repetition(index, &load, &mut chance)).collect();
    Results {
        manifest: manifest(Pace::Open { rate }),
        repetitions,
        warnings: vec!["In repetition 3, operations failed. One of them: <timeout> & no answer.".to_owned()],
    }
}

/// What an example is of.
struct Load {
    second_count: usize,
    rate: f64,
    slowness: f64,
}

fn repetition(index: usize, load: &Load, chance: &mut Chance) -> Repetition {
    let Load { second_count, rate, slowness } = *load;
    let (kill, back) = (second_count / 3, second_count / 2);
    let failed_count = 2 * (back - kill) as u64;
    let is_faulty = |second: usize| index == 2 && (kill..back).contains(&second);
    let kind = |name: &str, rate: f64, median_us: f64, chance: &mut Chance| {
        let second = |second: usize| {
            let slow = if is_faulty(second) { 6.0 } else { 1.0 + 0.8 / (1 + index + second) as f64 };
            let share = if is_faulty(second) { 0.6 } else { 1.0 };
            let count = (rate * share * (0.97 + 0.06 * chance.part())) as u64;
            let mut all = Second { error_count: if is_faulty(second) { 1 } else { 0 }, ..Second::default() };
            for _ in 0..count {
                let service = median_us * slow * chance.part().powf(-0.35);
                record(&mut all, (service + 40.0 * chance.part().powf(-0.5)) as u64, service as u64);
            }
            all
        };
        let mut by_second: Vec<Second> = (0..second_count).map(second).collect();
        if index == 3 {
            let mut late = Second::default();
            (0..20).for_each(|_| record(&mut late, 1_200_000, 700_000));
            by_second.push(late);
        }
        let in_time = by_second.iter().take(second_count);
        let done_count = in_time.map(|second: &Second| second.response.count()).sum();
        KindResults { kind: name.to_owned(), by_second, done_count }
    };
    let kinds = vec![
        kind("read", rate * 0.95, 240.0 * slowness, chance),
        kind("update", rate * 0.05, 410.0 * slowness, chance),
    ];
    let happened =
        [(kill, "node 2 <killed>"), (kill, "clients see it"), (back, "node 2 & its data are back")];
    let event = |(at, text): (usize, &str)| Event { at_s: at as f64 + 0.4, text: text.to_owned() };
    Repetition {
        is_kept: index > 0,
        seconds: second_count as f64,
        kinds,
        client_cpu_s: 3.1,
        client_waited_s: 0.2,
        server_cpu_s: Some(11.5),
        server_resident_bytes: Some(1_340_000_000),
        audit: None,
        server_disk_bytes: None,
        received_bytes: 0,
        caches: BTreeMap::new(),
        endless_count: 0,
        asked_again_count: if index == 2 { 1234 } else { 0 },
        errors: if index == 2 {
            BTreeMap::from([("<timeout> & no answer".to_owned(), failed_count)])
        } else {
            BTreeMap::new()
        },
        wrongs: BTreeMap::new(),
        events: if index == 2 { happened.map(event).into() } else { Vec::new() },
    }
}

fn record(second: &mut Second, response_us: u64, service_us: u64) {
    second.response.record(response_us);
    second.service.record(service_us);
}

fn manifest(pace: Pace) -> Manifest {
    Manifest {
        version: 1,
        plan: Plan {
            workload: "ycsb-b".to_owned(),
            settings: BTreeMap::from([
                ("distribution".to_owned(), "zipfian".to_owned()),
                ("field_bytes".to_owned(), "100".to_owned()),
            ]),
            nodes: ["127.0.0.1:9042", "127.0.0.2:9042", "127.0.0.3:9042"].map(str::to_owned).into(),
            keyspace: "lab".to_owned(),
            replication: "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}".to_owned(),
            consistency: "QUORUM".to_owned(),
            row_count: 1_000_000,
            pace,
            connection_count: 24,
            thread_count: 2,
            warmup_s: 10.0,
            measured_s: 30.0,
            repetition_count: 4,
            dropped_count: 1,
            seed: 42,
            error_part_max: 0.01,
            disturbances: Vec::new(),
            timeout_s: crate::manifest::DEFAULT_TIMEOUT_S,
            script: None,
        },
        began_at_s: 1_764_378_000,
        lab: "0.1.0".to_owned(),
        machine: Machine {
            processor: "AMD EPYC 9B14".to_owned(),
            core_count: 2,
            memory_bytes: 24 << 30,
            system: "Linux 6.1.0".to_owned(),
        },
        target: Target {
            unreachable: Vec::new(),
            replication: "NetworkTopologyStrategy dc1: 3".to_owned(),
            releases: vec!["5.0.4".to_owned(); 3],
            cluster: "Test <Cluster>".to_owned(),
            facts: BTreeMap::from([("peristyle_version".to_owned(), "0.1.0".to_owned())]),
            process_ids: vec![4711, 4712, 4713],
        },
    }
}

/// Numbers that look like chance and are the same each time.
struct Chance(u64);

impl Chance {
    /// Above 0, up to 1.
    fn part(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) + 1) as f64 / (1u64 << 31) as f64
    }
}

/// Of no operation at all.
pub(super) fn empty() -> Results {
    let mut results = flat(&[(0, 0)]);
    results.repetitions[0].seconds = 0.0;
    results.repetitions[0].kinds[0].by_second.clear();
    results
}

#[test]
fn an_example_has_what_reports_must_tell() {
    let results = example();
    assert_eq!(results.kept().count(), 3);
    assert!(results.kept().any(|one| one.total().error_count > 0 && !one.events.is_empty()));
    assert_eq!(Latencies::new(), empty().repetitions[0].total().response);
}
