//! Table files looked through and mended while the node runs (`nodetool verify`, `nodetool scrub`).
//!
//! ```text
//!   data/<keyspace>/<table>-<table id>/quarantine/da-<file id>-bti-<component>
//! ```
//!
//! A damaged file is *set aside*: its components get second names in `quarantine` beside its table, the
//! manifest forgets it, and only then its own names go. Nothing is lost that was not lost before, and a
//! file mended by hand can be brought back with `nodetool import`.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use manifest::{Edit, counts};
use runtime::{Disk, EntryKind};
use schema::{CompressionOptions, Table, TableId};
use sstable::{Component, Descriptor, SstableError, TableFile, TableWriter, WriterOptions};
use types::Token;
use upkeep::Salvaged;
use uuid::Uuid;

use super::commit::{FileChange, Removed};
use super::{Shard, TableStore};
use crate::StorageError;

/// Where damaged files are set aside, below their table's directory.
pub(crate) const QUARANTINE: &str = "quarantine";

/// What `verify` says of a file.
#[derive(Clone, Debug)]
pub struct FileVerdict {
    /// Its Data.
    pub path: PathBuf,
    /// What is wrong with it, if anything is.
    pub problem: Option<String>,
}

/// What `scrub` did with a file that was damaged.
#[derive(Clone, Debug)]
pub struct ScrubbedFile {
    /// Its Data, as it was.
    pub path: PathBuf,
    /// What was wrong with it.
    pub problem: String,
    /// Partitions that are in a new file now.
    pub kept: u64,
    /// Partitions that could not be read.
    pub lost: u64,
}

/// What is known of a file that is to be written anew.
#[derive(Clone, Copy, Debug)]
pub(super) enum Soundness {
    Damaged,
    Unknown,
}

impl Shard {
    /// Reads all files of a table through, every checksum and every row.
    ///
    /// # Errors
    /// There is no such table, or the node is stopping. That files are damaged is in the answer.
    pub async fn verify(self: &Rc<Self>, table: TableId) -> Result<Vec<FileVerdict>, StorageError> {
        let store = self.store(table)?;
        let mut verdicts: Vec<FileVerdict> = Vec::new();
        for damaged in store.damage.borrow().iter() {
            let path = Descriptor::new(self.layout.table(&store.table()), damaged.id).path(Component::Data);
            verdicts.push(FileVerdict { path, problem: Some(damaged.reason.clone()) });
        }
        for file in store.files().iter() {
            let problem = self.verify_file(&store, file).await?;
            verdicts.push(FileVerdict { path: file.descriptor().path(Component::Data), problem });
        }
        Ok(verdicts)
    }

    /// What is wrong with a file; the policy is asked when something is.
    async fn verify_file(
        &self,
        store: &TableStore,
        file: &Arc<TableFile>,
    ) -> Result<Option<String>, StorageError> {
        let to_read = Arc::clone(file);
        let read = self.runtime.background.run_long("verify", move || to_read.verify()).await;
        let Err(error) = read? else { return Ok(None) };
        let (problem, error) = (error.to_string(), StorageError::from(error));
        self.note_fault("verify", &error);
        store.compacting.suspect(file.descriptor().id);
        // Left where it is, also under `best_effort`: a scrub may still save the most of it.
        Ok(Some(problem))
    }

    /// Writes what can be read of the damaged files of a table into new ones and sets the damaged ones
    /// aside; sound files are left alone. From then on reads are answered without what was lost.
    ///
    /// # Errors
    /// A new file or the manifest can not be written; what is not done yet is as before.
    pub async fn scrub(self: &Rc<Self>, table: TableId) -> Result<Vec<ScrubbedFile>, StorageError> {
        let store = self.store(table)?;
        let mut damaged = Vec::new();
        for file in store.files().iter() {
            let to_read = Arc::clone(file);
            let read = self.runtime.background.run_long("scrub", move || to_read.verify()).await;
            if let Err(error) = read? {
                damaged.push((Arc::clone(file), error));
            }
        }
        let _at_rest = store.compact_turn.lock().await;
        let mut scrubbed = Vec::new();
        for (file, error) in damaged {
            if store.files().iter().any(|other| other.number() == file.number()) {
                scrubbed.push(self.scrub_file(&store, &file, &error).await?);
            }
        }
        let unreadable = store.damage.borrow().clone();
        for damaged in unreadable {
            let path = self.set_aside_unopened(&store, damaged.id).await?;
            store.damage.borrow_mut().retain(|other| other.id != damaged.id);
            scrubbed.push(ScrubbedFile { path, problem: damaged.reason, kept: 0, lost: 0 });
        }
        for file in &scrubbed {
            tracing::warn!(path = %file.path.display(), kept = file.kept, lost = file.lost, "a damaged table file was set aside");
        }
        Ok(scrubbed)
    }

    async fn scrub_file(
        self: &Rc<Self>,
        store: &Rc<TableStore>,
        file: &Arc<TableFile>,
        problem: &SstableError,
    ) -> Result<ScrubbedFile, StorageError> {
        let id = self.runtime.random.uuid_v1(&*self.runtime.clock);
        let target = Descriptor::new(self.table_directory(&store.table())?, id);
        let (salvaged, new) = self.salvage(store, file, Soundness::Damaged, target).await?;
        self.link_aside(file.descriptor().clone()).await?;
        let change = FileChange {
            added: new.clone().into_iter().collect(),
            removed: Removed::These(vec![file.descriptor().id]),
            flushed: None,
        };
        if let Some(gone) = self.commit_new(store, change).await? {
            self.delete_files(&gone).await;
        }
        Ok(ScrubbedFile {
            path: file.descriptor().path(Component::Data),
            problem: problem.to_string(),
            kept: salvaged.kept,
            lost: salvaged.lost_count(),
        })
    }

