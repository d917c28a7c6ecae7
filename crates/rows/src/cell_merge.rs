//! Versions of one row merged where they lie: the newest cell of each column is remembered by where it is.
//!
//! ```text
//!   memtables ── encoded rows ──┐
//!                               ├─► of each column the cell that wins ─► values in place, or a row put together
//!   files ────── rows unread ───┘
//! ```
//!
//! To merge rows two by two is to put together a row for each version after the first. This knows single cells of
//! columns with small ids, as most tables have; what else there is, [`crate::merge_rows`] merges two by two.

use schema::ColumnId;
use smallvec::SmallVec;

use crate::{CellRef, ColumnData, DeletionTime, Liveness, Row, RowBuilder, ValuesInPlace};

/// Columns are found by their ids. A table with ids from here on is left to others.
const COLUMN_ID_END: usize = 64;
const _: () = assert!(COLUMN_ID_END <= u16::MAX as usize, "an index is a column's id");

/// What versions of one row have come to.
#[derive(Debug)]
pub struct CellMerge<'a> {
    /// Of its partition, or of a range that covers it.
    active: DeletionTime,
    liveness: Liveness,
    deletion: DeletionTime,
    /// By column id.
    cells: SmallVec<[Option<CellRef<'a>>; 16]>,
    /// Is it of no use when anything was deleted or expires?
    is_of_values: bool,
}

impl Default for CellMerge<'_> {
    fn default() -> Self {
        let (liveness, deletion) = (Liveness::NONE, DeletionTime::LIVE);
        CellMerge { active: deletion, liveness, deletion, cells: SmallVec::new(), is_of_values: false }
    }
}

impl<'a> CellMerge<'a> {
    /// One whose [values](CellMerge::values) are wanted: what was deleted or expires makes it of no use.
    pub fn of_values() -> Self {
        CellMerge { is_of_values: true, ..CellMerge::default() }
    }

    /// Adds a deletion of the partition, or of a range that covers the row. `None` when the merge is of no use.
    pub fn add_active(&mut self, active: DeletionTime) -> Option<()> {
        if self.is_of_values && !active.is_live() {
            return None;
        }
        self.active = self.active.max(active);
        Some(())
    }

    /// The latest of those deletions, or live.
    pub fn active(&self) -> DeletionTime {
        self.active
    }

    /// Adds what a version says of the row itself. `None` when the merge is of no use.
    pub fn add_row(&mut self, liveness: Liveness, deletion: DeletionTime) -> Option<()> {
        if self.is_of_values && (liveness.is_expiring() || !deletion.is_live()) {
            return None;
        }
        self.liveness = self.liveness.max(liveness);
        self.deletion = self.deletion.max(deletion);
        Some(())
    }

    /// Adds a cell of a version. `None` when the merge is of no use, also because there may be too many columns.
    #[inline]
    pub fn add_cell(&mut self, id: ColumnId, cell: CellRef<'a>) -> Option<()> {
        let index = usize::from(id.0);
        if self.is_of_values && cell.ends() {
            return None;
        }
        if index >= self.cells.len() {
            if index >= COLUMN_ID_END {
                return None;
            }
            self.cells.resize(index + 1, None);
        }
        let kept = &mut self.cells[index];
        *kept = Some(kept.map_or(cell, |kept| kept.reconcile(cell)));
        Some(())
    }

    /// Adds an encoded version. `None` when it has more than single cells: the merge is of no use then.
    pub fn add_encoded(&mut self, row: &'a Row) -> Option<()> {
        self.add_row(row.liveness(), row.deletion())?;
        for column in row.columns() {
            let ColumnData::Simple(cell) = column.data else { return None };
            self.add_cell(column.id, cell)?;
        }
        Some(())
    }

