//! Reports of a study: several servers, part by part.
//!
//! ```text
//!                +-- table ---+-- text    for a terminal
//!   Study -------+            +-- page    with plots of all servers, whole in itself
//!                +-- csv                  each repetition of each, for a spreadsheet
//! ```
//!
//! The first server of each part is what the others are held against.

mod bars;
mod csv;
mod curves;
mod lines;
mod page;
mod table;
mod text;

pub use csv::study_csv;
pub use page::study_html;
pub use text::study_text;

use super::summary::Summary;
use crate::study::Study;

/// Colours that the page's style sheet has; a study of more servers uses one twice.
const COLOUR_COUNT: usize = 6;

/// The class that gives a server its colour, by its place in the study.
fn server_class(index: usize) -> String {
    format!("kind{}", index % COLOUR_COUNT)
}

/// What to be warned of, each once, with the parts and servers that it is about. What a warning says behind a colon is
/// told by their own pages.
fn warnings(study: &Study) -> Vec<String> {
    let mut warnings: Vec<(String, Vec<String>)> = Vec::new();
    for (part, comparison) in &study.parts {
        for (server, results) in comparison.results() {
            for warning in Summary::of(results).warnings {
                let what = warning.split(':').next().unwrap_or_default().trim_end_matches('.').to_owned();
                let whose = format!("{} of {server}", part.name);
                match warnings.iter_mut().find(|(other, _)| *other == what) {
                    Some((_, all)) => all.push(whose),
                    None => warnings.push((what, vec![whose])),
                }
            }
        }
    }
    warnings.into_iter().map(|(what, whose)| format!("{what}: {}.", whose.join(", "))).collect()
}

/// Names of all servers, each once, in their order.
fn servers(study: &Study) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in study.parts.iter().flat_map(|(_, comparison)| comparison.results()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Comparison;
    use crate::report::example::{empty, example, flat};
    use crate::study::{Part, Price, Subject};

    /// Three parts of two servers: usual ones, one that did nothing, one that failed at times.
    fn study() -> Study {
        let usual = example();
        let mut slow = flat(&[(100, 250), (120, 260), (110, 255)]);
        slow.repetitions.iter_mut().for_each(|one| one.server_cpu_s = Some(0.02));
        slow.repetitions[0].server_disk_bytes = Some((1 << 20, 5));
        slow.repetitions[0].received_bytes = 1 << 18;
        slow.repetitions[0].caches.insert("chunks".to_owned(), (30, 40));
        let part = |name: &str| Part {
            name: name.to_owned(),
            about: "a <part>".to_owned(),
            plan: usual.manifest.plan.clone(),
            loads: true,
            offer: Default::default(),
        };
        let both = |first: &crate::Results, second: &crate::Results| {
            let named = [("ours", first), ("<theirs>", second)];
            Comparison::of(named.map(|(name, results)| (name.to_owned(), results.clone())).to_vec())
        };
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
                (part("one"), both(&usual, &slow)),
                (part("two"), both(&slow, &empty())),
                (part("three"), both(&slow, &usual)),
            ],
        }
    }

    #[test]
    fn a_page_holds_all_parts_and_servers_and_nothing_from_outside() {
        let page = study_html(&study(), &|part, server| format!("{part}/{server}/report.html"));
        for outside in ["http:", "https:", "<script", "<article>", "<theirs>", "<part>", "NaN", "\"inf"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for tag in ["table", "figure", "svg", "tr", "td", "th", "a", "ul", "li"] {
            let opened =
                page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(page.contains("href=\"two/&lt;theirs&gt;/report.html\""));
        // Bars of rate, tail and cost; for each part lines of rate and tail, and curves.
        assert_eq!(page.matches("<svg").count(), 3 + 3 * 3);
    }

    #[test]
    fn a_table_holds_what_is_known_and_leaves_out_the_rest() {
        let text = study_text(&study());
        let head = text.lines().next().unwrap();
        for column in ["operations/s", "p99.9", "read/answered", "chunks hits", "$/million"] {
            assert!(head.contains(column), "{head}");
        }
        assert!(text.contains("4.00") && text.contains("75.0%"), "{text}");
        let alone = Study { parts: study().parts.split_off(1), ..study() };
        assert!(!study_text(&alone).is_empty());
    }

    #[test]
    fn a_line_stands_for_each_repetition() {
        let csv = study_csv(&study());
        let count: usize = study()
            .parts
            .iter()
            .flat_map(|(_, one)| one.results().map(|(_, of)| of.repetitions.len()).collect::<Vec<_>>())
            .sum();
        assert_eq!(csv.lines().count(), 1 + count);
        let columns = |line: &str| line.matches(',').count();
        assert!(csv.lines().all(|line| columns(line) == columns(csv.lines().next().unwrap())), "{csv}");
    }
}
