//! What of a merged row somebody lacks who had a part in it.

use crate::{CellRef, ColumnData, ComplexRef, DeletionTime, Liveness, Row, RowBuilder};

impl Row {
    /// What is to be written to one that holds `held` so that it holds this row: `None` when it does. This row must be
    /// what `held` and others merge to; merging what is missing to `held` gives this row again.
    pub fn missing_from(&self, held: Option<&Row>) -> Option<Row> {
        let Some(held) = held else { return Some(self.clone()) };
        if self == held {
            return None;
        }
        let (liveness, deletion) = (self.liveness(), self.deletion());
        let liveness = if liveness == held.liveness() { Liveness::NONE } else { liveness };
        let deletion = if deletion == held.deletion() { DeletionTime::LIVE } else { deletion };
        let mut missing = RowBuilder::part_of(self, liveness, deletion);
        let mut theirs = held.columns().peekable();
        for column in self.columns() {
            while theirs.next_if(|held| held.id < column.id).is_some() {}
            let held = theirs.next_if(|held| held.id == column.id).map(|held| held.data);
            match (column.data, held) {
                (ColumnData::Simple(cell), Some(ColumnData::Simple(held))) if cell == held => {}
                (ColumnData::Simple(cell), _) => _ = missing.cell(column.id, cell),
                (ColumnData::Complex(mine), Some(ColumnData::Complex(held))) => {
                    let (deletion, cells) = missing_cells(mine, held);
                    missing.complex(column.id, deletion, cells);
                }
                (ColumnData::Complex(mine), _) => {
                    missing.complex(column.id, mine.deletion, mine.cells());
                }
            }
        }
        let missing = missing.finish();
        (!missing.is_empty()).then_some(missing)
    }
}

fn missing_cells<'a>(mine: ComplexRef<'a>, held: ComplexRef<'a>) -> (DeletionTime, Vec<CellRef<'a>>) {
    let deletion = if mine.deletion == held.deletion { DeletionTime::LIVE } else { mine.deletion };
    let mut theirs: Vec<CellRef<'a>> = held.cells().collect();
    theirs.sort_by_key(|cell| cell.path);
    let is_held = |cell: &CellRef<'a>| {
        theirs.binary_search_by_key(&cell.path, |held| held.path).is_ok_and(|index| theirs[index] == *cell)
    };
    (deletion, mine.cells().filter(|cell| !is_held(cell)).collect())
}
