//! The table that everybody shows first: YCSB's mixes A to F, and updates alone.

use super::{Profile, REPLICAS, Repeated, Scale, sentences};
use crate::report::words::several;
use crate::study::{Offer, Part, Subject};

pub(super) const PROFILE: Profile = Profile {
    name: "ycsb",
    about: "YCSB A to F and updates alone in one table, at half of what is borne",
    settings: &[REPLICAS],
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
    let (row_count, ring) = (scale.rows(100_000), scale.ring());
    let part = |(index, (name, about)): (usize, &(&str, &str))| {
        let mut plan = scale.plan(&format!("ycsb-{name}"));
        plan.row_count = row_count;
        ring.apply_to(&mut plan);
        Part::new(*name, *about, plan, index == 0, Offer::PartOfBorne(0.5))
    };
    Repeated {
        subject: Subject {
            name: PROFILE.name.to_owned(),
            title: "YCSB's standard mixes".to_owned(),
            source: "https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads".to_owned(),
            claims: sentences(&["YCSB names the mixes, keys and distributions, and no figures."]),
            scaled: vec![
                "YCSB's loop is closed; here each mix is offered in an open loop, at half of what is borne in a closed \
                 one: by the slowest of several servers, so that all of them do the same work."
                    .to_owned(),
                ring.words(),
                format!("{} of 1 KB: see the profile cloudera-ycsb for caches.", several(row_count, "row")),
            ],
            price: None,
        },
        servers: ring.servers(),
        parts: MIXES.iter().enumerate().map(part).collect(),
    }
}
