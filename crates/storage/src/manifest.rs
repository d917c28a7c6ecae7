//! What a shard's data consists of: which table files count, and how far each table was flushed.
//!
//! The manifest alone says which files are part of a table and where replay of the commit log
//! begins. Every flush, compaction and truncation becomes true in one step, when the new manifest
//! replaces the old one. Files it does not name are left-overs of work that did not finish.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use commitlog::LogPosition;
use runtime::Disk;
use schema::TableId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::StorageError;
use crate::scope::Scope;
use crate::state_file::{read_state, write_state};

/// The state a manifest keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManifestState {
    /// Tables that have anything to tell.
    pub(crate) tables: BTreeMap<TableId, TableState>,
    /// No timestamp this shard gave out was above this one when the state was written.
    pub(crate) last_timestamp: i64,
    /// This shard's stream of the commit log has a roster since it was first opened: if that is gone, so may be
    /// segments that it named. Not so for a stream of an earlier version, or one that has yet to begin.
    #[serde(default)]
    pub(crate) keeps_roster: bool,
}

/// The state of one table on one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableState {
    /// Its files.
    pub(crate) files: BTreeSet<Uuid>,
    /// Of some files not all partitions count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) scopes: BTreeMap<Uuid, Vec<Scope>>,
    /// Writes in this shard's own log before this place are in files, or truncated.
    pub(crate) flushed: Position,
}

/// A [`LogPosition`] in the manifest's JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    segment: u64,
    offset: u32,
}

impl From<LogPosition> for Position {
    fn from(position: LogPosition) -> Self {
        Position { segment: position.segment, offset: position.offset }
    }
}

impl From<Position> for LogPosition {
    fn from(position: Position) -> Self {
        LogPosition { segment: position.segment, offset: position.offset }
    }
}

/// One change of the files of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edit {
    pub(crate) added: Vec<Uuid>,
    pub(crate) removed: Vec<Uuid>,
    /// Replay begins here from now on.
    pub(crate) flushed: Option<LogPosition>,
}

/// A shard's manifest on disk. Changed by one task at a time.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    state: ManifestState,
}

impl Manifest {
    /// Opens the manifest. Every shard has one from the directory's first start on: without it no file
    /// of the shard would be named, and all would be taken for left-overs.
    ///
    /// # Errors
    /// It is missing or damaged, or the disk fails.
    pub(crate) fn open(disk: Arc<dyn Disk>, path: PathBuf) -> Result<Self, StorageError> {
        match read_state(&*disk, &path)? {
            Some(state) => Ok(Manifest { disk, path, state }),
            None => Err(StorageError::DamagedState { path, what: "the file is missing".into() }),
        }
    }

    /// Writes a manifest of that state.
    pub(crate) fn create(
        disk: Arc<dyn Disk>,
        path: PathBuf,
        state: ManifestState,
    ) -> Result<Self, StorageError> {
        let manifest = Manifest { disk, path, state };
        manifest.write()?;
        Ok(manifest)
    }

    /// What the disk has of it now.
    ///
    /// # Errors
    /// As [`Manifest::open`].
    pub(crate) fn read_again(&self) -> Result<Self, StorageError> {
        Manifest::open(Arc::clone(&self.disk), self.path.clone())
    }

    pub(crate) fn state(&self) -> &ManifestState {
        &self.state
    }

    /// The files of a table.
    pub(crate) fn files(&self, table: TableId) -> Vec<Uuid> {
        self.state.tables.get(&table).map_or_else(Vec::new, |state| state.files.iter().copied().collect())
    }

    /// The greatest log segment it remembers.
    pub(crate) fn segment_max(&self) -> u64 {
        self.state.tables.values().map(|table| table.flushed.segment).max().unwrap_or(0)
    }

    /// The manifest after an edit; not written yet.
    pub(crate) fn edited(&self, table: TableId, edit: &Edit, last_timestamp: i64) -> Self {
        let mut next = self.clone();
        next.state.last_timestamp = next.state.last_timestamp.max(last_timestamp);
        let state = next.state.tables.entry(table).or_default();
        state.files.extend(&edit.added);
        for id in &edit.removed {
            state.files.remove(id);
            state.scopes.remove(id);
        }
        if let Some(flushed) = edit.flushed {
            state.flushed = state.flushed.max(flushed.into());
        }
        next
    }

    /// The manifest once the shard's stream of the commit log has a roster; not written yet.
    pub(crate) fn with_roster(&self) -> Self {
        let mut next = self.clone();
        next.state.keeps_roster = true;
        next
    }

    /// The manifest without a dropped table; not written yet.
    pub(crate) fn without(&self, table: TableId) -> Self {
        let mut next = self.clone();
        next.state.tables.remove(&table);
        next
    }

    /// Makes the state durable, in one step.
    pub(crate) fn write(&self) -> Result<(), StorageError> {
        write_state(&*self.disk, &self.path, &self.state)
    }
}
