//! A shard's part in snapshots and backups: second names for its table files.
//!
//! While names are made, the files are held ([`crate::files::FileRegistry`]), so that a compaction
//! that ends meanwhile does not delete one before it has its second name.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use ring::Sharding;
use rows::{PartitionKey, RingPlace};
use runtime::Disk;
use schema::{Table, TableId};
use sstable::{Component, Descriptor, SstableError, TableFile};
use types::Token;
use upkeep::{
    ClearFilter, SnapshotFacts, SnapshotManifest, clear_snapshots, list_snapshots, snapshot_directory,
    write_snapshot_manifest,
};
use uuid::Uuid;

use super::scrub::Soundness;
use super::tables::unless_dropped;
use super::{Shard, TableStore};
use crate::StorageError;

/// A file of so many partitions is looked through to tell whether other shards have some of it.
const KEYS_LOOKED_THROUGH: usize = 1_024;
/// A larger one is looked at in so many places where others' partitions ought to be. That a file of two shards has none
/// at any of them has a chance of 1 in 65,536 where partitions are few, and none where there are many.
const PLACES_LOOKED_AT: u64 = 16;

/// Why a table is snapshot by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    Dropped,
    Truncated,
}

impl Shard {
    /// Refuses a tag that a table has already.
    pub(crate) async fn check_new_snapshot(&self, table: TableId, tag: String) -> Result<(), StorageError> {
        let tables = self.layout.tables(&self.store(table)?.table());
        let directories = tables.iter().map(|table| snapshot_directory(table, &tag));
        let (disk, mut directories) =
            (Arc::clone(&self.runtime.disk), directories.collect::<Vec<_>>().into_iter());
        let any = move || directories.try_fold(false, |any, directory| Ok(any || disk.exists(&directory)?));
        let exists: std::io::Result<bool> = self.runtime.io.run(any).await;
        match exists.map_err(|source| StorageError::Disk { act: "look for snapshot", source })? {
            true => Err(StorageError::SnapshotExists { tag }),
            false => Ok(()),
        }
    }

    /// Writes the memtable out, unless told not to, and gives all files second names in the snapshot's
    /// directory. Gives the names of the data files.
    pub(crate) async fn snapshot(
        self: &Rc<Self>,
        table: TableId,
        tag: String,
        skip_flush: bool,
    ) -> Result<Vec<String>, StorageError> {
        let store = self.store(table)?;
        if !skip_flush {
            self.flush(table).await?;
        }
        let linked = self.link_all_files(&store, move |table| snapshot_directory(table, &tag)).await;
        unless_dropped(&store, linked)
    }

    /// Writes what makes a directory of files a snapshot: the list of them, and the table's definition.
    pub(crate) async fn finish_snapshot(
        &self,
        table: TableId,
        tag: String,
        files: Vec<String>,
    ) -> Result<(), StorageError> {
        let definition = self.store(table)?.table();
        self.write_snapshot_manifest(&definition, &tag, files).await
    }

