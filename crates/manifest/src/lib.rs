//! What a shard's data consists of: which table files count, and how far each table was flushed.
//!
//! The manifest alone says which files are part of a table and where replay of the commit log
//! begins. Every flush, compaction and truncation becomes true in one step, when the edit that says so is durable.
//! Files it does not name are left-overs of work that did not finish.
//!
//! ```text
//!   state ── edited ──► next state ── write (on an I/O thread) ──► it is durable, and adopted
//!            in memory, checked        an edit at the log's end, or a new checkpoint
//! ```
//!
//! - `state` is what there is to keep and how it changes,
//! - `format` its bytes, `contents` what these say,
//! - `file` how it comes to the disk, and what holds when that fails,
//! - `document` what earlier versions wrote.
//!
//! Beside it:
//!
//! - [`Scope`] narrows a file that is named to some of its partitions, and `token_ranges` is a part of the ring,
//! - [`state_file`] keeps small documents of a node in the same checked way: what it is, what was begun.

mod contents;
mod document;
mod error;
mod file;
mod format;
pub mod hostile;
mod scope;
mod state;
pub mod state_file;
mod token_ranges;

use std::path::PathBuf;
use std::sync::Arc;

use runtime::Disk;
use schema::TableId;
use uuid::Uuid;

use file::{ManifestFile, Mark};
use state::Change;

pub use error::StateError;
pub use scope::{Scope, Scoped, Scopes, counts};
pub use state::{Edit, ManifestState, Position, TableState};
pub use token_ranges::{NoTokenRanges, TokenRanges};

/// A shard's manifest on disk. Changed by one task at a time.
#[derive(Clone, Debug)]
pub struct Manifest {
    file: Arc<ManifestFile>,
    state: ManifestState,
    /// What was changed since the write of `mark`.
    changes: Vec<Change>,
    mark: Mark,
}

impl Manifest {
    /// Opens the manifest. Every shard has one from the directory's first start on: without it no file
    /// of the shard would be named, and all would be taken for left-overs.
    ///
    /// # Errors
    /// It is missing or damaged, a newer version wrote it, or the disk fails.
    pub fn open(disk: Arc<dyn Disk>, path: PathBuf) -> Result<Self, StateError> {
        match document::read(&*disk, &path)? {
            Some(state) => Manifest::carry_over(disk, path, state),
            None => {
                let (file, state, mark) = ManifestFile::open(disk, path)?;
                Ok(Manifest { file: Arc::new(file), state, changes: Vec::new(), mark })
            }
        }
    }

    /// Writes a manifest of that state, in place of whatever is there.
    ///
    /// # Errors
    /// The disk fails.
    pub fn create(disk: Arc<dyn Disk>, path: PathBuf, state: ManifestState) -> Result<Self, StateError> {
        Manifest::unwritten(disk, path, state).write()
    }

    /// What the disk has of it now.
    ///
    /// # Errors
    /// As [`Manifest::open`]; or a write failed so that it can not be told.
    pub fn read_again(&self) -> Result<ManifestState, StateError> {
        self.file.read()
    }

    /// What it says.
    pub fn state(&self) -> &ManifestState {
        &self.state
    }

    /// The files of a table.
    pub fn files(&self, table: TableId) -> Vec<Uuid> {
        self.state.files(table)
    }

    /// The greatest log segment it remembers.
    pub fn segment_max(&self) -> u64 {
        self.state.segment_max()
    }

    /// The manifest after an edit; not written yet.
    ///
    /// # Panics
    /// When the edit does not fit the state: it adds a file that is named, removes one that is not, or lets the
    /// flushed position fall.
    pub fn edited(&self, table: TableId, edit: &Edit, last_timestamp: i64) -> Self {
        self.after(Change::Files { table, edit: edit.clone(), last_timestamp })
    }

    /// The manifest once the shard's stream of the commit log has a roster; not written yet.
    pub fn with_roster(&self) -> Self {
        self.after(Change::KeepsRoster)
    }

    /// The manifest without a dropped table; not written yet.
    pub fn without(&self, table: TableId) -> Self {
        self.after(Change::Dropped { table })
    }

    /// Makes the state durable, in one step, and gives the manifest as it is then.
    ///
    /// # Errors
    /// The disk fails; after a power cut the state may be there or not.
    pub fn write(mut self) -> Result<Self, StateError> {
        self.mark = self.file.write(self.mark, &self.state, &self.changes)?;
        self.changes.clear();
        Ok(self)
    }

    fn after(&self, change: Change) -> Self {
        let mut next = self.clone();
        if let Err(misfit) = next.state.check(&change) {
            panic!("an edit of {} does not fit: {misfit}", self.file.path().display());
        }
        next.state.apply(&change);
        next.changes.push(change);
        next
    }

    fn unwritten(disk: Arc<dyn Disk>, path: PathBuf, state: ManifestState) -> Self {
        let (file, mark) = ManifestFile::unwritten(disk, path);
        Manifest { file: Arc::new(file), state, changes: Vec::new(), mark }
    }

    /// Writes the log of a state that an earlier version has left. On a full disk that waits for the first edit that
    /// there is room for: a node has to start there, to be rid of what fills it.
    fn carry_over(disk: Arc<dyn Disk>, path: PathBuf, state: ManifestState) -> Result<Self, StateError> {
        let unwritten = Manifest::unwritten(disk, path, state);
        match unwritten.clone().write() {
            Ok(manifest) => {
                let path = manifest.file.path().display();
                tracing::info!(%path, "a manifest of an earlier version is carried over");
                Ok(manifest)
            }
            Err(error) if error.is_full() => Ok(unwritten),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
