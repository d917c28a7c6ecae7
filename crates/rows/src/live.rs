//! From unfiltered to what a client may see, and to what compaction must keep.

use crate::{CellRef, ColumnData, ColumnRef, DeletionTime, Liveness, Row, RowBuilder};

/// Decides what is live at one moment.
#[derive(Clone, Copy, Debug)]
pub struct LiveRows {
    /// Seconds since 1970.
    pub now: u32,
    /// Tombstones of before that (seconds) are not counted: compaction may drop them any time.
    pub gc_before: u32,
}

impl LiveRows {
    /// What of a merged row is live: deletions and what has expired are left out. `None` when the
    /// row does not exist. The row must have been through [`crate::merge_rows`].
    ///
    /// Adds the row's tombstones to the count as Cassandra 5's `ReadCommand.MetricRecording`: each dead cell is one;
    /// a row that has none, and nothing that lives, is one by whatever else was deleted of it or has expired.
    pub fn filter(self, row: Row, tombstone_count: &mut u64) -> Option<Row> {
        if row.is_plain() {
            return Some(row);
        }
        let now = self.now;
        let liveness = if row.liveness().is_live(now) { row.liveness() } else { Liveness::NONE };
        let mut builder = RowBuilder::part_of(&row, liveness, DeletionTime::LIVE);
        let (mut dead_count, mut is_cleared) = (0, false);
        let mut lives = |cell: &CellRef<'_>| {
            let is_live = cell.is_live(now);
            dead_count += u64::from(!is_live && !self.is_purgeable(cell));
            is_live
        };
        for column in row.columns() {
            match column.data {
                ColumnData::Simple(cell) => {
                    if lives(&cell) {
                        builder.cell(column.id, cell);
                    }
                }
                ColumnData::Complex(complex) => {
                    is_cleared |= self.counts(complex.deletion);
                    let cells = complex.cells().filter(&mut lives);
                    builder.complex(column.id, DeletionTime::LIVE, cells);
                }
            }
        }
        let live = builder.finish();
        let is_live = !live.is_empty();
        let is_dead = !is_live && dead_count == 0 && (is_cleared || self.row_is_deleted(&row));
        *tombstone_count += dead_count + u64::from(is_dead);
        is_live.then_some(live)
    }

    /// Is it a deletion that is counted?
    pub fn counts(self, deletion: DeletionTime) -> bool {
        !deletion.is_live() && !deletion.is_purgeable(self.gc_before)
    }

    fn row_is_deleted(self, row: &Row) -> bool {
        let liveness = row.liveness();
        let has_expired = !liveness.is_none() && liveness.local_expiration_time >= self.gc_before;
        has_expired || self.counts(row.deletion())
    }

    /// May a dead cell be forgotten? One that expired becomes a tombstone as old as its write.
    fn is_purgeable(self, cell: &CellRef<'_>) -> bool {
        cell.local_deletion_time.saturating_sub(cell.ttl) < self.gc_before
    }
}

/// What compaction must keep of a merged row: tombstones of before `gc_before` (seconds) go, when
/// `is_purgeable` says that nothing older than their timestamp remains elsewhere. Expired cells
/// become tombstones, or go. `None` when nothing is left.
pub fn purge_row(row: &Row, now: u32, gc_before: u32, is_purgeable: impl Fn(i64) -> bool) -> Option<Row> {
    if row.is_plain() {
        return Some(row.clone());
    }
    let goes = |timestamp: i64, local: u32| local < gc_before && is_purgeable(timestamp);
    let keep = |deletion: DeletionTime| match goes(deletion.timestamp, deletion.local_deletion_time) {
        true => DeletionTime::LIVE,
        false => deletion,
    };
    let liveness = row.liveness();
    let expired = !liveness.is_live(now) && goes(liveness.timestamp, liveness.local_expiration_time);
    let liveness = if expired { Liveness::NONE } else { liveness };
    let mut builder = RowBuilder::part_of(row, liveness, keep(row.deletion()));
    for ColumnRef { id, data } in row.columns() {
        match data {
            ColumnData::Simple(cell) => {
                if let Some(cell) = purge_cell(cell, now, &goes) {
                    builder.cell(id, cell);
                }
            }
            ColumnData::Complex(complex) => {
                let cells = complex.cells().filter_map(|cell| purge_cell(cell, now, &goes));
                builder.complex(id, keep(complex.deletion), cells);
            }
        }
    }
    let kept = builder.finish();
    (!kept.is_empty()).then_some(kept)
}

