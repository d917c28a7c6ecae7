//! What is long work of a [large row](rows::LARGE_ROW_BYTES) is done on another thread.

use read::{Place, RowConsumer, RowView};
use rows::{DeletionTime, PartitionKey, Row, RowVersions};
use runtime::Piece;

use super::read::{Came, Reading};
use crate::StorageError;

/// A row of so many bytes is as much work as one step more.
const STEP_BYTES: usize = 4 << 10;

/// A large row on its way through another thread.
pub(super) enum LargeRow<V: RowView> {
    /// To be merged and looked at.
    Versions(Box<RowVersions>),
    /// To be looked at.
    Whole(Row),
    /// What was seen of it, unless nothing was left by the merge.
    Seen(Option<V::Seen>),
}

impl<C: RowConsumer> Reading<'_, C> {
    /// What the consumer takes of a merged row, at once.
    pub(super) fn see(&mut self, place: Place<'_>, row: Row) -> Result<Option<C::Taken>, StorageError> {
        self.note_row(row.as_encoded().len());
        Ok(self.consumer.see(place, row)?)
    }

    /// Has the large row that it holds looked at on another thread.
    pub(super) async fn see_large(&mut self) {
        let large = self.progress.large.take();
        let (view, table) = (self.consumer.view(), self.store.table());
        let seen = self.elsewhere(move || {
            let row = match large {
                Some(LargeRow::Versions(versions)) => versions.merge(&table),
                Some(LargeRow::Whole(row)) => Some(row),
                Some(LargeRow::Seen(_)) | None => unreachable!("a large row is looked at once"),
            };
            row.map(|row| (row.as_encoded().len(), view.see(row)))
        });
        let (bytes, seen) = seen.await.unzip();
        self.note_row(bytes.unwrap_or(0));
        self.progress.large = Some(LargeRow::Seen(seen));
    }

    /// What the consumer takes of the large row that was looked at.
    pub(super) fn take_seen(&mut self, place: Place<'_>) -> Result<Option<C::Taken>, StorageError> {
        match self.progress.large.take() {
            Some(LargeRow::Seen(Some(seen))) => Ok(self.consumer.note(place, seen)?),
            Some(LargeRow::Seen(None)) => Ok(None),
            Some(_) | None => unreachable!("a large row is looked at before it is taken"),
        }
    }

    /// Takes the only row of a partition, which was looked at.
    pub(super) fn take_large(
        &mut self,
        key: &PartitionKey,
        deletion: DeletionTime,
    ) -> Result<Came, StorageError> {
        let row = self.take_seen(Place::Key(key))?;
        self.take_single_row(key, deletion, row)
    }

    /// Has long work done on another thread.
    pub(super) async fn elsewhere<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let done = self.shard.runtime.io.run(work).await;
        self.piece = Piece::of_turn();
        done
    }

    /// Notes a merged row, as it is before anything of it is left out.
    fn note_row(&mut self, bytes: usize) {
        self.progress.row_bytes_max = self.progress.row_bytes_max.max(bytes);
        self.work = self.work.saturating_add(u32::try_from(bytes / STEP_BYTES).unwrap_or(u32::MAX));
    }
}
