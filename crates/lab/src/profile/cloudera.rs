//! Cloudera, "HBase performance testing using YCSB" (2021): the same mixes on rows that fit into the cache, and on rows
//! that do not.

use super::{Profile, REPLICAS, Repeated, Scale, sentences};
use crate::report::words::{count, several};
use crate::study::{Offer, Part, Subject};

pub(super) const PROFILE: Profile = Profile {
    name: "cloudera-ycsb",
    about: "Cloudera's cache study: YCSB C, updates, A and F on data of a third and of three times the memory, hit ratios",
    settings: &[("memory-mb", 1536), REPLICAS],
    make,
};

/// A row of YCSB's, with what stands around it.
const ROW_BYTES: u64 = 1100;
const MIXES: [(&str, &str); 4] = [
    ("c", "reads alone"),
    ("u", "updates alone"),
    ("a", "half reads, half updates"),
    ("f", "half read-modify-writes"),
];

fn make(scale: &Scale<'_>) -> Repeated {
    let (memory_bytes, ring) = (scale.megabytes("memory-mb"), scale.ring());
    let rows = [
        ("fit", "a third of the memory", memory_bytes / 3),
        ("beyond", "three times the memory", memory_bytes * 3),
    ]
    .map(|(name, words, bytes)| (name, words, bytes / ROW_BYTES));
    let part = |(size, words, row_count): (&str, &str, u64), index: usize, (mix, about): (&str, &str)| {
        let mut plan = scale.plan(&format!("ycsb-{mix}"));
        plan.row_count = row_count;
        ring.apply_to(&mut plan);
        plan.keyspace = format!("bench_{size}");
        // The article dropped two of five: their caches were still filling.
        (plan.repetition_count, plan.dropped_count) = (5, 2);
        Part::new(format!("{size}-{mix}"), format!("{about}, {words}"), plan, index == 0, Offer::AsPlanned)
    };
    let parts =
        rows.into_iter().flat_map(|size| (0..).zip(MIXES).map(move |(index, mix)| part(size, index, mix)));
    Repeated {
        subject: Subject {
            name: PROFILE.name.to_owned(),
            title: "Cloudera: data within the cache, and beyond it".to_owned(),
            source: "https://blog.cloudera.com/hbase-performance-testing-using-ycsb/".to_owned(),
            claims: sentences(&[
                "HBase, 5 region servers, 40 GB in 61 GB of cache: C 165,063/s, updates 63,030, A 79,439, F 55,157; 99% \
                 within 0.48, 1.57, 0.66 and 0.98 ms; 99% of the reads hit the cache.",
                "1 TB: C 3,030/s, updates 62,605, A 6,855, F 3,704; 99% within 111, 1.58, 98 and 99 ms; 82 to 84% hit.",
                "So reads are 54 times slower once the data no longer fit, and updates are not.",
            ]),
            scaled: vec![
                ring.words(),
                format!(
                    "{} and {} of 1 KB for {} MB of memory of a node, page cache included; the article had 40 million and a billion.",
                    count(rows[0].2),
                    several(rows[1].2, "row"),
                    memory_bytes >> 20
                ),
                format!(
                    "{} seconds at a time, where the article had 15 minutes five times and dropped two.",
                    scale.seconds(20.0)
                ),
            ],
            price: None,
        },
        servers: ring.servers_within(memory_bytes),
        parts: parts.collect(),
    }
}