/// As Cassandra's `AbstractCell.purge`: an expired cell that stays becomes a tombstone as old as
/// its write, which may then go.
fn purge_cell<'a>(cell: CellRef<'a>, now: u32, goes: &impl Fn(i64, u32) -> bool) -> Option<CellRef<'a>> {
    if cell.is_live(now) {
        return Some(cell);
    }
    if goes(cell.timestamp, cell.local_deletion_time) {
        return None;
    }
    if !cell.is_expiring() {
        return Some(cell);
    }
    let deleted = cell.local_deletion_time.saturating_sub(cell.ttl);
    let tombstone = CellRef::tombstone(cell.timestamp, deleted).with_path(cell.path);
    (!goes(tombstone.timestamp, tombstone.local_deletion_time)).then_some(tombstone)
}

#[cfg(test)]
mod tests {
    use schema::ColumnId;

    use super::*;
    use crate::Clustering;

    /// Deletions of the time 60 are past their grace, later ones are not.
    const LIVE: LiveRows = LiveRows { now: 100, gc_before: 61 };

    fn deleted(local_deletion_time: u32) -> DeletionTime {
        DeletionTime { timestamp: 5, local_deletion_time }
    }

    fn row(
        liveness: Liveness,
        deletion: DeletionTime,
        cells: &[CellRef<'_>],
        collection: Option<(DeletionTime, &[CellRef<'_>])>,
    ) -> Row {
        let mut builder = RowBuilder::new(&Clustering::EMPTY, liveness, deletion);
        for (id, cell) in (1..).zip(cells) {
            builder.cell(ColumnId(id), *cell);
        }
        if let Some((deletion, cells)) = collection {
            builder.complex(ColumnId(100), deletion, cells.iter().copied());
        }
        builder.finish()
    }

    /// Is the row live, and how many tombstones are counted of it?
    fn check(row: Row, is_live: bool, expected: u64) {
        let mut count = 0;
        let live = LIVE.filter(row.clone(), &mut count);
        assert_eq!((live.is_some(), count), (is_live, expected), "{row:?}");
    }

    #[test]
    fn tombstones_of_a_row_count_as_cassandra_counts_them() {
        let (none, at) = (Liveness::NONE, Liveness::at(9));
        let (live, alive) = (DeletionTime::LIVE, CellRef::live(9, b"v"));
        let dead = CellRef::tombstone(9, 99);
        let expired = CellRef::expiring(9, 10, 90, b"v");
        let element = |cell: CellRef<'static>, path| cell.with_path(path);
        check(row(at, live, &[alive], None), true, 0);
        check(row(at, live, &[dead, alive, dead], None), true, 2);
        check(row(none, live, &[dead, expired], None), false, 2);
        // The row's deletion is one where nothing lives and no cell is dead.
        check(row(none, deleted(99), &[], None), false, 1);
        check(row(none, deleted(99), &[dead, dead], None), false, 2);
        check(row(none, deleted(99), &[alive], None), true, 0);
        // So is what has expired without a cell, and a collection that was set to nothing.
        check(row(Liveness::expiring(9, 10, 90), live, &[], None), false, 1);
        check(row(none, live, &[], Some((deleted(99), &[]))), false, 1);
        let elements = [element(dead, b"a"), element(alive, b"b"), element(expired, b"c")];
        check(row(none, live, &[], Some((deleted(99), &elements))), true, 2);
        check(row(at, live, &[], Some((deleted(99), &[]))), true, 0);
    }

    #[test]
    fn what_compaction_may_drop_is_not_counted() {
        let (none, live) = (Liveness::NONE, DeletionTime::LIVE);
        check(row(none, deleted(60), &[], None), false, 0);
        check(row(none, deleted(61), &[], None), false, 1);
        check(row(none, live, &[CellRef::tombstone(9, 60), CellRef::tombstone(9, 61)], None), false, 1);
        // An expired cell is as old as its write, the row's own liveness as its end.
        check(row(none, live, &[CellRef::expiring(9, 20, 80, b"v")], None), false, 0);
        check(row(none, live, &[CellRef::expiring(9, 19, 80, b"v")], None), false, 1);
        check(row(Liveness::expiring(9, 20, 80), live, &[], None), false, 1);
        check(row(Liveness::expiring(9, 20, 60), live, &[], None), false, 0);
        check(row(none, live, &[], Some((deleted(60), &[]))), false, 0);
        assert!(LIVE.counts(deleted(61)) && !LIVE.counts(deleted(60)) && !LIVE.counts(live));
    }
}
