//! Tables of figures: latencies by kind, what it cost, what went wrong, what happened.

use super::super::cost::Cost;
use super::super::plot::escaped;
use super::super::summary::{Figures, QUANTILES, Quantiles, Spread, Summary};
use super::super::words;
use crate::results::Results;

/// Rates and latencies by kind.
pub(super) fn figures(summary: &Summary) -> String {
    let mut table = "<h2>Figures</h2>\n<div class=\"wide\">\n<table class=\"figures\">\n<thead>\n".to_owned();
    let columns = QUANTILES.len() + 1;
    table.push_str(&format!(
        "<tr><th rowspan=\"2\">kind</th><th rowspan=\"2\">operations/s</th><th rowspan=\"2\">± 95%</th>\
         <th rowspan=\"2\">operations</th><th rowspan=\"2\">errors</th><th rowspan=\"2\">wrong</th>\
         <th colspan=\"{columns}\" class=\"group\">response time</th>\
         <th class=\"group\">service time</th></tr>\n<tr>"
    ));
    let names = QUANTILES.iter().map(|(name, _)| *name).chain(["max", "p99"]);
    names.for_each(|name| table.push_str(&format!("<th>{name}</th>")));
    table.push_str("</tr>\n</thead>\n<tbody>\n");
    let has_spread = summary.kept_count > 1;
    summary.rows().for_each(|figures| table.push_str(&row(figures, has_spread)));
    table.push_str("</tbody>\n</table>\n</div>\n");
    table.push_str(&legend(summary));
    table
}

fn row(figures: &Figures, has_spread: bool) -> String {
    let margin = figures.rate.margin.map_or_else(|| "–".to_owned(), words::figure);
    let failed = |count: u64| match count {
        0 => "<td>0</td>".to_owned(),
        _ => format!("<td class=\"bad\">{}</td>", words::count(count)),
    };
    let mut row = format!(
        "<tr><th>{}</th><td>{}</td><td>{margin}</td><td>{}</td>{}{}",
        escaped(&figures.kind),
        words::figure(figures.rate.mean),
        words::count(figures.count),
        failed(figures.error_count),
        failed(figures.wrong_count),
    );
    let Quantiles { spreads, max, .. } = &figures.response;
    for spread in spreads.iter().chain([max, &figures.service.p99()]) {
        row.push_str(&cell(*spread, figures.count, has_spread));
    }
    row.push_str("</tr>\n");
    row
}

fn cell(spread: Spread, count: u64, has_spread: bool) -> String {
    if count == 0 {
        return "<td>–</td>".to_owned();
    }
    let all = words::time(spread.all_us);
    match has_spread {
        true => format!("<td>{all}<small>{}</small></td>", words::times(spread.lowest_us, spread.highest_us)),
        false => format!("<td>{all}</td>"),
    }
}

fn legend(summary: &Summary) -> String {
    let mut text = "<p class=\"legend\">Operations that went well make the rate and have latencies; errors and wrong \
         answers are counted apart. Response time runs from when an operation was due, service time from when it was \
         begun."
        .to_owned();
    if summary.kept_count > 1 {
        text.push_str(
            " Percentiles are those of all kept repetitions added up; small figures are the lowest and the highest \
             that a repetition has by itself. ± is half of the 95% confidence interval of the mean (Student’s t).",
        );
    }
    text.push_str("</p>\n");
    text
}

/// What operations took of the machines.
pub(super) fn cost(summary: &Summary) -> String {
    let cost = &summary.cost;
    let unknown = || "not known".to_owned();
    let us = |us: Option<f64>| us.map_or_else(unknown, |us| format!("{} µs", words::figure(us)));
    let row = |name: &str, figure: String| (name.to_owned(), figure);
    let mut rows = vec![
        row("client CPU per operation", us(cost.client_cpu_us)),
        row("server CPU per operation, all nodes", us(cost.server_cpu_us)),
        row(
            "server memory at the end, all nodes",
            cost.server_resident_bytes.map_or_else(unknown, words::bytes),
        ),
        row("operations without an end", words::count(summary.endless_count)),
    ];
    if summary.asked_again_count > 0 {
        rows.push(row("requests of which a second node was asked", words::count(summary.asked_again_count)));
    }
    rows.extend(disks_and_caches(cost));
    let mut list = "<dl class=\"cost\">\n".to_owned();
    for (name, figure) in rows {
        list.push_str(&format!("<div><dt>{}</dt><dd>{figure}</dd></div>\n", escaped(&name)));
    }
    list.push_str("</dl>\n");
    list
}