    /// Snapshots of all tables, also of those that were dropped.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotFacts>, StorageError> {
        let (disk, data) = (Arc::clone(&self.runtime.disk), self.layout.all_data_directories());
        Ok(self.runtime.io.run(move || list_snapshots(&*disk, &data)).await?)
    }

    /// Deletes snapshots; gives how many.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn clear_snapshots(&self, filter: ClearFilter) -> Result<usize, StorageError> {
        let (disk, data) = (Arc::clone(&self.runtime.disk), self.layout.all_data_directories());
        let clear_all = move || {
            data.iter().try_fold(0, |count, data| Ok(count + clear_snapshots(&*disk, data, &filter)?))
        };
        self.runtime.io.run(clear_all).await
    }

    /// Is each flushed file kept in `backups` too?
    pub fn incremental_backups(&self) -> bool {
        self.registry.incremental_backups()
    }

    /// Begins or ends keeping flushed files, on all shards.
    pub fn set_incremental_backups(&self, enabled: bool) {
        self.registry.set_incremental_backups(enabled);
    }

    /// Keeps a flushed file in `backups`, if that is wanted. A failure costs the backup, not the flush.
    pub(super) async fn back_up(&self, store: &TableStore, file: Option<Arc<TableFile>>) {
        let table = store.table();
        let Some(file) = file else { return };
        if !self.registry.incremental_backups() || !table.options().incremental_backups || is_system(&table) {
            return;
        }
        if let Err(error) = self.link_files(&[file], |table| table.join("backups")).await {
            tracing::error!(keyspace = table.keyspace(), table = table.name(), %error, "a flushed file was not kept as a backup");
        }
    }

    /// Keeps the files of a table that is dropped or truncated, if that is wanted.
    pub(super) async fn auto_snapshot(
        &self,
        store: &TableStore,
        occasion: Occasion,
    ) -> Result<(), StorageError> {
        let table = store.table();
        let has_none = store.files().is_empty() && store.damage.borrow().is_empty();
        if !self.wants_auto_snapshot(&table) || has_none {
            return Ok(());
        }
        let word = match occasion {
            Occasion::Dropped => "dropped",
            Occasion::Truncated => "truncated",
        };
        let now_ms = self.runtime.clock.now_seconds().saturating_mul(1000);
        let prefix = format!("{word}-{now_ms}-{}", table.name());
        let tag = self.registry.snapshot_tag(table.id(), word, self.index, prefix);
        let of_tag = tag.clone();
        let names = self.link_all_files(store, move |table| snapshot_directory(table, &of_tag)).await?;
        self.write_snapshot_manifest(&table, &tag, names).await
    }

    /// Is a table snapshot before it goes?
    pub(super) fn wants_auto_snapshot(&self, table: &Table) -> bool {
        self.options.auto_snapshot && table.options().allow_auto_snapshot && !is_system(table)
    }

    async fn write_snapshot_manifest(
        &self,
        table: &Table,
        tag: &str,
        files: Vec<String>,
    ) -> Result<(), StorageError> {
        let directory = snapshot_directory(&self.layout.table(table), tag);
        let text = self.options.spell_table.map(|spell| spell(table));
        let manifest = SnapshotManifest::new(files, self.runtime.clock.now_seconds());
        let disk = Arc::clone(&self.runtime.disk);
        let write = move || write_snapshot_manifest(&*disk, &directory, manifest, text);
        Ok(self.runtime.io.run(write).await?)
    }

    /// As [`Shard::link_files`], for all of a table. Of files that hold partitions of other shards, those of this one
    /// are copied: whole they would bring back what another has deleted and forgotten. Files that can not be read,
    /// which may be well another day, are linked as far as that goes.
    async fn link_all_files(
        &self,
        store: &TableStore,
        directory_of: impl Fn(&Path) -> PathBuf + Clone + Send + 'static,
    ) -> Result<Vec<String>, StorageError> {
        let files = store.files();
        let damaged: Vec<Uuid> = store.damage.borrow().iter().map(|damaged| damaged.id).collect();
        // All of them from here on: one may be merged with others while another is looked at.
        let ids = files.iter().map(|file| file.descriptor().id).chain(damaged.iter().copied());
        ids.for_each(|id| self.registry.retain(id));
        let linked = self.link_or_copy(store, &files, directory_of.clone()).await;
        self.release_files(&files).await;
        let mut names = Vec::new();
        for id in damaged {
            match self.link_unopened(store, id, directory_of.clone()).await {
                Ok(linked) => names.extend(linked),
                // Nor does a TRUNCATE wait for it.
                Err(error) => {
                    tracing::warn!(%id, %error, "a file that can not be read is not in the snapshot")
                }
            }
        }
        names.extend(linked?);
        Ok(names)
    }

    async fn link_or_copy(
        &self,
        store: &TableStore,
        files: &[Arc<TableFile>],
        directory_of: impl Fn(&Path) -> PathBuf + Send + 'static,
    ) -> Result<Vec<String>, StorageError> {
        let (mut whole, mut names) = (Vec::new(), Vec::new());
        for file in files {
            let copied = match self.holds_others(store, file).await {
                true => self.copy_own(store, file, directory_of(&file.descriptor().directory)).await?,
                false => None,
            };
            match copied {
                Some(name) => names.extend(name),
                None => whole.push(Arc::clone(file)),
            }
        }
        names.extend(self.link_files(&whole, directory_of).await?);
        Ok(names)
    }

    /// Does a file hold partitions of other shards, or may some of its own be told by other files by now? What can not
    /// be read of it counts as the shard's own.
    async fn holds_others(&self, store: &TableStore, file: &Arc<TableFile>) -> bool {
        if store.scopes_of(file).is_some() {
            return true;
        }
        if self.sharding.shard_count() == 1 {
            return false;
        }
        let (file, sharding, shard) = (Arc::clone(file), self.sharding, self.index);
        self.runtime.io.run(move || tells_of_others(&file, sharding, shard)).await.unwrap_or(false)
    }

    /// Writes what a file has of this shard to a directory, and gives the name of its Data, or none where there is
    /// nothing; `None` when not all of it can be read.
    async fn copy_own(
        &self,
        store: &TableStore,
        file: &Arc<TableFile>,
        directory: PathBuf,
    ) -> Result<Option<Option<String>>, StorageError> {
        let copy = Descriptor::new(directory, self.runtime.random.uuid_v1(&*self.runtime.clock));
        let (salvaged, written) = self.salvage(store, file, Soundness::Unknown, copy.clone()).await?;
        if salvaged.lost_count() == 0 {
            return Ok(Some(written.map(|_| copy.file_name(Component::Data))));
        }
        tracing::warn!(path = %file.descriptor().path(Component::Data).display(), "a damaged file is in the snapshot as it is, also with what other shards may have deleted");
        if written.is_some() {
            let disk = Arc::clone(&self.runtime.disk);
            self.runtime.io.run(move || sstable::delete_table_file(&*disk, &copy)).await?;
        }
        Ok(None)
    }

    /// Links a file that could not be opened and is held until then.
    async fn link_unopened(
        &self,
        store: &TableStore,
        id: Uuid,
        directory_of: impl Fn(&Path) -> PathBuf + Send + 'static,
    ) -> Result<Vec<String>, StorageError> {
        let located = self.locate(store, id).await;
        let Ok(descriptor) = located else {
            self.registry.release(id);
            return located.map(|_| Vec::new());
        };
        let (disk, to_link) = (Arc::clone(&self.runtime.disk), descriptor.clone());
        let linked = self.runtime.io.run(move || link_all(&*disk, &[to_link], directory_of)).await;
        self.release_unopened(descriptor).await?;
        linked
    }

    /// Gives files second names in a directory; gives the names of their data files.
    async fn link_files(
        &self,
        files: &[Arc<TableFile>],
        directory_of: impl Fn(&Path) -> PathBuf + Send + 'static,
    ) -> Result<Vec<String>, StorageError> {
        files.iter().for_each(|file| self.registry.retain(file.descriptor().id));
        let descriptors: Vec<Descriptor> = files.iter().map(|file| file.descriptor().clone()).collect();
        let disk = Arc::clone(&self.runtime.disk);
        let linked = self.runtime.io.run(move || link_whole(&*disk, &descriptors, directory_of)).await;
        self.release_files(files).await;
        linked
    }
}

