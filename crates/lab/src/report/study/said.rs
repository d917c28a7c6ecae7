//! What a study found, in sentences.

use super::super::headline::listed;
use super::super::words;
use super::input::{Input, Run};
use crate::comparison::ratio;
use crate::figures::{COST, FIGURES, Figure};
use crate::study::Part;

/// What came of all parts, in one sentence.
pub(super) fn headline(input: &Input<'_>) -> String {
    let [first, others @ ..] = input.servers.as_slice() else {
        return "nothing was measured".to_owned();
    };
    let mut clauses: Vec<String> = match others.is_empty() {
        true => vec![alone(input, first)],
        false => others.iter().map(|other| beside(input, first, other)).collect(),
    };
    clauses.push(failed(input));
    clauses.join("; ")
}

/// What was seen in each part, a sentence for each.
pub(super) fn seen(input: &Input<'_>) -> Vec<String> {
    let sentence = |part_index: usize| {
        let runs: Vec<String> = input.runs_of(part_index).map(run).collect();
        (!runs.is_empty()).then(|| format!("{}: {}.", input.study.parts[part_index].0.name, runs.join("; ")))
    };
    (0..input.study.parts.len()).filter_map(sentence).collect()
}

/// What to be warned of, each once, with the parts and servers that it is about. What a warning says behind its first
/// sentence or a colon is told by their own pages.
pub(super) fn warnings(input: &Input<'_>) -> Vec<String> {
    let mut warnings: Vec<(String, Vec<&Run<'_>>)> = Vec::new();
    for run in &input.runs {
        for warning in &run.summary.warnings {
            let sentence = warning.split(". ").next().unwrap_or_default();
            let what = sentence.split(':').next().unwrap_or_default().trim_end_matches('.').to_owned();
            match warnings.iter_mut().find(|(other, _)| *other == what) {
                Some((_, runs)) => runs.push(run),
                None => warnings.push((what, vec![run])),
            }
        }
    }
    let warnings = warnings.into_iter().map(|(what, runs)| format!("{what}: {}.", whose(input, &runs)));
    ended_early(input).into_iter().chain(left_out(input)).chain(warnings).collect()
}

/// What was to come.
fn ended_early(input: &Input<'_>) -> Option<String> {
    let left = &input.study.left;
    let verb = if left.len() == 1 { "was" } else { "were" };
    (!left.is_empty()).then(|| format!("It was ended early: {} {verb} not measured.", listed(left)))
}

/// Who takes no part in what, and why.
fn left_out(input: &Input<'_>) -> impl Iterator<Item = String> {
    let of = |part: &Part, name: &str, why: &str| {
        let about = if part.about.is_empty() { String::new() } else { format!(" ({})", part.about) };
        format!("{name} does not have {}{about}: {why}.", part.name)
    };
    let parts = input.study.parts.iter().map(|(part, _)| part);
    parts.flat_map(move |part| part.left_out.iter().map(move |(name, why)| of(part, name, why)))
}

/// Servers, each with its parts.
fn whose(input: &Input<'_>, runs: &[&Run<'_>]) -> String {
    let of = |server: &&str| {
        let own = runs.iter().filter(|run| run.server == *server);
        let parts: Vec<String> = own.map(|run| run.part.name.clone()).collect();
        (!parts.is_empty()).then(|| format!("{server} in {}", listed(&parts)))
    };
    input.servers.iter().filter_map(of).collect::<Vec<_>>().join("; ")
}

/// The only server, from the part with the least to the part with the most.
fn alone(input: &Input<'_>, server: &str) -> String {
    let some = || input.runs.iter().filter(|run| run.summary.all.count > 0);
    let rates = range(some().map(|run| run.summary.all.rate.mean), words::figure);
    let tails =
        range(some().map(|run| run.summary.all.response.p99().all_us as f64), |us| words::time(us as u64));
    match rates.zip(tails) {
        Some((rates, tails)) => format!("{server} did {rates} operations/s, 99% of them within {tails}"),
        None => format!("no operation went well with {server}"),
    }
}

