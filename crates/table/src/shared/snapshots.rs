//! Snapshots and backups of all tables, as they lie in the data directories.

use std::sync::Arc;

use schema::Table;
use upkeep::{
    ClearFilter, SnapshotFacts, SnapshotManifest, clear_snapshots, list_snapshots, snapshot_directory,
    write_snapshot_manifest,
};

use super::Shared;
use crate::TableError;

/// What is kept of tables, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct SnapshotOptions {
    /// Is a table kept as a snapshot before it is dropped or truncated?
    pub is_automatic: bool,
    /// Spells a table as the statement that makes it, for the `schema.cql` of snapshots: no CQL is known here.
    pub spell_table: Option<fn(&Table) -> String>,
}

/// The snapshots and backups of a node, from the thread of a shard.
pub struct Snapshots<'a>(&'a Shared);

impl<'a> Snapshots<'a> {
    /// Those of the node of that shard.
    pub fn of(shared: &'a Shared) -> Self {
        Snapshots(shared)
    }

    /// Snapshots of all tables, also of those that were dropped.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn list(&self) -> Result<Vec<SnapshotFacts>, TableError> {
        let (disk, data) = (Arc::clone(&self.0.runtime.disk), self.0.directories.all());
        Ok(self.0.runtime.io.run(move || list_snapshots(&*disk, &data)).await?)
    }

    /// Deletes snapshots; gives how many.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn clear(&self, filter: ClearFilter) -> Result<usize, TableError> {
        let (disk, data) = (Arc::clone(&self.0.runtime.disk), self.0.directories.all());
        let clear_all = move || {
            data.iter().try_fold(0, |count, data| Ok(count + clear_snapshots(&*disk, data, &filter)?))
        };
        self.0.runtime.io.run(clear_all).await
    }

    /// Is each flushed file kept in `backups` too?
    pub fn are_backups_kept(&self) -> bool {
        self.0.registry.incremental_backups()
    }

    /// Begins or ends keeping flushed files, on all shards.
    pub fn keep_backups(&self, enabled: bool) {
        self.0.registry.set_incremental_backups(enabled);
    }

    /// Refuses a tag that a table has already.
    ///
    /// # Errors
    /// It has, or the disk fails.
    pub async fn check_new(&self, table: &Table, tag: String) -> Result<(), TableError> {
        let directories: Vec<_> =
            self.0.directories.tables(table).iter().map(|table| snapshot_directory(table, &tag)).collect();
        let disk = Arc::clone(&self.0.runtime.disk);
        let mut directories = directories.into_iter();
        let any = move || directories.try_fold(false, |any, directory| Ok(any || disk.exists(&directory)?));
        let exists: std::io::Result<bool> = self.0.runtime.io.run(any).await;
        match exists.map_err(|source| TableError::Disk { act: "look for snapshot", source })? {
            true => Err(TableError::SnapshotExists { tag }),
            false => Ok(()),
        }
    }

    /// Writes what makes a directory of files a snapshot: the list of them, and the table's definition.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn finish(&self, table: &Table, tag: &str, files: Vec<String>) -> Result<(), TableError> {
        let directory = snapshot_directory(&self.0.directories.table(table), tag);
        let text = self.0.snapshot_options.spell_table.map(|spell| spell(table));
        let manifest = SnapshotManifest::new(files, self.0.runtime.clock.now_seconds());
        let disk = Arc::clone(&self.0.runtime.disk);
        let write = move || write_snapshot_manifest(&*disk, &directory, manifest, text);
        Ok(self.0.runtime.io.run(write).await?)
    }
}

/// Tables of the node itself are not kept: they are made anew.
pub(crate) fn is_system(table: &Table) -> bool {
    table.keyspace() == "system" || table.keyspace().starts_with("system_")
}
