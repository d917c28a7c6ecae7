//! Reports of a study: several servers, part by part.
//!
//! ```text
//!                +-- input --- said, table ---+-- text    for a terminal
//!   Study -------+                            +-- page    with plots of all servers, whole in itself
//!                +-- csv                                  each repetition of each, for a spreadsheet
//! ```
//!
//! The first server of each part is what the others are held against.

mod bars;
mod csv;
mod curves;
#[cfg(test)]
mod example;
mod input;
mod ladder;
mod lines;
mod page;
mod said;
mod table;
mod text;

pub use csv::study_csv;
pub use page::study_html;
pub use text::study_text;

#[cfg(test)]
mod tests {
    use super::example::{alone, ladder, study};
    use super::*;
    use crate::comparison::Comparison;
    use crate::study::Part;

    #[test]
    fn a_page_holds_all_parts_and_servers_and_nothing_from_outside() {
        let page = study_html(&study(), &|part, server| format!("{part}/{server}/report.html"));
        for outside in ["http:", "https:", "<script", "<article>", "<theirs>", "<part>", "NaN", "\"inf"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for tag in ["table", "figure", "svg", "tr", "td", "th", "tbody", "section", "a", "i", "ul", "li"] {
            let opened =
                page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(page.contains("href=\"two/&lt;theirs&gt;/report.html\""));
        // Bars of rate, tail and cost; for each part lines of rate and tail, and curves.
        assert_eq!(page.matches("<svg").count(), 3 + 3 * 3);
        // Those of a ladder have one over its rates.
        let page = study_html(&ladder(), &|_, _| String::new());
        assert_eq!(page.matches("<svg").count(), 4 + 3 * 3);
        assert!(page.contains("What was seen here") && page.contains("<li>At most 41,000 operations/s"));
    }

    #[test]
    fn a_table_holds_what_is_known_and_leaves_out_the_rest() {
        let text = study_text(&study());
        for column in ["operations/s", "p95", "p99.9", "read/answered", "chunks hits", "$/million"] {
            assert!(text.contains(column), "{text}");
        }
        assert!(!text.contains("endless") && !text.contains("counters"), "{text}");
        assert!(text.contains("4.00") && text.contains("75.0%"), "{text}");
        assert!(text.contains("asked again") && text.contains("1,234"), "{text}");
        let alone = study_text(&alone());
        assert!(!alone.contains("to the first") && !alone.contains("asked again"));
    }

    #[test]
    fn a_part_that_no_server_could_do_is_told_and_has_no_figures() {
        let mut study = alone();
        let (part, _) = study.parts[1].clone();
        let left_out = vec![("ours".to_owned(), "no such option".to_owned())];
        let part = Part { name: "auto".to_owned(), left_out, ..part };
        study.parts.push((part, Comparison::of(Vec::new())));
        let (text, page) = (study_text(&study), study_html(&study, &|_, _| String::new()));
        let line = "ours does not have auto: no such option.";
        assert!(text.contains(&format!("warning: {line}")) && page.contains(line), "{text}");
        assert_eq!(study_csv(&study).lines().count(), 3);
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
        assert!(csv.lines().next().unwrap().ends_with(",cache_chunks_hit_count,cache_chunks_request_count"));
        assert!(csv.contains(",1048576,5,262144,30,40\n"), "{csv}");
        let columns = |line: &str| line.matches(',').count();
        assert!(csv.lines().all(|line| columns(line) == columns(csv.lines().next().unwrap())), "{csv}");
    }

    #[test]
    fn many_parts_have_plots_over_all_of_them_only() {
        let mut many = alone();
        many.parts = (0..6).flat_map(|_| many.parts.clone()).collect();
        let page = study_html(&many, &|_, _| String::new());
        assert_eq!(page.matches("<svg").count(), 2);
        assert!(!page.contains("What was seen here"));
        assert_eq!(page.matches("<tr class=\"part\">").count(), 12);
    }
}
