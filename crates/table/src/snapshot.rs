//! A table's part in snapshots and backups: second names for its files.
//!
//! While names are made, the files are held ([`crate::FileRegistry`]), so that a compaction
//! that ends meanwhile does not delete one before it has its second name.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use ring::Sharding;
use rows::{PartitionKey, RingPlace};
use runtime::Disk;
use sstable::{Component, Descriptor, SstableError, TableFile};
use types::Token;
use upkeep::snapshot_directory;
use uuid::Uuid;

use super::TableStore;
use super::scrub::Soundness;
use crate::TableError;
use crate::shared::{Snapshots, is_system};

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

impl TableStore {
    /// Writes the memtable out, unless told not to, and gives all files second names in the snapshot's
    /// directory. Gives the names of the data files.
    ///
    /// # Errors
    /// The table is dropped meanwhile, or the disk fails.
    pub async fn snapshot(self: &Rc<Self>, tag: String, skip_flush: bool) -> Result<Vec<String>, TableError> {
        if !skip_flush {
            self.flush().await?;
        }
        let linked = Linker::new(self, move |table| snapshot_directory(table, &tag)).link_all_files().await;
        self.unless_dropped(linked)
    }

    /// Keeps the files of a table that is dropped or truncated, if that is wanted.
    pub(super) async fn auto_snapshot(&self, occasion: Occasion) -> Result<(), TableError> {
        let has_none = self.files.all().is_empty() && !self.files.is_damaged();
        if !wants_auto_snapshot(self) || has_none {
            return Ok(());
        }
        let (shared, table) = (&self.shared, self.table());
        let word = match occasion {
            Occasion::Dropped => "dropped",
            Occasion::Truncated => "truncated",
        };
        let now_ms = shared.runtime.clock.now_seconds().saturating_mul(1000);
        let prefix = format!("{word}-{now_ms}-{}", table.name());
        let tag = shared.registry.snapshot_tag(table.id(), word, shared.index, prefix);
        let of_tag = tag.clone();
        let linker = Linker::new(self, move |table| snapshot_directory(table, &of_tag));
        let names = linker.link_all_files().await?;
        Snapshots::of(shared).finish(&table, &tag, names).await
    }
}

/// Is the table snapshot before it goes?
pub(super) fn wants_auto_snapshot(store: &TableStore) -> bool {
    let is_wanted = |table: &schema::Table| table.options().allow_auto_snapshot && !is_system(table);
    store.shared.snapshot_options.is_automatic && store.with_table(is_wanted)
}

/// Keeps a flushed file in `backups`, if that is wanted. A failure costs the backup, not the flush.
pub(super) async fn back_up(store: &TableStore, file: Option<Arc<TableFile>>) {
    let table = store.table();
    let Some(file) = file else { return };
    if !store.shared.registry.incremental_backups()
        || !table.options().incremental_backups
        || is_system(&table)
    {
        return;
    }
    if let Err(error) = Linker::new(store, |table: &Path| table.join("backups")).link(&[file]).await {
        tracing::error!(keyspace = table.keyspace(), table = table.name(), %error, "a flushed file was not kept as a backup");
    }
}

/// Gives files of a table second names, in directories beside those where they are.
struct Linker<'a, DirectoryOf> {
    store: &'a TableStore,
    directory_of: DirectoryOf,
}

