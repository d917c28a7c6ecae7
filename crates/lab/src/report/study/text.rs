//! A study for a terminal.

use super::super::text::{aligned, one_line};
use super::input::Input;
use super::said::{headline, warnings};
use super::table::Table;
use crate::study::Study;

/// What came of it, tables of all parts and servers, and what to be warned of.
pub fn study_text(study: &Study) -> String {
    let input = Input::of(study);
    let mut text = format!("{}.\n", one_line(&headline(&input)));
    for table in [Table::of_deeds(&input), Table::of_cost(&input)] {
        if !table.head.is_empty() {
            text.push_str(&format!("\n{}", aligned(&rows(&input, table), 2)));
        }
    }
    let warnings = warnings(&input);
    if !warnings.is_empty() {
        text.push('\n');
    }
    for warning in warnings {
        text.push_str(&format!("warning: {}\n", one_line(&warning)));
    }
    text
}

fn rows(input: &Input<'_>, table: Table) -> Vec<Vec<String>> {
    let mut rows = vec![["part", "server"].map(str::to_owned).to_vec()];
    rows[0].extend(table.head.iter().map(|name| one_line(name)));
    for (run, cells) in input.runs.iter().zip(table.rows) {
        let mut row = vec![one_line(&run.part.name), one_line(run.server)];
        row.extend(cells.into_iter().map(|cell| cell.text));
        rows.push(row);
    }
    rows
}
