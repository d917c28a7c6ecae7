//! Reading the only row of a partition: its versions are found by a lookup, and merged.
//!
//! Most reads by key are of this kind. They need no cursor over all places: of each place there is a row, or none.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use memtable::KEYS_TOGETHER;
use read::{Place, RowConsumer};
use rows::{DeletionTime, PartitionKey};
use smallvec::SmallVec;
use sstable::{Chunk, ChunkNeed, ChunkSource, FileCursor, FileNeed, SearchKey, TableFile};
use table::{Probe, RowVersions, VersionsStep};

use super::fetch::HeldChunks;
use super::read::Reading;
use crate::StorageError;

impl<C: RowConsumer> Reading<'_, C> {
    /// What can be told at once of several partitions; nothing of one, which may as well wait.
    pub(super) fn rows_at_hand(
        &self,
        keys: &[PartitionKey],
    ) -> SmallVec<[Option<RowVersions>; KEYS_TOGETHER]> {
        let mut found = SmallVec::new();
        if keys.len() > 1 && self.command.has_single_rows() {
            found.resize_with(keys.len(), || None);
            let keys: SmallVec<[&PartitionKey; KEYS_TOGETHER]> = keys.iter().collect();
            let mut room_bytes = self.consumer.room().bytes;
            self.store.look_up(&self.shard.shared.cache, &keys, |index, found_row| {
                let Some(versions) = found_row.into_versions() else { return ControlFlow::Continue(()) };
                let bytes: usize = versions.rows.iter().map(|row| row.as_encoded().len()).sum();
                found[index] = Some(versions);
                room_bytes = room_bytes.saturating_sub(bytes);
                if room_bytes == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        found
    }

    /// The short way of most reads by key: versions of one row, which need no cursor over all places
    /// and one lookup. `None` when the partition has to be read the long way.
    pub(super) async fn row_versions(
        &mut self,
        key: &PartitionKey,
    ) -> Result<Option<RowVersions>, StorageError> {
        let key = SearchKey::new(key);
        // Both taken at one moment: a flush that ends while a file is waited for changes neither.
        let (files, in_memory) = (self.store.files().all(), RowVersions::in_memory(self.store.memtables(), key.key));
        let Some(mut versions) = in_memory else { return Ok(None) };
        for mut probe in self.store.probes_of(&files, &key) {
            self.supply_chunks(&mut probe, &key).await?;
            let is_whole = probe.add_to(&key, &mut versions) || {
                let cursor = probe.cursor(Rc::clone(&self.chunks), &key);
                self.take_by_cursor(Box::new(cursor), &mut versions).await?
            };
            self.chunks.chunks.borrow_mut().clear();
            if !is_whole {
                return Ok(None);
            }
        }
        Ok(Some(versions))
    }

    /// Takes a search to where its partition is, through chunks that are waited for.
    async fn supply_chunks(
        &self,
        probe: &mut Probe<Arc<TableFile>, Chunk>,
        key: &SearchKey<'_>,
    ) -> Result<(), StorageError> {
        loop {
            // What is held never fails: only sources that read the disk themselves do.
            if let Err(id) = probe.take_chunk(|file, id| self.chunks.get(file, id).ok().flatten()) {
                let need = FileNeed::Chunk(ChunkNeed { file: Arc::clone(probe.file()), id });
                Box::pin(self.chunks.supply(need, self.shard)).await?;
            } else if !probe.go_on(key) {
                return Ok(());
            }
        }
    }

    /// Adds what a cursor over a file gives of a partition; `false` when that is more than a row and a deletion.
    async fn take_by_cursor(
        &self,
        mut cursor: Box<FileCursor<Rc<HeldChunks>>>,
        versions: &mut RowVersions,
    ) -> Result<bool, StorageError> {
        loop {
            match versions.take_from(&mut *cursor)? {
                VersionsStep::Need(need) => Box::pin(self.chunks.supply(need, self.shard)).await?,
                VersionsStep::Whole => return Ok(true),
                VersionsStep::More => return Ok(false),
            }
        }
    }

    /// Gives a partition that has at most a row to the consumer; is that full by it?
    pub(super) fn take_versions(
        &mut self,
        key: &PartitionKey,
        versions: RowVersions,
    ) -> Result<bool, StorageError> {
        let deletion = versions.deletion;
        let row = match versions.merge(&self.command.table) {
            Some(row) => self.see(Place::Key(key), row)?,
            None => None,
        };
        self.take_lone(key, deletion, row)
    }

    /// The same of a row with large versions, on another thread.
    pub(super) async fn take_large(
        &mut self,
        key: &PartitionKey,
        versions: RowVersions,
    ) -> Result<bool, StorageError> {
        let (deletion, table) = (versions.deletion, Arc::clone(&self.command.table));
        let row = match self.elsewhere(move || versions.merge(&table)).await {
            Some(row) => self.seen(Place::Key(key), row).await?,
            None => None,
        };
        self.take_lone(key, deletion, row)
    }

    fn take_lone(
        &mut self,
        key: &PartitionKey,
        deletion: DeletionTime,
        row: Option<C::Taken>,
    ) -> Result<bool, StorageError> {
        if !C::is_taken(deletion, row.as_ref()) {
            return Ok(false);
        }
        Ok(self.consumer.take_lone(key.clone(), deletion, row)?)
    }
}