    /// The values of the row where they lie; `None` when there is no row. They are all that is to be said of it.
    ///
    /// # Panics
    /// When it is not a merge [of values](CellMerge::of_values).
    pub fn values(&self) -> Option<ValuesInPlace<'a>> {
        assert!(self.is_of_values, "something may be deleted or expire");
        let values: ValuesInPlace<'a> = self.kept().map(|(id, cell)| (id, cell.value)).collect();
        (!values.is_empty() || !self.liveness.is_none()).then_some(values)
    }

    /// The row that the versions make, as [`crate::merge_rows`] says: put together in `memory`, not yet finished.
    pub fn build(&self, clustering: &[u8], memory: Vec<u8>) -> RowBuilder {
        let deletion = if self.deletion.supersedes(self.active) { self.deletion } else { DeletionTime::LIVE };
        let all = self.active.max(self.deletion);
        let liveness = if all.deletes(self.liveness.timestamp) { Liveness::NONE } else { self.liveness };
        let mut builder = RowBuilder::reusing(memory, clustering, liveness, deletion);
        for (id, cell) in self.kept().filter(|(_, cell)| !all.deletes(cell.timestamp)) {
            builder.cell(id, cell);
        }
        builder
    }

    fn kept(&self) -> impl Iterator<Item = (ColumnId, CellRef<'a>)> {
        (0..).zip(&self.cells).filter_map(|(id, cell)| Some((ColumnId(id), (*cell)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clustering;

    fn row(liveness: Liveness, cells: &[(u16, CellRef<'_>)]) -> Row {
        let mut builder = RowBuilder::new(&Clustering::EMPTY, liveness, DeletionTime::LIVE);
        cells.iter().for_each(|(id, cell)| _ = builder.cell(ColumnId(*id), *cell));
        builder.finish()
    }

    #[test]
    fn the_newest_value_of_each_column_is_shown_where_it_lies() {
        let inserted = row(Liveness::at(1), &[(1, CellRef::live(1, b"a")), (2, CellRef::live(1, b"b"))]);
        let updated = row(Liveness::NONE, &[(2, CellRef::live(2, b"c")), (4, CellRef::live(2, b"d"))]);
        let mut merge = CellMerge::of_values();
        assert_eq!((merge.add_encoded(&updated), merge.add_encoded(&inserted)), (Some(()), Some(())));
        let expected: [(ColumnId, &[u8]); 3] =
            [(ColumnId(1), b"a"), (ColumnId(2), b"c"), (ColumnId(4), b"d")];
        assert_eq!(merge.values().as_deref(), Some(&expected[..]));
    }

    #[test]
    fn what_was_deleted_or_expires_is_more_than_values() {
        let alive = CellRef::live(1, b"a");
        let cases = [
            row(Liveness::expiring(2, 9, 99), &[(1, alive)]),
            row(Liveness::at(1), &[(1, CellRef::tombstone(2, 99))]),
            row(Liveness::at(1), &[(2, CellRef::expiring(2, 9, 99, b"b"))]),
        ];
        for case in cases {
            assert_eq!(CellMerge::default().add_encoded(&case), Some(()));
            assert_eq!(CellMerge::of_values().add_encoded(&case), None, "{case:?}");
        }
        let deleted = DeletionTime { timestamp: 0, local_deletion_time: 9 };
        assert_eq!(CellMerge::of_values().add_row(Liveness::at(1), deleted), None);
        assert_eq!(CellMerge::of_values().add_active(deleted), None);
        let nothing = row(Liveness::NONE, &[]);
        let mut merge = CellMerge::of_values();
        assert_eq!((merge.add_encoded(&nothing), merge.values()), (Some(()), None), "no row");
    }

    #[test]
    fn a_column_of_a_great_id_is_left_to_others() {
        let mut merge = CellMerge::default();
        assert_eq!(merge.add_cell(ColumnId(63), CellRef::live(1, b"")), Some(()));
        assert_eq!(merge.add_cell(ColumnId(64), CellRef::live(1, b"")), None);
    }
}
