//! An import that a crash cuts off is taken back by the next start.
//!
//! ```text
//!   files brought in ──► journal ──► manifest of each shard ──► journal gone ──► sources gone
//!                        └──────── a start here takes the files out again ┘
//! ```
//!
//! So an import is in all shards or in none; until it is in all, its sources are where they were.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use manifest::state_file::{read_state, write_state};
use manifest::{Edit, Manifest};
use runtime::Disk;
use schema::TableId;
use serde::{Deserialize, Serialize};
use table::TableError;
use uuid::Uuid;

use crate::{Layout, StorageError};

/// What an import adds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    pub(crate) table: TableId,
    pub(crate) files: Vec<Uuid>,
}

/// Writes the journal of an import; gives its path.
pub(crate) fn begin(
    disk: &dyn Disk,
    layout: &Layout,
    id: Uuid,
    journal: &Journal,
) -> Result<PathBuf, StorageError> {
    let directory = directory(layout);
    disk.create_dir_all(&directory)
        .map_err(|source| TableError::Disk { act: "create import directory", source })?;
    let path = directory.join(format!("{}.json", id.simple()));
    write_state(disk, &path, journal)?;
    Ok(path)
}

/// Forgets a journal, durably.
pub(crate) fn end(disk: &dyn Disk, path: &Path) -> Result<(), TableError> {
    let fail = |source| TableError::Disk { act: "delete import journal", source };
    disk.remove_file(path).map_err(fail)?;
    path.parent().map_or(Ok(()), |directory| disk.sync_dir(directory).map_err(fail))
}

/// Takes the files of unfinished imports out of the manifests. What is left of them is swept up.
pub(crate) fn take_back(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    mut manifests: Vec<Manifest>,
) -> Result<Vec<Manifest>, StorageError> {
    let directory = directory(layout);
    let fail = |source| TableError::Disk { act: "look for unfinished imports", source };
    if !disk.exists(&directory).map_err(fail)? {
        return Ok(manifests);
    }
    for entry in disk.list(&directory).map_err(fail)? {
        let path = directory.join(&entry.name);
        if !entry.name.ends_with(".json") {
            continue;
        }
        let Some(journal) = read_state::<Journal>(&**disk, &path)? else { continue };
        tracing::warn!(table = %journal.table.0, files = journal.files.len(), "taking back an import that did not finish: run it again");
        for manifest in &mut manifests {
            let listed = manifest.files(journal.table);
            let removed: Vec<Uuid> =
                journal.files.iter().copied().filter(|file| listed.contains(file)).collect();
            if removed.is_empty() {
                continue;
            }
            let edit = Edit { removed, ..Edit::default() };
            *manifest = manifest.edited(journal.table, &edit, 0).write()?;
        }
        end(&**disk, &path)?;
    }
    Ok(manifests)
}

fn directory(layout: &Layout) -> PathBuf {
    layout.root().join("imports")
}
