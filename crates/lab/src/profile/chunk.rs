//! The Last Pickle, "Compression with mixed workloads" (2018): the size of compressed chunks, and what reads cost.

use super::{Profile, REPLICAS, Repeated, Scale, sentences, set};
use crate::report::words::several;
use crate::study::{Offer, Part, Subject};

pub(super) const PROFILE: Profile = Profile {
    name: "tlp-chunk",
    about: "The Last Pickle's chunk sizes: 4, 16, 64, 256 KB and auto, data twice the memory, bytes read from the disk",
    settings: &[("memory-mb", 1536), ("value-bytes", 1000), REPLICAS],
    make,
};

const SIZES_KB: [&str; 4] = ["4", "16", "64", "256"];
/// Leaves the size to the server; none but ours can do that.
const AUTO: &str = "auto";
/// Of the memory that servers are given.
const DATA_PART: u64 = 2;

fn make(scale: &Scale<'_>) -> Repeated {
    let (memory_bytes, value_bytes) = (scale.megabytes("memory-mb"), scale.setting("value-bytes"));
    let ring = scale.ring();
    let row_count = scale.rows(memory_bytes * DATA_PART / value_bytes.max(1));
    let part = |name: &str, size: &str, about: String| {
        let mut plan = scale.plan("tlp-keyvalue");
        plan.row_count = row_count;
        ring.apply_to(&mut plan);
        plan.keyspace = format!("bench_{size}");
        set(&mut plan, "chunk-kb", size);
        set(&mut plan, "bytes-min", value_bytes);
        set(&mut plan, "bytes-max", value_bytes);
        Part::new(name, about, plan, true, Offer::AsPlanned)
    };
    let mut parts: Vec<Part> =
        SIZES_KB.map(|kb| part(&format!("{kb}k"), kb, format!("chunks of {kb} KB"))).to_vec();
    let chosen = part(AUTO, AUTO, "the server chooses by what is read and written".to_owned());
    parts.push(Part { may_be_refused: true, ..chosen });
    Repeated {
        subject: Subject {
            name: PROFILE.name.to_owned(),
            title: "The Last Pickle: chunk sizes under a mixed load".to_owned(),
            source: "https://thelastpickle.com/blog/2018/08/08/compression_performance.html".to_owned(),
            claims: sentences(&[
                "With chunks of 64 KB: 44,000 operations/s, half of them reads, 99% of the reads within 24 ms, and 500 to \
                 600 MB/s from the disk for 25 MB/s on the network.",
                "With chunks of 4 KB: 62,000 operations/s, 99% of the reads within 13 ms, and much less from the disk.",
            ]),
            scaled: vec![
                ring.words(),
                format!(
                    "{} of {value_bytes} bytes, where the article had 10,000,000 of 100 to 200: twice the \
                     {} MB of memory that a node is given, page cache included.",
                    several(row_count, "value"),
                    memory_bytes >> 20
                ),
                "A closed loop; the article's was one of four threads with many requests under way, too."
                    .to_owned(),
                "Chunks of 16 and 256 KB, and of the server's own choice, stand beside the article's."
                    .to_owned(),
                "Bytes from the disk are those that the kernel counts for the server's processes.".to_owned(),
            ],
            price: None,
        },
        servers: ring.servers_within(memory_bytes),
        parts,
    }
}
