//! From unfiltered to what a client may see, and to what compaction must keep.

use crate::{CellRef, ColumnData, ColumnRef, DeletionTime, Liveness, Row, RowBuilder};

/// Decides what is live at one moment.
#[derive(Clone, Copy, Debug)]
pub struct LiveRows {
    /// Seconds since 1970.
    pub now: u32,
}

impl LiveRows {
    /// What of a merged row is live: deletions and what has expired are left out. `None` when the
    /// row does not exist. The row must have been through [`crate::merge_rows`].
    pub fn filter(self, row: Row) -> Option<Row> {
        if row.is_plain() {
            return Some(row);
        }
        let now = self.now;
        let liveness = if row.liveness().is_live(now) { row.liveness() } else { Liveness::NONE };
        let mut builder = RowBuilder::with_encoded(row.encoded_clustering(), liveness, DeletionTime::LIVE);
        for column in row.columns() {
            match column.data {
                ColumnData::Simple(cell) if cell.is_live(now) => {
                    builder.cell(column.id, cell);
                }
                ColumnData::Simple(_) => {}
                ColumnData::Complex(complex) => {
                    let cells = complex.cells().filter(|cell| cell.is_live(now));
                    builder.complex(column.id, DeletionTime::LIVE, cells);
                }
            }
        }
        let live = builder.finish();
        (!live.is_empty()).then_some(live)
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
    let mut builder = RowBuilder::with_encoded(row.encoded_clustering(), liveness, keep(row.deletion()));
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
