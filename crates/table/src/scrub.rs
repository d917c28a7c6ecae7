//! Table files looked through and mended while the node runs (`nodetool verify`, `nodetool scrub`).
//!
//! ```text
//!   data/<keyspace>/<table>-<table id>/quarantine/da-<file id>-bti-<component>
//! ```
//!
//! A damaged file is *set aside*: its components get second names in `quarantine` beside its table, the
//! manifest forgets it, and only then its own names go. Nothing is lost that was not lost before, and a
//! file mended by hand can be brought back with `nodetool import`.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use manifest::{Edit, counts};
use runtime::Disk;
use schema::{CompressionOptions, Table};
use sstable::{Component, Descriptor, SstableError, TableFile, TableWriter, WriterOptions};
use types::Token;
use upkeep::Salvaged;
use uuid::Uuid;

use super::{FileChange, TableStore};
use crate::TableError;

/// Where damaged files are set aside, below their table's directory.
pub const QUARANTINE: &str = "quarantine";

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

impl TableStore {
    /// Reads all files of the table through, every checksum and every row.
    ///
    /// # Errors
    /// The node is stopping. That files are damaged is in the answer.
    pub async fn verify(&self) -> Result<Vec<FileVerdict>, TableError> {
        let mut verdicts: Vec<FileVerdict> = Vec::new();
        for damaged in self.files.damage() {
            let directory = self.shared.directories.table(&self.table());
            let path = Descriptor::new(directory, damaged.id).path(Component::Data);
            verdicts.push(FileVerdict { path, problem: Some(damaged.reason) });
        }
        for file in self.files.all().iter() {
            let problem = problem_of(self, file).await?;
            verdicts.push(FileVerdict { path: file.descriptor().path(Component::Data), problem });
        }
        Ok(verdicts)
    }

    /// Writes what can be read of the damaged files of the table into new ones and sets the damaged ones
    /// aside; sound files are left alone. From then on reads are answered without what was lost.
    ///
    /// # Errors
    /// A new file or the manifest can not be written; what is not done yet is as before.
    pub async fn scrub(self: &Rc<Self>) -> Result<Vec<ScrubbedFile>, TableError> {
        let mut damaged = Vec::new();
        for file in self.files.all().iter() {
            let to_read = Arc::clone(file);
            let read = self.shared.runtime.background.run_long("scrub", move || to_read.verify()).await;
            if let Err(error) = read? {
                damaged.push((Arc::clone(file), error));
            }
        }
        let _at_rest = self.compaction.at_rest().await;
        let (mut scrubbed, quarantine) = (Vec::new(), Quarantine(self));
        for (file, error) in damaged {
            if self.files.all().iter().any(|other| other.number() == file.number()) {
                scrubbed.push(quarantine.scrub_file(&file, &error).await?);
            }
        }
        for damaged in self.files.damage() {
            let path = quarantine.take_unopened(damaged.id).await?;
            self.files.forget_damage(damaged.id);
            scrubbed.push(ScrubbedFile { path, problem: damaged.reason, kept: 0, lost: 0 });
        }
        for file in &scrubbed {
            tracing::warn!(path = %file.path.display(), kept = file.kept, lost = file.lost, "a damaged table file was set aside");
        }
        Ok(scrubbed)
    }

    /// Writes what can be read of a file and is this shard's to a new one, which is `None` when there is nothing. What
    /// others own, or has gone from this file, is told by other files.
    pub(super) async fn salvage(
        &self,
        file: &Arc<TableFile>,
        soundness: Soundness,
        target: Descriptor,
    ) -> Result<(Salvaged, Option<Arc<TableFile>>), TableError> {
        let shared = &self.shared;
        let (disk, file, table) = (Arc::clone(&shared.runtime.disk), Arc::clone(file), self.table());
        let (compression, scopes) = (self.compression(), self.files.scopes_of(&file));
        let (sharding, shard) = (shared.sharding, shared.index);
        let is_told = move |token| {
            sharding.shard_of(token) == shard && scopes.as_ref().is_none_or(|scopes| counts(scopes, token))
        };
        let job = move || rewrite(disk, (&file, soundness), is_told, target, &table, compression);
        shared.runtime.background.run_long("salvage", job).await?
    }
}

