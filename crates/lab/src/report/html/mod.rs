//! The page: whole in itself, without scripts, to be read on a screen, light or dark, and on paper.

mod plan;
mod tables;

use super::figures::{Figure, figures};
use super::headline::{headline, result, subject};
use super::plot::escaped;
use super::summary::Summary;
use crate::results::Results;

/// Colours and sizes; the plots have none of their own.
const STYLE: &str = include_str!("page.css");

/// What was run on what with which result, what to be warned of, figures, plots, and how to run it again.
pub fn html(results: &Results) -> String {
    let summary = Summary::of(results);
    let mut page = String::new();
    let (subject, result) = (escaped(&subject(&results.manifest)), escaped(&result(&summary)));
    page.push_str(&format!("<h1><span>{subject}:</span> {result}.</h1>\n"));
    add_warnings(&mut page, &summary.warnings);
    page.push_str(&tables::figures(&summary));
    page.push_str(&tables::cost(&summary));
    page.push_str(&tables::messages(&summary));
    page.push_str("<h2>Plots</h2>\n");
    figures(results, &summary).iter().for_each(|figure| add_figure(&mut page, figure));
    page.push_str(&tables::events(results));
    page.push_str(&plan::section(&results.manifest));
    document(&headline(results, &summary), &page)
}

/// A whole page, of its title and what is on it.
pub(super) fn document(title: &str, content: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{content}\
         </main>\n</body>\n</html>\n"
    )
}

/// What a reader must know first.
pub(super) fn add_warnings(page: &mut String, warnings: &[String]) {
    if warnings.is_empty() {
        return;
    }
    page.push_str(
        "<section class=\"warnings\" role=\"note\">\n<h2>Before you trust these figures</h2>\n<ul>\n",
    );
    for warning in warnings {
        page.push_str(&format!("<li>{}</li>\n", escaped(warning)));
    }
    page.push_str("</ul>\n</section>\n");
}

/// A plot with its words.
pub(super) fn add_figure(page: &mut String, figure: &Figure) {
    let (title, caption) = (escaped(&figure.title), escaped(&figure.caption));
    page.push_str(&format!(
        "<figure>\n<figcaption><strong>{title}</strong> {caption}</figcaption>\n\
         <div class=\"plot\">\n{}</div>\n</figure>\n",
        figure.svg
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::{empty, example, flat};

    #[test]
    fn a_page_is_whole_in_itself() {
        let page = html(&example());
        for outside in ["http:", "https:", "<script", "<link", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for tag in ["table", "figure", "svg", "section", "tr", "td", "text", "ul", "dl"] {
            let opened =
                page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(page.contains("peristyle bench repeat manifest.json"));
    }

    #[test]
    fn what_comes_from_outside_is_escaped() {
        let page = html(&example());
        for outside in ["<killed>", "<Cluster>", "<timeout>"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("node 2 &lt;killed&gt;") && page.contains("&lt;timeout&gt; &amp; no answer"));
    }

    #[test]
    fn a_page_of_nothing_or_of_one_second_has_no_number_that_is_none() {
        for results in [empty(), flat(&[]), flat(&[(1, 1)]), flat(&[(0, 0), (0, 0)])] {
            let page = html(&results);
            assert!(!page.contains("NaN") && !page.contains("inf ") && !page.contains("\"inf"));
        }
    }
}