/// Another server by what the first one did.
fn beside(input: &Input<'_>, first: &str, other: &str) -> String {
    let times = |figure: Figure| {
        let pairs =
            input.runs.iter().filter(|run| run.server == other).filter_map(|run| run.beside_first(figure));
        range(pairs.filter_map(|(own, first)| ratio(&own, &first)).map(|ratio| ratio.mean), |times| {
            format!("{times:.2}")
        })
    };
    let facts = [
        times(FIGURES[0].1).map(|times| format!("{times} times the operations/s")),
        times(FIGURES[2].1).map(|times| format!("{times} times the p99")),
        times(COST.1).map(|times| format!("{times} times the server CPU per operation")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    match facts.is_empty() {
        true => format!("{other} can not be held against {first}"),
        false => format!("{other} had {} of {first}", listed(&facts)),
    }
}

fn failed(input: &Input<'_>) -> String {
    let of = |server: &&str| {
        let runs = input.runs.iter().filter(|run| run.server == *server);
        let count = runs.map(Run::failed_count).sum::<u64>();
        (count > 0).then(|| format!("{} of {server}", words::several(count, "operation")))
    };
    let failed: Vec<String> = input.servers.iter().filter_map(of).collect();
    match failed.is_empty() {
        true => "none failed and no answer was wrong".to_owned(),
        false => format!("failed or wrong: {}", listed(&failed)),
    }
}

fn run(run: &Run<'_>) -> String {
    let all = &run.summary.all;
    let failed = match run.failed_count() {
        0 => String::new(),
        count => format!(", {} failed or wrong", words::count(count)),
    };
    if all.count == 0 {
        return format!("{} nothing that went well{failed}", run.server);
    }
    format!(
        "{} {} operations/s, 99% within {}, the longest {}{failed}",
        run.server,
        words::figure(all.rate.mean),
        words::time(all.response.p99().all_us),
        words::time(all.response.max.all_us),
    )
}

/// From the least to the most, or one figure if both are written alike.
fn range(figures: impl Iterator<Item = f64>, written: impl Fn(f64) -> String) -> Option<String> {
    let (low, high) =
        figures.map(|one| (one, one)).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
    let (low, high) = (written(low), written(high));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

#[cfg(test)]
mod tests {
    use super::super::example::{alone as only, ladder, study};
    use super::*;
    use crate::study::Study;

    #[test]
    fn a_headline_holds_all_servers_against_the_first() {
        let study = ladder();
        let text = headline(&Input::of(&study));
        assert!(text.starts_with("cassandra had 1.00 times the operations/s, 2."), "{text}");
        assert!(text.contains(" and 2.40 times the server CPU per operation of peristyle; "), "{text}");
        assert!(
            text.ends_with("; failed or wrong: 12 operations of peristyle and 12 operations of cassandra"),
            "{text}"
        );
    }

    #[test]
    fn a_warning_is_told_once_with_those_whom_it_is_about() {
        let study = ladder();
        let warnings = warnings(&Input::of(&study));
        let parts = "500, 1000 and 1500";
        assert_eq!(
            warnings[0],
            format!("In repetition 3, operations failed: peristyle in {parts}; cassandra in {parts}.")
        );
        assert_eq!(warnings.len(), 4, "{warnings:?}");
    }

    #[test]
    fn one_server_is_told_of_by_its_own_figures() {
        let study = only();
        assert_eq!(
            headline(&Input::of(&study)),
            "ours did 100 to 120 operations/s, 99% of them within 250 µs to 260 µs; none failed and no answer was wrong"
        );
        let ended = Study { left: vec!["c".to_owned(), "f".to_owned()], ..study.clone() };
        assert_eq!(warnings(&Input::of(&ended))[0], "It was ended early: c and f were not measured.");
        let nothing = Study { parts: Vec::new(), ..study };
        assert_eq!(headline(&Input::of(&nothing)), "nothing was measured");
    }

    #[test]
    fn each_part_is_told_of_and_what_did_nothing_is_said() {
        let study = study();
        let seen = seen(&Input::of(&study));
        assert_eq!(seen.len(), 3);
        assert_eq!(
            seen[1],
            "two: ours 110 operations/s, 99% within 260 µs, the longest 260 µs; <theirs> nothing that went well."
        );
    }
}
