//! Table files that were set aside, of all tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtime::{Disk, EntryKind};
use table::{QUARANTINE, TableError};

use super::Shard;
use crate::StorageError;

/// Table files of a shard's node that were set aside, by their Data.
///
/// # Errors
/// The disk fails.
pub async fn quarantined(shard: &Shard) -> Result<Vec<PathBuf>, StorageError> {
    let (disk, directories) = (Arc::clone(&shard.runtime().disk), shard.layout().tables().all());
    let list = move || {
        let mut found = Vec::new();
        for data in &directories {
            list_quarantined(&*disk, data, &mut found)?;
        }
        Ok(found)
    };
    shard.runtime().io.run(list).await
}

/// Adds what lies in the quarantines of all tables below a directory.
fn list_quarantined(disk: &dyn Disk, data: &Path, found: &mut Vec<PathBuf>) -> Result<(), StorageError> {
    let fail = |source| TableError::Disk { act: "list set aside files", source };
    let names = |path: &Path| -> Result<Vec<String>, StorageError> {
        let kind = disk.metadata(path).map_err(fail)?.map(|entry| entry.kind);
        if kind != Some(EntryKind::Directory) {
            return Ok(Vec::new());
        }
        Ok(disk.list(path).map_err(fail)?.into_iter().map(|entry| entry.name).collect())
    };
    for keyspace in names(data)? {
        for table in names(&data.join(&keyspace))? {
            let directory = data.join(&keyspace).join(table).join(QUARANTINE);
            let data = names(&directory)?.into_iter().filter(|name| name.ends_with("-Data.db"));
            found.extend(data.map(|name| directory.join(name)));
        }
    }
    Ok(())
}
