//! What places have of one row, gathered to be merged.

use std::borrow::Borrow;

use schema::Table;
use smallvec::SmallVec;

use crate::{DeletionTime, Row, merge_row, merge_rows};

/// Versions of one row, held or where they lie, under the deletion that is in force there.
#[derive(Clone, Debug)]
pub struct RowVersions<R = Row> {
    /// Of the partition, or of a range that covers the row: the latest.
    pub deletion: DeletionTime,
    /// Each place's version.
    pub rows: SmallVec<[R; 4]>,
}

impl<R: Borrow<Row>> RowVersions<R> {
    /// Of no place yet.
    #[inline]
    pub fn none() -> Self {
        RowVersions { deletion: DeletionTime::LIVE, rows: SmallVec::new() }
    }

    /// Adds what one place has.
    #[inline]
    pub fn add(&mut self, deletion: DeletionTime, row: Option<R>) {
        self.deletion = self.deletion.max(deletion);
        self.rows.extend(row);
    }

    /// The row they make; `None` when nothing is left of it. `hold` takes a version that stands alone, for keeping.
    #[inline]
    pub fn merge_by(mut self, table: &Table, hold: impl FnOnce(R) -> Row) -> Option<Row> {
        match self.rows.len() {
            1 => merge_row(hold(self.rows.pop()?), self.deletion),
            _ => merge_rows(&self.rows, self.deletion, table),
        }
    }
}

impl RowVersions {
    /// Is any of them a large row?
    #[inline]
    pub fn has_large(&self) -> bool {
        self.rows.iter().any(Row::is_large)
    }

    /// The row they make; `None` when nothing is left of it.
    ///
    /// If it [has large](RowVersions::has_large) ones that takes about 10 ms for each MiB of collections.
    #[inline]
    pub fn merge(self, table: &Table) -> Option<Row> {
        self.merge_by(table, |row| row)
    }
}
