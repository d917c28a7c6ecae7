//! Netflix, "Revisiting 1 Million Writes per second" (2014): cassandra-stress on a ring with three replicas.

use super::{Profile, Repeated, Scale, Servers, replicas, sentences, set};
use crate::manifest::Pace;
use crate::study::{Offer, Part, Price, Subject};

pub(super) const PROFILE: Profile = Profile {
    name: "netflix-1m",
    about: "Netflix' million writes: RF 3, writes and 10/90 mixes at ONE and LOCAL_QUORUM, cost per million operations",
    settings: &[],
    make,
};

/// Processors of the article's servers: 285 of i2.xlarge.
const ARTICLE_CORES: f64 = 285.0 * 4.0;
/// Threads of its clients: 60 with 120 of them for writes alone, 300 for the mixes.
const ARTICLE_WRITERS: f64 = 60.0 * 120.0;
const ARTICLE_MIXED: f64 = 60.0 * 300.0;
/// What an hour of an i2.xlarge cost, by processor.
const DOLLARS_PER_CORE_HOUR: f64 = 0.0142 * 60.0 / 4.0;

fn make(scale: &Scale<'_>) -> Repeated {
    let cores = scale.cores() as f64;
    let in_flight = |threads: f64| (threads / ARTICLE_CORES * cores).ceil() as usize;
    let part = |name: &str, about: &str, workload: &str, level: &str, threads: f64, loads: bool| {
        let mut plan = scale.plan(workload);
        plan.row_count = scale.rows(1_000_000);
        plan.replication = replicas(3);
        plan.consistency = level.to_owned();
        plan.pace = Pace::Closed { in_flight: in_flight(threads) };
        if workload == "stress-mixed" {
            set(&mut plan, "reads", 9);
            set(&mut plan, "writes", 1);
        }
        Part::new(name, about, plan, loads, Offer::AsPlanned)
    };
    let dollars = DOLLARS_PER_CORE_HOUR * cores;
    Repeated {
        subject: Subject {
            name: PROFILE.name.to_owned(),
            title: "Netflix: a million writes each second".to_owned(),
            source: "Netflix Technology Blog, Revisiting 1 Million Writes per second, 25 July 2014".to_owned(),
            claims: sentences(&[
                "285 servers of 4 processors did more than 1,000,000 writes/s at ONE, 5 ms on average, 95% within 10 ms: \
                 877 writes/s for each processor.",
                "At LOCAL_QUORUM as many, less than 6 ms on average, 95% within 17 ms.",
                "10% writes and 90% reads at ONE: 200,000 writes/s and 900,000 reads/s; at LOCAL_QUORUM less than \
                 200,000 and 600,000.",
                "An hour of all cost $398.70, of which servers $242.82: six cents for a million writes by the servers alone.",
            ]),
            scaled: vec![
                format!("{cores} processors for three nodes and the client, where the article had 1,140 for the servers."),
                "The closed loop has as many operations under way for each processor as the article's threads.".to_owned(),
                "Compaction is on (the article had switched it off), and rows differ (they were all alike).".to_owned(),
                "Requests go to a replica of their row; the article's clients were not token-aware.".to_owned(),
            ],
            price: Some(Price {
                dollars_per_hour: dollars,
                words: format!("{cores} processors of i2.xlarge at the article's $0.852 an hour for four"),
            }),
        },
        servers: Servers::nodes(3),
        parts: vec![
            part("write-one", "writes at ONE", "stress-write", "ONE", ARTICLE_WRITERS, false),
            part("write-quorum", "writes at LOCAL_QUORUM", "stress-write", "LOCAL_QUORUM", ARTICLE_WRITERS, false),
            part("mixed-one", "10% writes, 90% reads at ONE", "stress-mixed", "ONE", ARTICLE_MIXED, true),
            part("mixed-quorum", "10% writes, 90% reads at LOCAL_QUORUM", "stress-mixed", "LOCAL_QUORUM", ARTICLE_MIXED, false),
        ],
    }
}