/// What is wrong with a file; the policy is asked when something is.
async fn problem_of(store: &TableStore, file: &Arc<TableFile>) -> Result<Option<String>, TableError> {
    let to_read = Arc::clone(file);
    let read = store.shared.runtime.background.run_long("verify", move || to_read.verify()).await;
    let Err(error) = read? else { return Ok(None) };
    let (problem, error) = (error.to_string(), TableError::from(error));
    store.shared.note_fault("verify", &error);
    store.compaction.suspect(file.descriptor().id);
    // Left where it is, also under `best_effort`: a scrub may still save the most of it.
    Ok(Some(problem))
}

/// Where the damaged files of a table go.
pub(crate) struct Quarantine<'a>(pub(crate) &'a TableStore);

impl Quarantine<'_> {
    /// Sets a file aside that readers do not use any more.
    pub(crate) async fn take(&self, file: &Arc<TableFile>) -> Result<(), TableError> {
        self.link(file.descriptor().clone()).await?;
        self.forget_in_manifest(file.descriptor().id).await?;
        self.0.shared.release_files(std::slice::from_ref(file)).await;
        Ok(())
    }

    /// The same of one that can not even be opened.
    async fn take_unopened(&self, id: Uuid) -> Result<PathBuf, TableError> {
        let shared = &self.0.shared;
        let descriptor = shared.locate(self.0.table(), id).await?;
        self.link(descriptor.clone()).await?;
        self.forget_in_manifest(id).await?;
        let path = descriptor.path(Component::Data);
        shared.release_unopened(descriptor).await?;
        Ok(path)
    }

    /// The same of one of which what can be read comes into a new file.
    async fn scrub_file(
        &self,
        file: &Arc<TableFile>,
        problem: &SstableError,
    ) -> Result<ScrubbedFile, TableError> {
        let (store, shared) = (self.0, &self.0.shared);
        let id = shared.runtime.random.uuid_v1(&*shared.runtime.clock);
        let target = Descriptor::new(shared.table_directory(&store.table())?, id);
        let (salvaged, new) = store.salvage(file, Soundness::Damaged, target).await?;
        self.link(file.descriptor().clone()).await?;
        let change = FileChange::replacing(vec![file.descriptor().id], new.into_iter().collect());
        if let Some(gone) = change.commit_new(store).await? {
            shared.delete_files(&gone).await;
        }
        Ok(ScrubbedFile {
            path: file.descriptor().path(Component::Data),
            problem: problem.to_string(),
            kept: salvaged.kept,
            lost: salvaged.lost_count(),
        })
    }

    async fn link(&self, descriptor: Descriptor) -> Result<(), TableError> {
        let runtime = &self.0.shared.runtime;
        let disk = Arc::clone(&runtime.disk);
        let fail = |source| TableError::Disk { act: "set a damaged file aside", source };
        let link = move || {
            let directory = descriptor.directory.join(QUARANTINE);
            disk.create_dir_all(&directory).map_err(fail)?;
            upkeep::link_into(&*disk, &descriptor, &directory)?;
            disk.sync_dir(&directory).map_err(fail)
        };
        runtime.io.run(link).await
    }

    async fn forget_in_manifest(&self, id: Uuid) -> Result<(), TableError> {
        let (shared, table) = (&self.0.shared, self.0.id());
        let forget = async {
            let mut manifest = shared.manifest.lock().await;
            if !manifest.files(table).contains(&id) {
                // The table was truncated or dropped meanwhile.
                return Ok(());
            }
            let edit = Edit { removed: vec![id], ..Edit::default() };
            let next = manifest.edited(table, &edit, shared.timestamps.mark());
            shared.replace_manifest(&mut manifest, next).await
        };
        shared.runtime.failsafe.guarded("a file that is set aside", forget).await
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
) -> Result<(Salvaged, Option<Arc<TableFile>>), TableError> {
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
