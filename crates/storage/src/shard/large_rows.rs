//! What is long work of a [large row](rows::LARGE_ROW_BYTES) is done on another thread.

use read::{Place, RowConsumer, RowView};
use rows::Row;
use runtime::Piece;

use super::read::Reading;
use crate::StorageError;

/// A row of so many bytes is as much work as one step more.
const STEP_BYTES: usize = 4 << 10;

impl<C: RowConsumer> Reading<'_, C> {
    /// What the consumer takes of a merged row.
    pub(super) async fn seen(
        &mut self,
        place: Place<'_>,
        row: Row,
    ) -> Result<Option<C::Taken>, StorageError> {
        match row.is_large() {
            true => Box::pin(self.seen_elsewhere(place, row)).await,
            false => self.see(place, row),
        }
    }

    /// The same, at once.
    pub(super) fn see(&mut self, place: Place<'_>, row: Row) -> Result<Option<C::Taken>, StorageError> {
        self.note_row(&row);
        Ok(self.consumer.see(place, row)?)
    }

    /// The same of a large row, on another thread.
    async fn seen_elsewhere(&mut self, place: Place<'_>, row: Row) -> Result<Option<C::Taken>, StorageError> {
        self.note_row(&row);
        let view = self.consumer.view();
        let seen = self.elsewhere(move || view.see(row)).await;
        Ok(self.consumer.note(place, seen)?)
    }

    /// Has long work done on another thread.
    pub(super) async fn elsewhere<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if self.shard.visits.is_hurried() {
            // Somebody who can wait begins again.
            return std::future::pending().await;
        }
        let done = self.shard.shared.runtime.io.run(work).await;
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