/// Has a file partitions of other shards than this one? Blocks.
fn tells_of_others(file: &Arc<TableFile>, sharding: Sharding, shard: usize) -> Result<bool, SstableError> {
    let is_of_other = |key: &PartitionKey| sharding.shard_of(key.token) != shard;
    let (first, last) = (file.summary().first_key.token, file.summary().last_key.token);
    if file.summary().partition_count <= KEYS_LOOKED_THROUGH as u64 {
        let keys = upkeep::keys_from(file, RingPlace::Start, KEYS_LOOKED_THROUGH)?;
        return Ok(keys.iter().any(is_of_other));
    }
    let step = usize::try_from(last.0.abs_diff(first.0) / PLACES_LOOKED_AT).unwrap_or(usize::MAX).max(1);
    for place in (first.0..=last.0).step_by(step) {
        let Some(start) = sharding.next_of_others(Token(place), shard) else { break };
        let found = upkeep::keys_from(file, RingPlace::BeforeToken(start), 1)?;
        if found.iter().any(is_of_other) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// As [`link_all`], for files that must be there as a whole.
fn link_whole(
    disk: &dyn Disk,
    descriptors: &[Descriptor],
    directory_of: impl Fn(&Path) -> PathBuf,
) -> Result<Vec<String>, StorageError> {
    let names = link_all(disk, descriptors, &directory_of)?;
    let toc = |descriptor: &Descriptor| {
        directory_of(&descriptor.directory).join(descriptor.file_name(Component::Toc))
    };
    let fail = |source| StorageError::Disk { act: "create snapshot", source };
    for toc in descriptors.iter().map(toc) {
        if !disk.exists(&toc).map_err(fail)? {
            return Err(fail(io::Error::new(io::ErrorKind::NotFound, format!("no {}", toc.display()))));
        }
    }
    Ok(names)
}

/// Gives files second names, as far as they are there; gives the names of their data files.
fn link_all(
    disk: &dyn Disk,
    descriptors: &[Descriptor],
    directory_of: impl Fn(&Path) -> PathBuf,
) -> Result<Vec<String>, StorageError> {
    let fail = |source| StorageError::Disk { act: "create snapshot directory", source };
    let (mut names, mut directories) = (Vec::new(), BTreeSet::new());
    for descriptor in descriptors {
        // On the file's own disk: a second name can not be on another.
        let directory = directory_of(&descriptor.directory);
        if !directories.contains(&directory) {
            disk.create_dir_all(&directory).map_err(fail)?;
        }
        let linked = upkeep::link_into(disk, descriptor, &directory)?;
        names.extend(linked.into_iter().filter(|name| *name == descriptor.file_name(Component::Data)));
        directories.insert(directory);
    }
    directories.iter().try_for_each(|directory| disk.sync_dir(directory)).map_err(fail)?;
    Ok(names)
}

/// Tables of the node itself are not kept: they are made anew.
fn is_system(table: &Table) -> bool {
    table.keyspace() == "system" || table.keyspace().starts_with("system_")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rows::MutationBuilder;
    use runtime::MemoryDisk;
    use schema::{ColumnKind, TableBuilder};

    use super::*;
    use crate::shard::write_memtable;
    use memtable::Memtable;

    const PARTITIONS: i32 = 5_000;

    /// A file of those of the partitions that are wanted.
    fn file_of(is_wanted: impl Fn(Token) -> bool) -> Arc<TableFile> {
        let (disk, id) = (Arc::new(MemoryDisk::new()), TableId(Uuid::from_u128(7)));
        let table = TableBuilder::new(id, "k", "t")
            .column("pk", ColumnKind::PartitionKey(0), types::CqlType::Int)
            .build()
            .expect("a table");
        let table = Arc::new(table);
        let mut memtable = Memtable::new(Arc::clone(&table));
        for pk in 0..PARTITIONS {
            let key = PartitionKey::new(Bytes::copy_from_slice(&pk.to_be_bytes()));
            if is_wanted(key.token) {
                let mut mutation = MutationBuilder::new(id, key);
                mutation.partition_deletion(rows::DeletionTime { timestamp: 1, local_deletion_time: 1 });
                memtable.apply(&mutation.finish(), None, None);
            }
        }
        let descriptor = Descriptor::new("/files", Uuid::from_u128(1));
        let compression = table.options().compression.clone();
        let written = write_memtable(disk, descriptor, table, compression, &memtable, 0);
        written.expect("written").expect("partitions")
    }

    /// Where shards own long runs of tokens, the first partitions of a file are all of one.
    #[test]
    fn a_file_that_several_shards_share_is_told_from_one_of_a_shard_alone() {
        for (count, ignored) in [(2, 0), (2, 1), (3, 4), (2, 12)] {
            let sharding = Sharding::new(count, ignored).expect("valid");
            let shared = file_of(|_| true);
            let own = file_of(|token| sharding.shard_of(token) == 0);
            let few = file_of(|token| token.0 % 16 == 0);
            for shard in 0..usize::from(count) {
                let told = |file| tells_of_others(file, sharding, shard).expect("read");
                assert!(told(&shared) && told(&few), "{count} shards, {ignored} bits");
                assert_eq!(told(&own), shard != 0, "{count} shards, {ignored} bits");
            }
        }
    }
}
