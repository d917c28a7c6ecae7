//! The note that a table is being emptied on all shards.
//!
//! Each shard empties its part in one step of its own manifest. So that a crash between two of these
//! steps leaves no table emptied in part, the coordinator has the table noted in the data directory
//! before the first step and forgotten after the last; a start that finds a note finishes what it
//! tells. Whichever shard the coordinator is on writes the note: it is one for the whole node.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use manifest::state_file::{read_state, write_state};
use runtime::Disk;
use schema::TableId;
use serde::{Deserialize, Serialize};
use table::TableError;
use uuid::Uuid;

use super::Shard;
use crate::StorageError;

#[derive(Serialize, Deserialize)]
struct Note {
    table: Uuid,
}

/// The note of a node, from the thread of a shard.
pub struct TruncationNote<'a>(pub(super) &'a Shard);

impl TruncationNote<'_> {
    /// Notes durably that the table is about to be emptied on all shards. There is one note at a time.
    ///
    /// # Errors
    /// The disk fails. The note may be there or not.
    pub async fn write(&self, table: TableId) -> Result<(), StorageError> {
        let (disk, path) = self.place();
        let noted =
            self.0.shared.runtime.io.run(move || write_state(&*disk, &path, &Note { table: table.0 })).await;
        Ok(noted
            .map_err(TableError::from)
            .inspect_err(|error| self.0.shared.note_fault("truncate", error))?)
    }

    /// Forgets the note, durably, if there is one.
    ///
    /// # Errors
    /// The disk fails. The note may be there or not.
    pub async fn forget(&self) -> Result<(), StorageError> {
        let (disk, path) = self.place();
        let root = self.0.layout.root().to_owned();
        let forget = move || -> io::Result<()> {
            if disk.exists(&path)? {
                disk.remove_file(&path)?;
            }
            disk.sync_dir(&root)
        };
        let forgotten = self.0.shared.runtime.io.run(forget).await;
        let forgotten = forgotten.map_err(|source| TableError::Disk { act: "forget a truncation", source });
        Ok(forgotten.inspect_err(|error| self.0.shared.note_fault("truncate", error))?)
    }

    /// The table whose truncation an earlier run noted and did not finish.
    ///
    /// # Errors
    /// The note is damaged, or the disk fails.
    pub async fn read(&self) -> Result<Option<TableId>, StorageError> {
        let (disk, path) = self.place();
        let note: Option<Note> = self.0.shared.runtime.io.run(move || read_state(&*disk, &path)).await?;
        Ok(note.map(|note| TableId(note.table)))
    }

    fn place(&self) -> (Arc<dyn Disk>, PathBuf) {
        (Arc::clone(&self.0.shared.runtime.disk), self.0.layout.truncating())
    }
}
