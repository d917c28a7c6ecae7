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

/// Columns are found by their ids, so that there must not be many.
const COLUMN_COUNT_MAX: usize = 64;

/// What versions of one row have come to.
#[derive(Debug)]
pub struct CellMerge<'a> {
    liveness: Liveness,
    deletion: DeletionTime,
    /// By column id.
    cells: SmallVec<[Option<CellRef<'a>>; 16]>,
}

impl Default for CellMerge<'_> {
    fn default() -> Self {
        CellMerge { liveness: Liveness::NONE, deletion: DeletionTime::LIVE, cells: SmallVec::new() }
    }
}

impl<'a> CellMerge<'a> {
    /// Adds what a version says of the row itself.
    pub fn row(&mut self, liveness: Liveness, deletion: DeletionTime) {
        self.liveness = self.liveness.max(liveness);
        self.deletion = self.deletion.max(deletion);
    }

    /// Adds a cell of a version. `None` when there may be too many columns: the merge is of no use then.
    #[inline]
    pub fn cell(&mut self, id: ColumnId, cell: CellRef<'a>) -> Option<()> {
        let index = usize::from(id.0);
        if index >= self.cells.len() {
            if index >= COLUMN_COUNT_MAX {
                return None;
            }
            self.cells.resize(index + 1, None);
        }
        let kept = &mut self.cells[index];
        *kept = Some(kept.map_or(cell, |kept| kept.reconcile(cell)));
        Some(())
    }

    /// Adds an encoded version. `None` when it has more than single cells: the merge is of no use then.
    pub fn encoded(&mut self, row: &'a Row) -> Option<()> {
        self.row(row.liveness(), row.deletion());
        for column in row.columns() {
            let ColumnData::Simple(cell) = column.data else { return None };
            self.cell(column.id, cell)?;
        }
        Some(())
    }

    /// The values of the row where they lie, if they are all that is to be said of it: nothing was deleted, nothing
    /// expires, and there is a row.
    pub fn values(&self) -> Option<ValuesInPlace<'a>> {
        if !self.deletion.is_live() || self.liveness.is_expiring() {
            return None;
        }
        let mut values = ValuesInPlace::new();
        for (id, cell) in self.kept() {
            if cell.ends() {
                return None;
            }
            values.push((id, cell.value));
        }
        (!values.is_empty() || !self.liveness.is_none()).then_some(values)
    }

    /// The row that the versions make under an `active` deletion of its partition or of a range, as
    /// [`crate::merge_rows`] says: put together in `memory`, not yet finished.
    pub fn build(&self, clustering: &[u8], active: DeletionTime, memory: Vec<u8>) -> RowBuilder {
        let deletion = if self.deletion.supersedes(active) { self.deletion } else { DeletionTime::LIVE };
        let all = active.max(self.deletion);
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
        let mut merge = CellMerge::default();
        assert_eq!((merge.encoded(&updated), merge.encoded(&inserted)), (Some(()), Some(())));
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
            row(Liveness::NONE, &[]),
        ];
        for case in cases {
            let mut merge = CellMerge::default();
            assert_eq!(merge.encoded(&case), Some(()));
            assert_eq!(merge.values(), None, "{case:?}");
        }
        let mut merge = CellMerge::default();
        merge.row(Liveness::at(1), DeletionTime { timestamp: 0, local_deletion_time: 9 });
        assert_eq!(merge.values(), None);
    }

    #[test]
    fn a_column_of_a_great_id_is_left_to_others() {
        let mut merge = CellMerge::default();
        assert_eq!(merge.cell(ColumnId(63), CellRef::live(1, b"")), Some(()));
        assert_eq!(merge.cell(ColumnId(64), CellRef::live(1, b"")), None);
    }
}
