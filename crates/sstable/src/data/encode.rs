//! Rows and markers to bytes.
//!
//! Cells come in the order of column ids and go in the file's order, so each column is first
//! written into a buffer of its own run; the runs are put in order at the end. All buffers are
//! kept from row to row.

use rows::{
    CellRef, ColumnData, DeletionTime, EncodingStats, Liveness, Marker, NO_DELETION_TIME, Row, context,
};
use stdx::vint;

use super::clustering::{marker_kind, write_components};
use super::layout::{Columns, Layout};
use super::{RelativeTimes, flags, write_value};

/// Hears of what is written: statistics do.
pub(crate) trait RowObserver {
    /// A liveness that is one.
    fn liveness(&mut self, liveness: Liveness);
    /// A deletion that is one.
    fn deletion(&mut self, deletion: DeletionTime);
    /// A cell.
    fn cell(&mut self, cell: &CellRef<'_>);
    /// So many cells whose times are those of the row's liveness, which was told before or will be.
    fn cells_as_old_as_row(&mut self, count: u64);
    /// The end of a row that has so many columns with cells.
    fn row_end(&mut self, column_count: u64);
}

/// Writes rows and markers.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    /// Cells in the order of column ids.
    cells: Vec<u8>,
    /// Where in `cells` each column is, by its place in the file.
    runs: Vec<(u16, u32, u32)>,
    /// Are the columns in the file's order as they lie in `cells`?
    in_order: bool,
    /// What stands before the cells.
    body: Vec<u8>,
    /// The value of a counter's cell.
    context: Vec<u8>,
}

impl Encoder {
    /// Appends a row, or a static row. `previous_bytes`: of the item before.
    pub(crate) fn row(
        &mut self,
        layout: &Layout,
        row: &Row,
        is_static: bool,
        previous_bytes: u64,
        observer: &mut impl RowObserver,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        let columns = layout.columns(is_static);
        let liveness = row.liveness();
        let has_complex_deletion = columns.has_complex && has_complex_deletion(row, columns);
        let present = self.cells(&layout.stats, columns, row, liveness, has_complex_deletion, observer)?;
        assert!(present <= columns.list.len(), "a row has no column twice");
        let mut row_flags = 0;
        self.body.clear();
        vint::write_unsigned(previous_bytes, &mut self.body);
        if !liveness.is_none() {
            row_flags |= flags::TIMESTAMP;
            layout.stats.write_timestamp(liveness.timestamp, &mut self.body);
            if liveness.is_expiring() {
                row_flags |= flags::TTL;
                layout.stats.write_ttl(liveness.ttl, &mut self.body);
                layout.stats.write_local_deletion_time(liveness.local_expiration_time, &mut self.body);
            }
            observer.liveness(liveness);
        }
        let deletion = row.deletion();
        if !deletion.is_live() {
            row_flags |= flags::DELETION;
            layout.stats.write_deletion(deletion, &mut self.body);
            observer.deletion(deletion);
        }
        if has_complex_deletion {
            row_flags |= flags::COMPLEX_DELETION;
        }
        if present == columns.list.len() {
            row_flags |= flags::ALL_COLUMNS;
        } else {
            self.subset(columns.list.len());
        }
        if is_static {
            out.extend_from_slice(&[row_flags | flags::EXTENSION, flags::EXTENDED_STATIC]);
        } else {
            out.push(row_flags);
            write_components(&layout.clustering, row.clustering_components(), out)?;
        }
        vint::write_unsigned((self.body.len() + self.cells.len()) as u64, out);
        out.extend_from_slice(&self.body);
        if self.in_order {
            out.extend_from_slice(&self.cells);
            return Ok(());
        }
        let before = out.len();
        for (_, start, end) in &self.runs {
            out.extend_from_slice(&self.cells[*start as usize..*end as usize]);
        }
        assert_eq!(out.len() - before, self.cells.len(), "cells are put in order, and all of them");
        Ok(())
    }

