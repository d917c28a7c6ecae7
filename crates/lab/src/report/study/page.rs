//! A study as a page.

use super::super::figures::Figure;
use super::super::html::{add_figure, add_warnings, document};
use super::super::plot::escaped;
use super::input::{Input, Run};
use super::said::{headline, seen, warnings};
use super::table::Table;
use super::{bars, curves, ladder, lines};
use crate::study::{Study, Subject};

/// With more parts only the plots over all of them are drawn; those of each part are on its own pages.
const PLOTTED_PART_COUNT_MAX: usize = 10;

/// What was asked and what came of it, the article's claims beside it, plots of all servers, and links to the pages of
/// each part, which `link` finds by part and server.
pub fn study_html(study: &Study, link: &dyn Fn(&str, &str) -> String) -> String {
    let (input, subject) = (Input::of(study), &study.subject);
    let title = if subject.title.is_empty() { &subject.name } else { &subject.title };
    let mut page = format!("<h1><span>{}</span> {}.</h1>\n", escaped(title), escaped(&headline(&input)));
    add_warnings(&mut page, &warnings(&input));
    add_words(&mut page, &input);
    page.push_str("<h2>Figures</h2>\n");
    add_table(&mut page, &input, &Table::of_deeds(&input), link);
    page.push_str(LEGEND);
    let cost = Table::of_cost(&input);
    if !cost.head.is_empty() {
        page.push_str("<h2>What it cost the servers</h2>\n");
        add_table(&mut page, &input, &cost, link);
        page.push_str(COST_LEGEND);
    }
    page.push_str("<h2>Plots</h2>\n");
    plots(&input).iter().for_each(|figure| add_figure(&mut page, figure));
    page.push_str("<h2>Run it again</h2>\n<pre><code>peristyle bench repeat manifest.json</code></pre>\n");
    document(title, &page)
}

const LEGEND: &str = "<p class=\"legend\">An operation is what a user would call one: a batch, or a read-modify-write. \
    Times are response times of all kept repetitions added up; ± is half of the 95% confidence interval. Ratios are \
    those of the means of the repetitions, so that they have an interval too.</p>\n";

const COST_LEGEND: &str = "<p class=\"legend\">Of all nodes together, over what went well; memory is that at the end. \
    What servers read from disks is what their processes caused, not what the system’s cache gave them.</p>\n";

fn plots(input: &Input<'_>) -> Vec<Figure> {
    let mut figures = bars::figures(input);
    figures.extend(ladder::figure(input));
    if input.study.parts.len() <= PLOTTED_PART_COUNT_MAX {
        figures.extend(curves::figures(input));
        figures.extend(lines::figures(input));
    }
    figures
}

/// The article's claims beside what was seen, and what is different.
fn add_words(page: &mut String, input: &Input<'_>) {
    let subject = &input.study.subject;
    let seen = if input.study.parts.len() <= PLOTTED_PART_COUNT_MAX { seen(input) } else { Vec::new() };
    let lists = [("What the article says", &subject.claims), ("What was seen here", &seen)];
    page.push_str("<div class=\"beside\">\n");
    lists.iter().for_each(|(title, sentences)| add_list(page, title, sentences));
    page.push_str("</div>\n");
    add_list(page, "What is different here", &subject.scaled);
    add_source(page, subject);
}

fn add_list(page: &mut String, title: &str, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    page.push_str(&format!("<section>\n<h2>{title}</h2>\n<ul>\n"));
    sentences.iter().for_each(|sentence| page.push_str(&format!("<li>{}</li>\n", escaped(sentence))));
    page.push_str("</ul>\n</section>\n");
}

fn add_source(page: &mut String, subject: &Subject) {
    if !subject.source.is_empty() {
        page.push_str(&format!("<p class=\"legend\">Source: {}</p>\n", escaped(&subject.source)));
    }
    if let Some(price) = &subject.price {
        let words = format!("An hour of the servers costs ${:.3}: {}.", price.dollars_per_hour, price.words);
        page.push_str(&format!("<p class=\"legend\">{}</p>\n", escaped(&words)));
    }
}

/// Each part has a line with what it is about, above the lines of its servers.
fn add_table(page: &mut String, input: &Input<'_>, table: &Table, link: &dyn Fn(&str, &str) -> String) {
    let head: String = table.head.iter().map(|name| format!("<th>{}</th>", escaped(name))).collect();
    page.push_str(&format!(
        "<div class=\"wide\">\n<table class=\"figures\">\n<thead>\n<tr><th>server</th>{head}</tr>\n</thead>\n"
    ));
    let column_count = table.head.len() + 1;
    for (part_index, (part, _)) in input.study.parts.iter().enumerate() {
        let (name, about) = (escaped(&part.name), escaped(&part.about));
        page.push_str(&format!(
            "<tbody>\n<tr class=\"part\"><th colspan=\"{column_count}\">{name} <span>{about}</span></th></tr>\n"
        ));
        let rows = input.runs.iter().zip(&table.rows).filter(|(run, _)| run.part_index == part_index);
        rows.for_each(|(run, cells)| page.push_str(&row(run, cells, link)));
        page.push_str("</tbody>\n");
    }
    page.push_str("</table>\n</div>\n");
}

fn row(run: &Run<'_>, cells: &[super::table::Cell], link: &dyn Fn(&str, &str) -> String) -> String {
    let cell = |cell: &super::table::Cell| {
        let class = if cell.is_bad { " class=\"bad\"" } else { "" };
        format!("<td{class}>{}</td>", escaped(&cell.text))
    };
    let cells: String = cells.iter().map(cell).collect();
    let (href, server) = (escaped(&link(&run.part.name, run.server)), escaped(run.server));
    let class = run.class();
    format!("<tr><th><i class=\"swatch {class}\"></i><a href=\"{href}\">{server}</a></th>{cells}</tr>\n")
}
