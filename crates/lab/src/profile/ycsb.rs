//! The table that everybody shows first: YCSB's mixes A to F, and updates alone.

use super::{Profile, Repeated, Scale, Servers, sentences};
use crate::study::{Offer, Part, Subject};

pub(super) const PROFILE: Profile = Profile {
    name: "ycsb",
    about: "YCSB A to F and updates alone in one table, at half of what the slowest server bears",
    settings: &[],
    make,
};

/// In the order that YCSB recommends: those that insert come last, so that all others find the same rows.
const MIXES: [(&str, &str); 7] = [
    ("a", "half reads, half updates"),
    ("b", "95% reads, 5% updates"),
    ("c", "reads alone"),
    ("f", "half reads, half read-modify-writes"),
    ("u", "updates alone"),
    ("d", "95% reads of the latest, 5% inserts"),
    ("e", "95% scans, 5% inserts"),
];

fn make(scale: &Scale<'_>) -> Repeated {
    let part = |(index, (name, about)): (usize, &(&str, &str))| {
        let mut plan = scale.plan(&format!("ycsb-{name}"));
        plan.row_count = scale.rows(100_000);
        Part {
            name: (*name).to_owned(),
            about: (*about).to_owned(),
            plan,
            loads: index == 0,
            offer: Offer::PartOfBorne(0.5),
        }
    };
    Repeated {
        subject: Subject {
            name: PROFILE.name.to_owned(),
            title: "YCSB's standard mixes".to_owned(),
            source: "https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads".to_owned(),
            claims: sentences(&["YCSB names the mixes, keys and distributions, and no figures."]),
            scaled: sentences(&[
                "YCSB's loop is closed; here each mix is offered in an open loop, at half of what the slowest server \
                 bears in a closed one, so that all servers do the same work.",
                "100,000 rows of 1 KB fit into the caches: see the profile cloudera-ycsb for those that do not.",
            ]),
            price: None,
        },
        servers: Servers { node_count: 1, memory_bytes: None },
        parts: MIXES.iter().enumerate().map(part).collect(),
    }
}
