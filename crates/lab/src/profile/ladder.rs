//! The Last Pickle, "Cassandra 4.0 garbage collectors" (2020): a ladder of fixed rates, and what the tail does on it.

use super::{Profile, Repeated, Scale, Servers, replicas, sentences, set};
use crate::study::{Offer, Part, Subject};

pub(super) const PROFILE: Profile = Profile {
    name: "gc-ladder",
    about: "The Last Pickle's ladder of rates: RF 3, 80% writes, LOCAL_ONE, p99 and maximum at each rung",
    settings: &[],
    make,
};

/// What the article's Cassandra 3.11 bore with its own collector, in thousands each second.
const BORNE: f64 = 41.0;
const RUNG_S: f64 = 60.0;
const RUNGS: [f64; 4] = [25.0, 40.0, 45.0, 50.0];

fn make(scale: &Scale<'_>) -> Repeated {
    let part = |(index, rung): (usize, f64)| {
        let mut plan = scale.plan("tlp-timeseries");
        plan.row_count = scale.rows(plan.row_count.max(100_000));
        plan.replication = replicas(3);
        plan.consistency = "LOCAL_ONE".to_owned();
        plan.measured_s = RUNG_S;
        // At the upper rungs a server that does not bear it fails, which is what is to be seen.
        plan.error_part_max = 1.0;
        set(&mut plan, "writes", 80);
        set(&mut plan, "reads", 20);
        set(&mut plan, "limit", 50);
        Part::new(
            format!("{rung}k"),
            format!("as the article's {rung},000/s: {:.0}% of what is borne", rung / BORNE * 100.0),
            plan,
            index == 0,
            Offer::PartOfBorne(rung / BORNE),
        )
    };
    Repeated {
        subject: Subject {
            name: PROFILE.name.to_owned(),
            title: "The Last Pickle: a ladder of rates, and the tail".to_owned(),
            source: "https://thelastpickle.com/blog/2020/06/29/cassandra_4-0_garbage_collectors_performance_benchmarks.html"
                .to_owned(),
            claims: sentences(&[
                "At most 41,000 operations/s with Cassandra 3.11.6 (CMS), 51,000 with 4.0; 36,000 to 50,000 with other \
                 collectors.",
                "99% of the reads within 17 ms with 3.11.6 and 11.5 ms with 4.0 at a moderate rate; 2.64 ms with Shenandoah.",
                "At 50,000/s the p99 of 4.0 with CMS was 11 to 31 ms; with G1 the worst followed its pause target of 300 ms.",
            ]),
            scaled: vec![
                "The rungs are the same parts of what is borne in a closed loop (by the slowest of several servers) as \
                 25, 40, 45 and 50 thousand are of the 41 thousand that the article's 3.11.6 bore."
                    .to_owned(),
                format!(
                    "{} seconds at each rung, where the article had 30 minutes; so there is less compaction.",
                    scale.seconds(RUNG_S)
                ),
                "The article names no reads by size: here a read asks for the newest 50 rows of a sensor.".to_owned(),
            ],
            price: None,
        },
        servers: Servers::nodes(3),
        parts: RUNGS.into_iter().enumerate().map(part).collect(),
    }
}
