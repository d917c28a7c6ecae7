//! What of a row a client sees: what lives, of the columns asked for.

use rows::{ColumnData, LiveRows, Row, RowBuilder};
use schema::{ColumnId, Table};

use crate::{ReadColumns, ReadCommand};

impl ReadCommand {
    /// What is live at its moment.
    pub fn live_rows(&self) -> LiveRows {
        live_rows(self.now, &self.table)
    }
}

/// What is live of a table at a moment, in seconds since 1970.
pub fn live_rows(now: u32, table: &Table) -> LiveRows {
    LiveRows { now, gc_before: now.saturating_sub(table.options().gc_grace_seconds) }
}

/// What of a live row was asked for: columns that the table still has.
#[inline]
pub(crate) fn shown(row: Row, table: &Table, columns: &ReadColumns) -> Option<Row> {
    let row = of_table(row, table)?;
    // To cut a small row costs more than to have all of it.
    let is_whole = *columns == ReadColumns::All || row.is_small();
    Some(if is_whole { row } else { cut(&row, |id| columns.contains(id)) })
}

/// The row without columns that the table no longer has; `None` when nothing is left.
#[inline]
pub(crate) fn of_table(row: Row, table: &Table) -> Option<Row> {
    if table.dropped_columns().is_empty() {
        return Some(row);
    }
    let is_there = |id| table.column_by_id(id).is_some();
    Some(cut(&row, is_there)).filter(|kept| !kept.is_empty())
}

/// The row with cells of some columns only.
fn cut(row: &Row, is_kept: impl Fn(ColumnId) -> bool) -> Row {
    let mut builder = RowBuilder::part_of(row, row.liveness(), row.deletion());
    for column in row.columns().filter(|column| is_kept(column.id)) {
        match column.data {
            ColumnData::Simple(cell) => _ = builder.cell(column.id, cell),
            ColumnData::Complex(complex) => _ = builder.complex(column.id, complex.deletion, complex.cells()),
        }
    }
    builder.finish()
}