    /// Writes the cells of all columns into runs, in the file's order; gives the count of columns.
    fn cells(
        &mut self,
        stats: &EncodingStats,
        columns: &Columns,
        row: &Row,
        liveness: Liveness,
        has_complex_deletion: bool,
        observer: &mut impl RowObserver,
    ) -> Result<usize, &'static str> {
        self.cells.clear();
        self.runs.clear();
        self.in_order = true;
        let mut column_count = 0;
        let mut as_old_as_row = 0;
        for column in row.columns() {
            // A column that was dropped since the row was written.
            let Some(slot) = columns.slot(column.id) else { continue };
            let file_column = &columns.list[usize::from(slot)];
            let start = self.cells.len();
            match column.data {
                ColumnData::Simple(cell) => {
                    if file_column.is_complex || file_column.is_counter {
                        return Err("one cell for a column of several");
                    }
                    if is_usual(liveness, &cell) {
                        self.cells.push(flags::CELL_ROW_TIMESTAMP);
                        write_value(file_column.fixed_bytes, cell.value, &mut self.cells)?;
                        as_old_as_row += 1;
                    } else {
                        write_cell(stats, liveness, &cell, file_column.fixed_bytes, false, &mut self.cells)?;
                        observer.cell(&cell);
                    }
                    column_count += 1;
                }
                ColumnData::Complex(shares) if file_column.is_counter => {
                    let cell = context::write(shares, &mut self.context)?;
                    write_cell(stats, liveness, &cell, None, false, &mut self.cells)?;
                    observer.cell(&cell);
                    column_count += 1;
                }
                ColumnData::Complex(complex) => {
                    if !file_column.is_complex {
                        return Err("several cells for a simple column");
                    }
                    if has_complex_deletion {
                        stats.write_deletion(complex.deletion, &mut self.cells);
                    }
                    if !complex.deletion.is_live() {
                        observer.deletion(complex.deletion);
                    }
                    let count = complex.cells().count();
                    vint::write_unsigned(count as u64, &mut self.cells);
                    for cell in complex.cells() {
                        write_cell(stats, liveness, &cell, None, true, &mut self.cells)?;
                        observer.cell(&cell);
                    }
                    column_count += u64::from(count > 0);
                }
            }
            self.in_order &= self.runs.last().is_none_or(|(last, ..)| *last < slot);
            let end = u32::try_from(self.cells.len()).map_err(|_| "a row of more than 4 GiB")?;
            self.runs.push((slot, start as u32, end));
        }
        if !self.in_order {
            self.runs.sort_unstable();
        }
        observer.cells_as_old_as_row(as_old_as_row);
        observer.row_end(column_count);
        Ok(self.runs.len())
    }

    /// Appends to the body which columns of the file the row has.
    fn subset(&mut self, total: usize) {
        let present = self.runs.len();
        if total < 64 {
            let all = (1u64 << total) - 1;
            let missing = self.runs.iter().fold(all, |missing, (slot, ..)| missing & !(1 << slot));
            vint::write_unsigned(missing, &mut self.body);
            return;
        }
        vint::write_unsigned((total - present) as u64, &mut self.body);
        if present < total / 2 {
            for (slot, ..) in &self.runs {
                vint::write_unsigned(u64::from(*slot), &mut self.body);
            }
            return;
        }
        let mut runs = self.runs.iter().map(|(slot, ..)| usize::from(*slot)).peekable();
        for slot in 0..total {
            if runs.next_if_eq(&slot).is_none() {
                vint::write_unsigned(slot as u64, &mut self.body);
            }
        }
    }

    /// Appends a marker.
    pub(crate) fn marker(
        &mut self,
        layout: &Layout,
        marker: &Marker,
        previous_bytes: u64,
        observer: &mut impl RowObserver,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        let sides = [marker.left, marker.right];
        if sides.iter().all(|deletion| deletion.is_live()) {
            return Err("a marker that neither ends nor starts a deletion");
        }
        out.extend_from_slice(&[flags::MARKER, marker_kind(marker)]);
        let count = marker.prefix.components().count();
        out.extend_from_slice(&(count as u16).to_be_bytes());
        write_components(&layout.clustering, marker.prefix.components(), out)?;
        self.body.clear();
        vint::write_unsigned(previous_bytes, &mut self.body);
        for deletion in sides.into_iter().filter(|deletion| !deletion.is_live()) {
            layout.stats.write_deletion(deletion, &mut self.body);
            observer.deletion(deletion);
        }
        vint::write_unsigned(self.body.len() as u64, out);
        out.extend_from_slice(&self.body);
        Ok(())
    }
}

fn has_complex_deletion(row: &Row, columns: &Columns) -> bool {
    let is_complex = |id| columns.slot(id).is_some_and(|slot| columns.list[usize::from(slot)].is_complex);
    row.columns().any(|column| match column.data {
        ColumnData::Complex(complex) => !complex.deletion.is_live() && is_complex(column.id),
        ColumnData::Simple(_) => false,
    })
}

/// What most cells are: written with a row that stays, to stay, and not empty.
#[inline]
fn is_usual(liveness: Liveness, cell: &CellRef<'_>) -> bool {
    !liveness.is_none()
        && !liveness.is_expiring()
        && cell.timestamp == liveness.timestamp
        && cell.local_deletion_time == NO_DELETION_TIME
        && cell.ttl == 0
        && !cell.value.is_empty()
}

fn write_cell(
    stats: &EncodingStats,
    liveness: Liveness,
    cell: &CellRef<'_>,
    fixed: Option<usize>,
    has_path: bool,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let uses_row_timestamp = !liveness.is_none() && cell.timestamp == liveness.timestamp;
    let uses_row_ttl = cell.is_expiring()
        && cell.ttl == liveness.ttl
        && cell.local_deletion_time == liveness.local_expiration_time;
    let mut cell_flags = if cell.is_tombstone() {
        flags::CELL_DELETED
    } else if cell.is_expiring() {
        flags::CELL_EXPIRING
    } else {
        0
    };
    if cell.value.is_empty() {
        cell_flags |= flags::CELL_EMPTY;
    }
    if uses_row_timestamp {
        cell_flags |= flags::CELL_ROW_TIMESTAMP;
    }
    if uses_row_ttl {
        cell_flags |= flags::CELL_ROW_TTL;
    }
    out.push(cell_flags);
    if !uses_row_timestamp {
        stats.write_timestamp(cell.timestamp, out);
    }
    if cell_flags & (flags::CELL_DELETED | flags::CELL_EXPIRING) != 0 && !uses_row_ttl {
        stats.write_local_deletion_time(cell.local_deletion_time, out);
    }
    if cell.is_expiring() && !uses_row_ttl {
        stats.write_ttl(cell.ttl, out);
    }
    if has_path {
        write_value(None, cell.path, out)?;
    }
    if !cell.value.is_empty() {
        write_value(fixed, cell.value, out)?;
    }
    Ok(())
}

/// Hears nothing: for the static row that a partition must have and has not.
pub(crate) struct Unobserved;

impl RowObserver for Unobserved {
    fn liveness(&mut self, _: Liveness) {}
    fn deletion(&mut self, _: DeletionTime) {}
    fn cell(&mut self, _: &CellRef<'_>) {}
    fn cells_as_old_as_row(&mut self, _: u64) {}
    fn row_end(&mut self, _: u64) {}
}
