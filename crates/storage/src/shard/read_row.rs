//! Reading the only row of a partition: its versions are found by a lookup, and merged.
//!
//! Most reads by key are of this kind. They need no cursor over all places: of each place there is a row, or none.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use memtable::KEYS_TOGETHER;
use read::{Place, RowConsumer};
use rows::{DeletionTime, PartitionKey, RowVersions};
use smallvec::SmallVec;
use sstable::{Chunk, ChunkSource, FileCursor, FileNeed, SearchKey, SstableError, TableFile};
use table::{Probe, VersionsStep, take_versions};

use super::fetch::HeldChunks;
use super::large_rows::LargeRow;
use super::read::{Came, Lack, Part, Reading};
use crate::StorageError;

/// The search for versions of one row.
pub(super) struct RowSearch {
    probes: SmallVec<[Probe<Arc<TableFile>, Chunk>; 2]>,
    /// The probe that goes on; those before it are over.
    probe_index: usize,
    /// Over the partition in that probe's file, if the row does not lie where it can be taken.
    cursor: Option<Box<FileCursor<Rc<HeldChunks>>>>,
    /// What was found in memory and by the probes that are over.
    versions: RowVersions,
}

impl<'a, C: RowConsumer> Reading<'a, C> {
    /// What can be told at once of several partitions.
    pub(super) fn rows_at_hand(&self, keys: &[PartitionKey]) -> Vec<Option<RowVersions>> {
        let mut found = Vec::new();
        found.resize_with(keys.len(), || None);
        let keys: SmallVec<[&PartitionKey; KEYS_TOGETHER]> = keys.iter().collect();
        let mut room_bytes = self.consumer.room().bytes;
        self.store.look_up(&self.shard.cache, &keys, |index, found_row| {
            let Some(versions) = found_row.into_versions() else { return ControlFlow::Continue(()) };
            let bytes: usize = versions.rows.iter().map(|row| row.as_encoded().len()).sum();
            found[index] = Some(versions);
            room_bytes = room_bytes.saturating_sub(bytes);
            if room_bytes == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }

    /// The short way of most reads by key: versions of one row, which need no cursor over all places
    /// and one lookup. A partition of more than that is read the long way.
    pub(super) fn begin_row(&mut self, key: &'a PartitionKey) -> Result<Came, StorageError> {
        let Some(versions) = self.store.memtables().row_versions(key) else {
            return self.begin_partition(key);
        };
        let key = SearchKey::new(key);
        // Of the same moment as the memtables: a flush that ends while a file is waited for changes neither.
        let probes = self.store.probes_of(&key);
        self.search_by(RowSearch { probes, probe_index: 0, cursor: None, versions }, &key)
    }

    /// Goes on with a search that lacked something.
    pub(super) fn search(&mut self, search: RowSearch, key: &'a PartitionKey) -> Result<Came, StorageError> {
        self.search_by(search, &SearchKey::new(key))
    }

    fn search_by(&mut self, mut search: RowSearch, key: &SearchKey<'a>) -> Result<Came, StorageError> {
        match search.go_on(&self.progress.chunks, key)? {
            VersionsStep::Whole => self.take_found(key.key, search.versions),
            VersionsStep::More => self.begin_partition(key.key),
            VersionsStep::Need(need) => {
                self.progress.part = Some(Part::Row(Box::new(search)));
                Ok(Came::Lacks(Lack::File(need)))
            }
        }
    }

    /// Gives a partition that has at most a row to the consumer.
    pub(super) fn take_found(
        &mut self,
        key: &PartitionKey,
        versions: RowVersions,
    ) -> Result<Came, StorageError> {
        let deletion = versions.deletion;
        self.progress.note_places(versions.rows.len());
        if versions.has_large() {
            self.progress.large = Some(LargeRow::Versions(Box::new(versions)));
            self.progress.part = Some(Part::LargeRow(deletion));
            return Ok(Came::Lacks(Lack::LargeRow));
        }
        let row = match self.store.merge(versions) {
            Some(row) => self.see(Place::Key(key), row)?,
            None => None,
        };
        self.take_single_row(key, deletion, row)
    }

    pub(super) fn take_single_row(
        &mut self,
        key: &PartitionKey,
        deletion: DeletionTime,
        row: Option<C::Taken>,
    ) -> Result<Came, StorageError> {
        let is_taken = C::is_taken(deletion, row.as_ref());
        let is_full = is_taken && self.consumer.take_single_row(key.clone(), deletion, row)?;
        Ok(Came::Over { is_full })
    }
}

impl RowSearch {
    /// Goes on through all files, as far as chunks are there.
    fn go_on(&mut self, chunks: &Rc<HeldChunks>, key: &SearchKey<'_>) -> Result<VersionsStep, SstableError> {
        while self.probe_index < self.probes.len() {
            let step = self.go_on_in_file(chunks, key)?;
            if let VersionsStep::Need(_) = step {
                return Ok(step);
            }
            chunks.let_go();
            if let VersionsStep::More = step {
                return Ok(step);
            }
            self.cursor = None;
            self.probe_index += 1;
        }
        Ok(VersionsStep::Whole)
    }

    fn go_on_in_file(
        &mut self,
        chunks: &Rc<HeldChunks>,
        key: &SearchKey<'_>,
    ) -> Result<VersionsStep, SstableError> {
        if let Some(cursor) = &mut self.cursor {
            return take_versions(cursor, &mut self.versions);
        }
        let probe = &mut self.probes[self.probe_index];
        loop {
            // What is held never fails: only sources that read the disk themselves do.
            let is_at_hand = probe.take_chunk(|file, id| chunks.get(file, id).ok().flatten());
            if !is_at_hand && let Some(need) = probe.need() {
                return Ok(VersionsStep::Need(FileNeed::Chunk(need)));
            }
            if !probe.go_on(key) {
                break;
            }
        }
        if probe.add_to(key, &mut self.versions) {
            return Ok(VersionsStep::Whole);
        }
        let cursor = self.cursor.insert(Box::new(probe.cursor(Rc::clone(chunks), key)));
        take_versions(cursor, &mut self.versions)
    }
}
