//! Studies to test reports with.

use super::super::example::{empty, example, flat, loaded_example};
use crate::comparison::Comparison;
use crate::manifest::Plan;
use crate::results::Results;
use crate::study::{Offer, Part, Price, Study, Subject};

/// Three parts of two servers: usual ones, one that did nothing, one that failed at times.
pub(super) fn study() -> Study {
    let usual = example();
    let mut slow = flat(&[(100, 250), (120, 260), (110, 255)]);
    slow.repetitions.iter_mut().for_each(|one| one.server_cpu_s = Some(0.02));
    slow.repetitions[0].server_disk_bytes = Some((1 << 20, 5));
    slow.repetitions[0].received_bytes = 1 << 18;
    slow.repetitions[0].caches.insert("chunks".to_owned(), (30, 40));
    let plan = &usual.manifest.plan;
    let both = |first: &Results, second: &Results| compared([("ours", first), ("<theirs>", second)]);
    Study {
        subject: Subject {
            name: "example".to_owned(),
            title: "An <article>".to_owned(),
            claims: vec!["It is fast.".to_owned()],
            scaled: vec!["It is smaller.".to_owned()],
            price: Some(Price { dollars_per_hour: 1.0, words: "two cores".to_owned() }),
            ..Subject::default()
        },
        parts: vec![
            (part("one", "a <part>", plan), both(&usual, &slow)),
            (part("two", "a <part>", plan), both(&slow, &empty())),
            (part("three", "a <part>", plan), both(&slow, &usual)),
        ],
        left: Vec::new(),
    }
}

/// One server in two parts.
pub(super) fn alone() -> Study {
    let (slow, fast) = (flat(&[(100, 250)]), flat(&[(120, 260)]));
    let only = |results: &Results| Comparison::of(vec![("ours".to_owned(), results.clone())]);
    let of = |name: &str, results: &Results| (part(name, "", &results.manifest.plan), only(results));
    Study { subject: Subject::default(), parts: vec![of("one", &slow), of("two", &fast)], left: Vec::new() }
}

/// Two servers on three rungs of a ladder of rates; the second comes back later than the first.
pub(super) fn ladder() -> Study {
    let rungs = [(500.0, 1.0), (1000.0, 1.2), (1500.0, 2.5)];
    let rung = |(rate, strain): (f64, f64)| {
        let [mut first, second] = [1.0, 2.4].map(|slowness| known(rate, slowness * strain));
        first.repetitions[2].events[2].at_s -= 1.0;
        let about = format!("{rate} operations each second, evenly");
        let part = part(&format!("{rate}"), &about, &first.manifest.plan);
        (part, compared([("peristyle", &first), ("cassandra", &second)]))
    };
    let subject = Subject {
        name: "gc-ladder".to_owned(),
        title: "The Last Pickle: a ladder of rates, and the tail".to_owned(),
        source: "https://thelastpickle.com/blog/2020/06/29/benchmarks.html".to_owned(),
        claims: vec![
            "At most 41,000 operations/s with Cassandra 3.11.6, 51,000 with 4.0.".to_owned(),
            "At 50,000/s the p99 of 4.0 with CMS was 11 to 31 ms.".to_owned(),
        ],
        scaled: vec!["60 seconds at each rung, where the article had 30 minutes.".to_owned()],
        price: Some(Price { dollars_per_hour: 0.34, words: "three machines at a third each".to_owned() }),
    };
    Study { subject, parts: rungs.into_iter().map(rung).collect(), left: Vec::new() }
}

/// The example with all that servers may tell of themselves.
fn known(rate: f64, slowness: f64) -> Results {
    let mut results = loaded_example(12, rate, slowness);
    for one in &mut results.repetitions {
        let done = one.rate() * one.seconds;
        one.server_cpu_s = Some(done * slowness * 210e-6);
        one.server_disk_bytes = Some(((done * slowness * 4096.0) as u64, (done * 900.0) as u64));
        one.received_bytes = (done * 1100.0) as u64;
        one.caches.insert("chunks".to_owned(), ((done * 0.8) as u64, done as u64));
    }
    results
}

fn part(name: &str, about: &str, plan: &Plan) -> Part {
    let offer = Offer::AsPlanned;
    Part::new(name, about, plan.clone(), true, offer)
}

fn compared(named: [(&str, &Results); 2]) -> Comparison {
    Comparison::of(named.map(|(name, results)| (name.to_owned(), results.clone())).to_vec())
}
