//! The summary for a terminal.

use super::headline::headline;
use super::summary::{Figures, QUANTILES, Summary};
use super::words;
use crate::results::Results;

/// A sentence, a table by kind over all kept repetitions, what it cost, and what to be warned of.
pub fn text(results: &Results) -> String {
    let summary = Summary::of(results);
    let mut text = format!("{}\n\n{}\n", headline(results, &summary), table(&summary));
    text.push_str(&cost(&summary));
    for (title, messages) in [("errors", &summary.errors), ("wrong answers", &summary.wrongs)] {
        for (index, (message, count)) in messages.iter().enumerate() {
            let head = if index == 0 { format!("\n{title}:\n") } else { String::new() };
            text.push_str(&format!("{head}  {} x {}\n", words::count(*count), one_line(message)));
        }
    }
    if !summary.warnings.is_empty() {
        text.push('\n');
    }
    for warning in &summary.warnings {
        text.push_str(&format!("warning: {}\n", one_line(warning)));
    }
    text
}

fn table(summary: &Summary) -> String {
    let mut rows = vec![head()];
    rows.extend(summary.rows().map(row));
    aligned(&rows, 1)
}

/// Columns as wide as their widest cell: first some of names, to the left, then figures, to the right.
pub(super) fn aligned(rows: &[Vec<String>], name_count: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut table = String::new();
    for row in rows {
        let cells =
            row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column < name_count {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
        table.push_str(cells.collect::<Vec<String>>().join("  ").trim_end());
        table.push('\n');
    }
    table
}

fn head() -> Vec<String> {
    let mut head = ["kind", "operations/s", "±95%", "errors", "wrong"].map(str::to_owned).to_vec();
    head.extend(QUANTILES.iter().map(|(name, _)| (*name).to_owned()));
    head.extend(["max".to_owned(), "service p99".to_owned()]);
    head
}

fn row(figures: &Figures) -> Vec<String> {
    let time = |us: u64| if figures.count == 0 { "-".to_owned() } else { words::time(us) };
    let mut row = vec![
        one_line(&figures.kind),
        words::figure(figures.rate.mean),
        figures.rate.margin.map_or_else(|| "-".to_owned(), words::figure),
        words::count(figures.error_count),
        words::count(figures.wrong_count),
    ];
    row.extend(figures.response.spreads.iter().map(|spread| time(spread.all_us)));
    row.extend([time(figures.response.max.all_us), time(figures.service.p99().all_us)]);
    row
}

fn cost(summary: &Summary) -> String {
    let mut parts = vec![format!("{} kept", words::several(summary.kept_count as u64, "repetition"))];
    if summary.dropped_count > 0 {
        parts.push(format!("{} dropped", words::count(summary.dropped_count as u64)));
    }
    if summary.asked_again_count > 0 {
        parts
            .push(format!("{} asked of a second node", words::several(summary.asked_again_count, "request")));
    }
    let cost = &summary.cost;
    let each = |who: &str, us: f64| format!("{who} CPU {} µs per operation", words::figure(us));
    parts.extend(cost.client_cpu_us.map(|us| each("client", us)));
    parts.extend(cost.server_cpu_us.map(|us| each("server", us)));
    parts.extend(cost.server_resident_bytes.map(|bytes| format!("server memory {}", words::bytes(bytes))));
    parts.extend(
        cost.disk_read_bytes
            .map(|bytes| format!("{} read from disks per operation", words::bytes(bytes as u64))),
    );
    format!("{}\n", parts.join("; "))
}

/// Names and messages come from outside: a control character among them must not reach a terminal.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::{empty, example};

    #[test]
    fn a_table_has_a_line_for_each_kind_and_its_columns_stand_in_line() {
        let text = text(&example());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("ycsb-b on 3 nodes"));
        let rows = &lines[2..6];
        let kinds: Vec<&str> = rows.iter().filter_map(|row| row.split("  ").next()).collect();
        assert_eq!(kinds, ["kind", "read", "update", "all"]);
        assert!(rows.iter().all(|row| row.chars().count() == rows[0].chars().count()), "{text}");
        assert!(
            text.contains("3 repetitions kept; 1 dropped; 1,234 requests asked of a second node; client CPU")
        );
        assert!(text.contains("  10 x <timeout> & no answer\n"));
        assert!(lines.last().unwrap().starts_with("warning: "));
    }

    #[test]
    fn nothing_has_no_latencies() {
        let mut results = empty();
        results.warnings.push("\u{1b}[2J".to_owned());
        let text = text(&results);
        assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains('\u{1b}'), "{text}");
        assert!(text.contains(" -  "));
    }
}
