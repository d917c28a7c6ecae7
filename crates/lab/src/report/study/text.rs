//! A study for a terminal.

use super::super::text::{aligned, one_line};
use super::table::Table;
use super::warnings;
use crate::study::Study;

/// The table of all parts and servers, and what each server is to be warned of.
pub fn study_text(study: &Study) -> String {
    let table = Table::of(study);
    let mut rows = vec![["part", "server"].map(str::to_owned).to_vec()];
    rows[0].extend(table.head);
    for row in table.rows {
        let mut cells = vec![one_line(&row.part), one_line(&row.server)];
        cells.extend(row.cells);
        rows.push(cells);
    }
    let mut text = aligned(&rows, 2);
    for warning in warnings(study) {
        text.push_str(&format!("warning: {}\n", one_line(&warning)));
    }
    text
}
