//! A study as a page.

use super::super::figures::Figure;
use super::super::html::{add_figure, add_warnings, document};
use super::super::plot::escaped;
use super::table::Table;
use super::{bars, curves, lines, servers, warnings};
use crate::study::{Study, Subject};

/// With more parts only the plots over all of them are drawn; those of each part are on its own pages.
const PLOTTED_PART_COUNT_MAX: usize = 10;

/// What was asked and what came of it, the article's claims beside it, plots of all servers, and links to the pages of
/// each part, which `link` finds by part and server.
pub fn study_html(study: &Study, link: &dyn Fn(&str, &str) -> String) -> String {
    let subject = &study.subject;
    let title = if subject.title.is_empty() { &subject.name } else { &subject.title };
    let of = servers(study).join(" and ");
    let mut page =
        format!("<h1><span>{}</span> {}</h1>\n", escaped(title), escaped(&format!("Measured on {of}.")));
    add_warnings(&mut page, &warnings(study));
    add_words(&mut page, subject);
    page.push_str("<h2>What was seen</h2>\n");
    add_table(&mut page, study, link);
    page.push_str("<h2>Plots</h2>\n");
    let mut add_all = |figures: Vec<Figure>| figures.iter().for_each(|figure| add_figure(&mut page, figure));
    add_all(bars::figures(study));
    if study.parts.len() <= PLOTTED_PART_COUNT_MAX {
        add_all(lines::figures(study));
        add_all(curves::figures(study));
    }
    page.push_str("<h2>Run it again</h2>\n<pre><code>peristyle bench repeat manifest.json</code></pre>\n");
    document(title, &page)
}

fn add_words(page: &mut String, subject: &Subject) {
    for (title, sentences) in
        [("What the article says", &subject.claims), ("What is different here", &subject.scaled)]
    {
        if sentences.is_empty() {
            continue;
        }
        page.push_str(&format!("<h2>{title}</h2>\n<ul>\n"));
        sentences.iter().for_each(|sentence| page.push_str(&format!("<li>{}</li>\n", escaped(sentence))));
        page.push_str("</ul>\n");
    }
    if !subject.source.is_empty() {
        page.push_str(&format!("<p class=\"legend\">Source: {}</p>\n", escaped(&subject.source)));
    }
    if let Some(price) = &subject.price {
        let words = format!("An hour of the servers costs ${:.3}: {}.", price.dollars_per_hour, price.words);
        page.push_str(&format!("<p class=\"legend\">{}</p>\n", escaped(&words)));
    }
}

fn add_table(page: &mut String, study: &Study, link: &dyn Fn(&str, &str) -> String) {
    let table = Table::of(study);
    let head: String = table.head.iter().map(|name| format!("<th>{}</th>", escaped(name))).collect();
    page.push_str(&format!(
        "<div class=\"wide\">\n<table class=\"figures\">\n<thead>\n<tr><th>part</th><th>server</th>{head}</tr>\n\
         </thead>\n<tbody>\n"
    ));
    let abouts = || study.parts.iter().map(|(part, _)| (part.name.as_str(), part.about.as_str()));
    let mut last = "";
    for row in &table.rows {
        let about = abouts().find(|(name, _)| *name == row.part).map_or("", |(_, about)| about);
        let name = match row.part == last {
            true => String::new(),
            false => format!("{}<small>{}</small>", escaped(&row.part), escaped(about)),
        };
        let cells: String = row.cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        let (href, server) = (escaped(&link(&row.part, &row.server)), escaped(&row.server));
        let class = if row.is_bad { " class=\"bad\"" } else { "" };
        page.push_str(&format!(
            "<tr{class}><th>{name}</th><th><a href=\"{href}\">{server}</a></th>{cells}</tr>\n"
        ));
        last = &row.part;
    }
    page.push_str("</tbody>\n</table>\n</div>\n");
    page.push_str(
        "<p class=\"legend\">An operation is what a user would call one: a batch, or a read-modify-write. \
         Times are response times of all kept repetitions; ± is half of the 95% confidence interval. Failed are \
         errors, wrong answers and operations without an end.</p>\n",
    );
}
