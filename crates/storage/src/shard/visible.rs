//! What of a merged row is for the client: what lives, of the columns asked for.
//!
//! To find that out of a [large row](rows::LARGE_ROW_BYTES) is work for another thread.

use std::sync::Arc;

use rows::{LiveRows, PartitionKey, Row, RowBuilder};
use runtime::Piece;
use schema::{ColumnId, Table};

use super::read::{Reading, STEP_BYTES};
use crate::StorageError;
use read::ReadColumns;

impl Reading<'_> {
    /// What a client may see of a merged row.
    pub(super) async fn seen(&mut self, row: Row, key: &PartitionKey) -> Result<Option<Row>, StorageError> {
        match row.is_large() {
            true => Box::pin(self.visible_elsewhere(row, key)).await,
            false => self.visible(row, key),
        }
    }

    /// The same, at once.
    pub(super) fn visible(&mut self, row: Row, key: &PartitionKey) -> Result<Option<Row>, StorageError> {
        self.note_row(&row);
        let live = self.live_row(row, key)?;
        Ok(live.and_then(|row| shown(row, &self.command.table, &self.command.columns)))
    }

    /// The same of a large row, on another thread.
    async fn visible_elsewhere(&mut self, row: Row, key: &PartitionKey) -> Result<Option<Row>, StorageError> {
        self.note_row(&row);
        let (live, clustering) = (self.live, row.clustering());
        let (table, columns) = (Arc::clone(&self.command.table), self.command.columns.clone());
        let seen = self.elsewhere(move || {
            let mut count = 0;
            let row = live.filter(row, &mut count).and_then(|row| shown(row, &table, &columns));
            (row, count)
        });
        let (row, count) = seen.await;
        self.pass_at(count, key, || clustering)?;
        Ok(row)
    }

    /// Has long work done on another thread.
    pub(super) async fn elsewhere<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if self.shard.is_hurried() {
            // Somebody who can wait begins again.
            return std::future::pending().await;
        }
        let done = self.shard.runtime.io.run(work).await;
        self.piece = Piece::of_turn();
        done
    }

    /// Notes a merged row, as it is before anything of it is left out.
    fn note_row(&mut self, row: &Row) {
        let bytes = row.as_encoded().len();
        self.row_bytes_max = self.row_bytes_max.max(bytes);
        self.work = self.work.saturating_add(u32::try_from(bytes / STEP_BYTES).unwrap_or(u32::MAX));
    }
}

/// What of a live row was asked for: columns that the table still has.
fn shown(row: Row, table: &Table, columns: &ReadColumns) -> Option<Row> {
    let row = match table.dropped_columns().is_empty() {
        true => row,
        false => {
            let is_there = |id| table.column_by_id(id).is_some();
            Some(cut(&row, is_there)).filter(|kept| !kept.is_empty())?
        }
    };
    // To cut a small row costs more than to have all of it.
    let is_whole = *columns == ReadColumns::All || row.is_small();
    Some(if is_whole { row } else { cut(&row, |id| columns.contains(id)) })
}

/// What is live of a table at a moment.
pub(super) fn live_rows(now: u32, table: &Table) -> LiveRows {
    LiveRows { now, gc_before: now.saturating_sub(table.options().gc_grace_seconds) }
}

/// The row with cells of some columns only.
fn cut(row: &Row, is_kept: impl Fn(ColumnId) -> bool) -> Row {
    let mut builder = RowBuilder::part_of(row, row.liveness(), row.deletion());
    for column in row.columns().filter(|column| is_kept(column.id)) {
        match column.data {
            rows::ColumnData::Simple(cell) => _ = builder.cell(column.id, cell),
            rows::ColumnData::Complex(complex) => {
                _ = builder.complex(column.id, complex.deletion, complex.cells())
            }
        }
    }
    builder.finish()
}