impl<'a, DirectoryOf> Linker<'a, DirectoryOf>
where
    DirectoryOf: Fn(&Path) -> PathBuf + Clone + Send + 'static,
{
    fn new(store: &'a TableStore, directory_of: DirectoryOf) -> Self {
        Linker { store, directory_of }
    }

    /// As [`Linker::link`], for all of a table. Of files that hold partitions of other shards, those of this one
    /// are copied: whole they would bring back what another has deleted and forgotten. Files that can not be read,
    /// which may be well another day, are linked as far as that goes.
    async fn link_all_files(&self) -> Result<Vec<String>, TableError> {
        let shared = &self.store.shared;
        let files = self.store.files.all();
        let damaged: Vec<Uuid> = self.store.files.damage().iter().map(|damaged| damaged.id).collect();
        // All of them from here on: one may be merged with others while another is looked at.
        let ids = files.iter().map(|file| file.descriptor().id).chain(damaged.iter().copied());
        ids.for_each(|id| shared.registry.retain(id));
        let linked = self.link_or_copy(&files).await;
        shared.release_files(&files).await;
        let mut names = Vec::new();
        for id in damaged {
            match self.link_unopened(id).await {
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

    async fn link_or_copy(&self, files: &[Arc<TableFile>]) -> Result<Vec<String>, TableError> {
        let (mut whole, mut names) = (Vec::new(), Vec::new());
        for file in files {
            let copied = match self.holds_others(file).await {
                true => self.copy_own(file).await?,
                false => None,
            };
            match copied {
                Some(name) => names.extend(name),
                None => whole.push(Arc::clone(file)),
            }
        }
        names.extend(self.link(&whole).await?);
        Ok(names)
    }

    /// Does a file hold partitions of other shards, or may some of its own be told by other files by now? What can not
    /// be read of it counts as the shard's own.
    async fn holds_others(&self, file: &Arc<TableFile>) -> bool {
        if self.store.files.scopes_of(file).is_some() {
            return true;
        }
        let shared = &self.store.shared;
        if shared.sharding.shard_count() == 1 {
            return false;
        }
        let (file, sharding, shard) = (Arc::clone(file), shared.sharding, shared.index);
        shared.runtime.io.run(move || tells_of_others(&file, sharding, shard)).await.unwrap_or(false)
    }

    /// Writes what a file has of this shard to the directory, and gives the name of its Data, or none where there is
    /// nothing; `None` when not all of it can be read.
    async fn copy_own(&self, file: &Arc<TableFile>) -> Result<Option<Option<String>>, TableError> {
        let runtime = &self.store.shared.runtime;
        let directory = (self.directory_of)(&file.descriptor().directory);
        let copy = Descriptor::new(directory, runtime.random.uuid_v1(&*runtime.clock));
        let (salvaged, written) = self.store.salvage(file, Soundness::Unknown, copy.clone()).await?;
        if salvaged.lost_count() == 0 {
            return Ok(Some(written.map(|_| copy.file_name(Component::Data))));
        }
        tracing::warn!(path = %file.descriptor().path(Component::Data).display(), "a damaged file is in the snapshot as it is, also with what other shards may have deleted");
        if written.is_some() {
            let disk = Arc::clone(&runtime.disk);
            runtime.io.run(move || sstable::delete_table_file(&*disk, &copy)).await?;
        }
        Ok(None)
    }

    /// Links a file that could not be opened and is held until then.
    async fn link_unopened(&self, id: Uuid) -> Result<Vec<String>, TableError> {
        let shared = &self.store.shared;
        let located = shared.locate(self.store.table(), id).await;
        let Ok(descriptor) = located else {
            shared.registry.release(id);
            return located.map(|_| Vec::new());
        };
        let (disk, to_link) = (Arc::clone(&shared.runtime.disk), descriptor.clone());
        let directory_of = self.directory_of.clone();
        let linked = shared.runtime.io.run(move || link_all(&*disk, &[to_link], directory_of)).await;
        shared.release_unopened(descriptor).await?;
        linked
    }

    /// Gives files second names; gives the names of their data files.
    async fn link(&self, files: &[Arc<TableFile>]) -> Result<Vec<String>, TableError> {
        let shared = &self.store.shared;
        files.iter().for_each(|file| shared.registry.retain(file.descriptor().id));
        let descriptors: Vec<Descriptor> = files.iter().map(|file| file.descriptor().clone()).collect();
        let (disk, directory_of) = (Arc::clone(&shared.runtime.disk), self.directory_of.clone());
        let linked = shared.runtime.io.run(move || link_whole(&*disk, &descriptors, directory_of)).await;
        shared.release_files(files).await;
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
) -> Result<Vec<String>, TableError> {
    let names = link_all(disk, descriptors, &directory_of)?;
    let toc = |descriptor: &Descriptor| {
        directory_of(&descriptor.directory).join(descriptor.file_name(Component::Toc))
    };
    let fail = |source| TableError::Disk { act: "create snapshot", source };
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
) -> Result<Vec<String>, TableError> {
    let fail = |source| TableError::Disk { act: "create snapshot directory", source };
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rows::MutationBuilder;
    use runtime::MemoryDisk;
    use schema::{ColumnKind, TableBuilder, TableId};

    use super::*;
    use crate::write_memtable;
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