/// What is told only where it is known.
fn disks_and_caches(cost: &Cost) -> Vec<(String, String)> {
    let bytes = |name: &str, each: Option<f64>| {
        each.map(|bytes| (format!("{name} per operation"), words::bytes(bytes.round() as u64)))
    };
    let mut rows: Vec<(String, String)> = [
        bytes("answers", cost.received_bytes),
        bytes("read from disks", cost.disk_read_bytes),
        bytes("written to disks", cost.disk_written_bytes),
        cost.read_amplification.map(|times| {
            ("read from disks for each byte answered".to_owned(), format!("{} bytes", words::figure(times)))
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let hits =
        |cache: &String| Some((format!("hits of cache {cache}"), words::percent(cost.hit_part(cache)?)));
    rows.extend(cost.caches.keys().filter_map(hits));
    rows
}

/// What errors said, and what was wrong about answers.
pub(super) fn messages(summary: &Summary) -> String {
    let all = [("error", &summary.errors), ("wrong answer", &summary.wrongs)];
    let rows: String = all
        .into_iter()
        .flat_map(|(what, messages)| messages.iter().map(move |(message, count)| (what, message, count)))
        .map(|(what, message, count)| {
            let (message, count) = (escaped(message), words::count(*count));
            format!("<tr><td class=\"number\">{count}</td><td>{what}</td><td>{message}</td></tr>\n")
        })
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "<h2>What went wrong</h2>\n<div class=\"wide\">\n<table>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
        ),
    }
}

/// Everything that happened, with the numbers that the plots have.
pub(super) fn events(results: &Results) -> String {
    let mut rows = String::new();
    let mut number = 0;
    for (index, repetition) in results.repetitions.iter().enumerate() {
        let mut events: Vec<_> = repetition.events.iter().collect();
        events.sort_by(|left, right| left.at_s.total_cmp(&right.at_s));
        for event in events {
            number += 1;
            let (repetition, at_s, text) = (index + 1, event.at_s, escaped(&event.text));
            rows.push_str(&format!(
                "<tr><td class=\"number\">{number}</td><td class=\"number\">{repetition}</td>\
                 <td class=\"number\">{at_s:.1} s</td><td>{text}</td></tr>\n"
            ));
        }
    }
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "<h2>Events</h2>\n<div class=\"wide\">\n<table>\n<thead>\n<tr><th>number</th><th>repetition</th>\
             <th>at</th><th>what</th></tr>\n</thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::{example, flat};

    #[test]
    fn a_table_tells_the_summary() {
        let summary = Summary::of(&flat(&[(100, 100), (300, 900)]));
        let table = figures(&summary);
        assert!(
            table.contains("<th>read</th><td>200</td><td>1,271</td><td>400</td><td>0</td><td>0</td>"),
            "{table}"
        );
        assert!(table.contains("<td>900 µs<small>100–900 µs</small></td>"));
        assert!(!figures(&Summary::of(&flat(&[(100, 100)]))).contains("<small>"));
    }

    #[test]
    fn disks_and_caches_are_told_of_where_they_are_known() {
        let mut results = flat(&[(100, 100)]);
        assert!(!cost(&Summary::of(&results)).contains("disks"));
        results.repetitions[0].received_bytes = 100 << 10;
        results.repetitions[0].server_disk_bytes = Some((400 << 10, 0));
        results.repetitions[0].caches.insert("<chunks>".to_owned(), (3, 4));
        results.repetitions[0].asked_again_count = 1234;
        let list = cost(&Summary::of(&results));
        for row in [
            "<dt>read from disks per operation</dt><dd>4.00 KiB</dd>",
            "<dt>read from disks for each byte answered</dt><dd>4.00 bytes</dd>",
            "<dt>hits of cache &lt;chunks&gt;</dt><dd>75.0%</dd>",
            "<dt>requests of which a second node was asked</dt><dd>1,234</dd>",
        ] {
            assert!(list.contains(row), "{list}");
        }
    }

    #[test]
    fn events_have_the_numbers_of_the_plots() {
        let table = events(&example());
        assert!(table.contains(
            "<td class=\"number\">3</td><td class=\"number\">3</td><td class=\"number\">15.4 s</td>"
        ));
        assert!(events(&flat(&[(1, 1)])).is_empty());
    }
}
