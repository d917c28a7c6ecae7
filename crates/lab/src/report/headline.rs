//! The run in one sentence.

use super::summary::Summary;
use super::words;
use crate::manifest::{Manifest, Pace, Target};
use crate::results::Results;

/// What was run, on what, at which pace.
pub(super) fn subject(manifest: &Manifest) -> String {
    let pace = match manifest.plan.pace {
        Pace::Open { rate } => format!("{} operations/s due", words::figure(rate)),
        Pace::Closed { in_flight } => {
            format!("{} always under way", words::several(in_flight as u64, "operation"))
        }
    };
    format!("{} on {} with {pace}", manifest.plan.workload, target(&manifest.target))
}

/// What came of it.
pub(super) fn result(summary: &Summary) -> String {
    let all = &summary.all;
    let failed = failed(summary);
    if all.count == 0 {
        return format!("no operation went well, {failed}");
    }
    let margin = all.rate.margin.map(|margin| format!(" ± {}", words::figure(margin))).unwrap_or_default();
    format!(
        "{}{margin} operations/s went well, half of them within {} and 99% within {}; {failed}",
        words::figure(all.rate.mean),
        words::time(all.response.spreads[0].all_us),
        words::time(all.response.p99().all_us),
    )
}

/// Subject and result of a run, in a sentence.
pub fn headline_of(results: &Results) -> String {
    headline(results, &Summary::of(results))
}

/// Subject and result.
pub(super) fn headline(results: &Results, summary: &Summary) -> String {
    format!("{}: {}.", subject(&results.manifest), result(summary))
}

fn failed(summary: &Summary) -> String {
    let all = &summary.all;
    let mut parts = Vec::new();
    match all.error_count {
        0 => parts.push("none failed".to_owned()),
        count => parts.push(format!("{} failed", words::count(count))),
    }
    match all.wrong_count {
        0 => parts.push("no answer was wrong".to_owned()),
        1 => parts.push("1 answer was wrong".to_owned()),
        count => parts.push(format!("{} answers were wrong", words::count(count))),
    }
    let without_end = match summary.endless_count {
        0 => None,
        1 => Some("1 was not over at the end".to_owned()),
        count => Some(format!("{} were not over at the end", words::count(count))),
    };
    parts.extend(without_end);
    parts.extend(summary.audit.map(|audit| match audit.fault() {
        Some(fault) => format!("the counters are wrong: {fault}"),
        None => format!("all {} increments were counted", words::count(audit.acknowledged_count)),
    }));
    listed(&parts)
}

/// What the servers are, by what they say of themselves.
fn target(target: &Target) -> String {
    let nodes = words::several(target.releases.len() as u64, "node");
    let named = |(key, value): (&String, &String)| {
        let name = key.strip_suffix("_version")?;
        let first = name.get(..1)?.to_uppercase();
        Some(format!("{first}{} {value}", &name[1..]))
    };
    match target.facts.iter().find_map(named) {
        Some(name) => format!("{nodes} of {name}"),
        None => format!("{nodes} of release {}", releases(target)),
    }
}

/// Each release once.
pub(super) fn releases(target: &Target) -> String {
    let mut releases = target.releases.clone();
    releases.sort();
    releases.dedup();
    match releases.is_empty() {
        true => "unknown".to_owned(),
        false => listed(&releases),
    }
}

/// With commas, and an `and` before the last.
pub(super) fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::{empty, example, flat};

    #[test]
    fn a_sentence_says_what_was_run_on_what_with_which_result() {
        let mut results = flat(&[(100, 250), (100, 250)]);
        let text = headline(&results, &Summary::of(&results));
        assert_eq!(
            text,
            "ycsb-b on 3 nodes of Peristyle 0.1.0 with 4 operations always under way: 100 ± 0 operations/s went well, \
             half of them within 250 µs and 99% within 250 µs; none failed and no answer was wrong."
        );
        results.manifest.target.facts.clear();
        assert!(headline(&results, &Summary::of(&results)).contains("3 nodes of release 5.0.4"));
    }

    #[test]
    fn failures_are_told() {
        let mut results = example();
        results.repetitions[3].endless_count = 2;
        let text = result(&Summary::of(&results));
        assert!(text.ends_with("; 10 failed, no answer was wrong and 2 were not over at the end"), "{text}");
        let text = result(&Summary::of(&empty()));
        assert_eq!(text, "no operation went well, none failed and no answer was wrong");
    }
}
