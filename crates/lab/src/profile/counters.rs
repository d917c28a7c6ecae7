//! "Counters: never use them": whether they count, and how fast, also while a node is killed.

use super::{Profile, Repeated, Scale, Servers, replicas, sentences};
use crate::disturbance::{Act, Disturbance};
use crate::report::words::several;
use crate::study::{Offer, Part, Subject};

pub(super) const PROFILE: Profile = Profile {
    name: "counters",
    about: "counters on a ring of three: how fast, and whether they have counted what was acknowledged, a node killed or not",
    settings: &[],
    make,
};

fn make(scale: &Scale<'_>) -> Repeated {
    let row_count = scale.rows(10_000);
    let part = |name: &str, about: &str, disturbances: &[(f64, Act)]| {
        let mut plan = scale.plan("counters");
        plan.row_count = row_count;
        plan.keyspace = format!("bench_{name}");
        plan.replication = replicas(3);
        plan.consistency = "QUORUM".to_owned();
        plan.measured_s = if disturbances.is_empty() { 20.0 } else { 60.0 };
        plan.disturbances =
            disturbances.iter().map(|(at_s, act)| Disturbance { at_s: *at_s, act: *act }).collect();
        plan.error_part_max = if disturbances.is_empty() { 0.01 } else { 1.0 };
        Part::new(name, about, plan, false, Offer::PartOfBorne(0.5))
    };
    Repeated {
        subject: Subject {
            name: PROFILE.name.to_owned(),
            title: "Counters: do they count?".to_owned(),
            source: "a web analyst's report on Cassandra 2.1, and https://github.com/scylladb/scylladb/issues/4265".to_owned(),
            claims: sentences(&[
                "\"Never use them\": they break idempotence and read before they write.",
                "100,000 increments with timeouts and retries became 100,064.",
            ]),
            scaled: vec![
                "The client repeats nothing but what a node refuses for want of replicas: an increment that failed may have \
                 been counted or not, and counters may lie between both; outside of that they are wrong."
                    .to_owned(),
                format!("{}, uniform.", several(row_count, "counter")),
            ],
            price: None,
        },
        servers: Servers::nodes(3),
        parts: vec![
            part("quiet", "QUORUM of three, all nodes well", &[]),
            part("killed", "the same, a node killed for 20 seconds", &[(10.0, Act::Kill(3)), (30.0, Act::Start(3))]),
        ],
    }
}