    /// Writes what can be read of a file and is this shard's to a new one, which is `None` when there is nothing. What
    /// others own, or has gone from this file, is told by other files.
    pub(super) async fn salvage(
        &self,
        store: &TableStore,
        file: &Arc<TableFile>,
        soundness: Soundness,
        target: Descriptor,
    ) -> Result<(Salvaged, Option<Arc<TableFile>>), StorageError> {
        let (disk, file, table) = (Arc::clone(&self.runtime.disk), Arc::clone(file), store.table());
        let (compression, scopes) = (store.compression(), store.scopes_of(&file));
        let (sharding, shard) = (self.sharding, self.index);
        let is_told = move |token| {
            sharding.shard_of(token) == shard && scopes.as_ref().is_none_or(|scopes| counts(scopes, token))
        };
        let job = move || rewrite(disk, (&file, soundness), is_told, target, &table, compression);
        self.runtime.background.run_long("salvage", job).await?
    }

    /// Sets a file aside that readers do not use any more.
    pub(super) async fn set_aside(
        &self,
        store: &TableStore,
        file: &Arc<TableFile>,
    ) -> Result<(), StorageError> {
        self.link_aside(file.descriptor().clone()).await?;
        self.forget_in_manifest(store, file.descriptor().id).await?;
        self.release_files(std::slice::from_ref(file)).await;
        Ok(())
    }

    /// The same of one that can not even be opened.
    async fn set_aside_unopened(&self, store: &TableStore, id: Uuid) -> Result<PathBuf, StorageError> {
        let descriptor = self.locate(store, id).await?;
        self.link_aside(descriptor.clone()).await?;
        self.forget_in_manifest(store, id).await?;
        let path = descriptor.path(Component::Data);
        self.release_unopened(descriptor).await?;
        Ok(path)
    }

    /// Where a file of a table lies that could not be opened.
    pub(super) async fn locate(&self, store: &TableStore, id: Uuid) -> Result<Descriptor, StorageError> {
        let (disk, layout, table) = (Arc::clone(&self.runtime.disk), self.layout.clone(), store.table());
        Ok(self.runtime.io.run(move || layout.locate(&*disk, &table, id)).await?)
    }

    /// Lets go of such a file; one that nobody lists or holds any more is deleted.
    pub(super) async fn release_unopened(&self, descriptor: Descriptor) -> Result<(), StorageError> {
        if self.registry.release(descriptor.id) {
            let disk = Arc::clone(&self.runtime.disk);
            self.runtime.io.run(move || sstable::delete_table_file(&*disk, &descriptor)).await?;
        }
        Ok(())
    }

    async fn link_aside(&self, descriptor: Descriptor) -> Result<(), StorageError> {
        let disk = Arc::clone(&self.runtime.disk);
        let fail = |source| StorageError::Disk { act: "set a damaged file aside", source };
        let link = move || {
            let directory = descriptor.directory.join(QUARANTINE);
            disk.create_dir_all(&directory).map_err(fail)?;
            upkeep::link_into(&*disk, &descriptor, &directory)?;
            disk.sync_dir(&directory).map_err(fail)
        };
        self.runtime.io.run(link).await
    }

    async fn forget_in_manifest(&self, store: &TableStore, id: Uuid) -> Result<(), StorageError> {
        let forget = async {
            let mut manifest = self.manifest.lock().await;
            if !manifest.files(store.table().id()).contains(&id) {
                // The table was truncated or dropped meanwhile.
                return Ok(());
            }
            let edit = Edit { removed: vec![id], ..Edit::default() };
            let next = manifest.edited(store.table().id(), &edit, self.timestamps.mark());
            self.replace_manifest(&mut manifest, next).await
        };
        self.runtime.failsafe.guarded("a file that is set aside", forget).await
    }

    /// Table files that were set aside, by their Data.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn quarantined(&self) -> Result<Vec<PathBuf>, StorageError> {
        let disk = Arc::clone(&self.runtime.disk);
        let directories = self.layout.all_data_directories();
        self.runtime
            .io
            .run(move || {
                let mut found = Vec::new();
                for data in &directories {
                    list_quarantined(&*disk, data, &mut found)?;
                }
                Ok(found)
            })
            .await
    }
}

/// On a background thread: what can be read of a file, in a new one; `None` when nothing can be.
fn rewrite(
    disk: Arc<dyn Disk>,
    (file, soundness): (&Arc<TableFile>, Soundness),
    counts: impl Fn(Token) -> bool,
    target: Descriptor,
    table: &Arc<Table>,
    compression: CompressionOptions,
) -> Result<(Salvaged, Option<Arc<TableFile>>), StorageError> {
    let options = WriterOptions { compression, ..WriterOptions::for_file_of(table, file.summary()) };
    let writer = || {
        disk.create_dir_all(&target.directory)?;
        TableWriter::create(Arc::clone(&disk), target.clone(), Arc::clone(table), options.clone())
    };
    let salvaged = match soundness {
        Soundness::Damaged => upkeep::salvage(file, counts, writer)?,
        Soundness::Unknown => upkeep::copy_or_salvage(file, counts, writer)?,
    };
    if salvaged.kept == 0 {
        return Ok((salvaged, None));
    }
    let file = TableFile::open(Arc::clone(&disk), target, table)?;
    Ok((salvaged, Some(file)))
}

/// Adds what lies in the quarantines of all tables below a directory.
fn list_quarantined(disk: &dyn Disk, data: &Path, found: &mut Vec<PathBuf>) -> Result<(), StorageError> {
    let fail = |source| StorageError::Disk { act: "list set aside files", source };
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
