//! "Never goes down": a node of three is killed, paused and cut off under load, and brought back.

use super::{Profile, Repeated, Scale, Servers, replicas, sentences};
use crate::disturbance::{Act, Disturbance};
use crate::study::{Offer, Part, Subject};

pub(super) const PROFILE: Profile = Profile {
    name: "failover",
    about: "a node of three killed, paused, cut off and brought back under YCSB A at QUORUM",
    settings: &[],
    make,
};

const LENGTH_S: f64 = 60.0;

fn make(scale: &Scale<'_>) -> Repeated {
    let part = |name: &str, about: &str, acts: [(f64, Act); 2]| {
        let mut plan = scale.plan("ycsb-a");
        plan.row_count = scale.rows(100_000);
        plan.replication = replicas(3);
        plan.consistency = "QUORUM".to_owned();
        plan.measured_s = LENGTH_S;
        plan.disturbances = acts.iter().map(|(at_s, act)| Disturbance { at_s: *at_s, act: *act }).collect();
        plan.error_part_max = 1.0;
        // What the Java driver 4 waits for; longer waits would hide what a user sees.
        plan.timeout_s = 2.0;
        Part::new(name, about, plan, name == "killed", Offer::PartOfBorne(0.5))
    };
    let parts = vec![
        part("killed", "killed at 10 s, started at 30 s", [(10.0, Act::Kill(2)), (30.0, Act::Start(2))]),
        part("paused", "paused from 10 s to 30 s", [(10.0, Act::Pause(2)), (30.0, Act::Resume(2))]),
        part("cut", "cut off from the others from 10 s to 30 s", [(10.0, Act::Cut(2)), (30.0, Act::Heal)]),
    ];
    Repeated {
        subject: Subject {
            name: PROFILE.name.to_owned(),
            title: "A node of three fails".to_owned(),
            source: "what Cassandra is chosen for: no single point of failure".to_owned(),
            claims: sentences(&["With three replicas and QUORUM one node may fail, and no client notices."]),
            scaled: sentences(&[
                "Half of what is borne with all nodes, by the slowest of several servers; an operation has 2 s, as with the Java driver 4.",
                "The client opens broken connections anew every 200 ms, and asks other replicas before one that has given no answer for 200 ms.",
                "Where a node says that it can not reach enough replicas, the client asks another one, once, as drivers do. \
                 Nothing else is repeated, and each failure is counted.",
            ]),
            price: None,
        },
        servers: Servers::nodes(3),
        parts,
    }
}
