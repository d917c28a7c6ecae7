//! A shard's part in an import; the whole is in `crate::import`.

use std::collections::BTreeSet;
use std::path::{Component as PathPart, Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use schema::TableId;
use sstable::{Component, Descriptor, TableFile};
use upkeep::{BringJob, Brought, ImportOptions, list_source};
use uuid::Uuid;

use super::Shard;
use super::commit::{FileChange, Removed, ids};
use crate::StorageError;
use crate::import::journal::{self, Journal};

impl Shard {
    /// The files of a directory that is not one of live files.
    pub(crate) async fn list_import(
        &self,
        table: TableId,
        directory: PathBuf,
    ) -> Result<Vec<Descriptor>, StorageError> {
        self.store(table)?;
        let (disk, data) = (Arc::clone(&self.runtime.disk), self.layout.all_data_directories());
        let list = move || {
            // The node's own directory may be named from where it was started, or through a link.
            let whole = |path: &Path| disk.canonical(path).unwrap_or_else(|_| path.to_owned());
            if data.iter().any(|data| is_live(&whole(data), &whole(&directory))) {
                let what = "live files of this node are in it; files placed there become part of their table with refresh";
                return Err(StorageError::Directory { path: directory, what: what.into() });
            }
            Ok(list_source(&*disk, &directory)?)
        };
        self.runtime.io.run(list).await
    }

    /// All files in the table's own directory.
    pub(crate) async fn list_placed(&self, table: TableId) -> Result<Vec<Descriptor>, StorageError> {
        let directories = self.layout.tables(&self.store(table)?.table());
        let disk = Arc::clone(&self.runtime.disk);
        let list = move || {
            let mut placed = Vec::new();
            for directory in directories {
                if !matches!(disk.exists(&directory), Ok(false)) {
                    placed.extend(list_source(&*disk, &directory)?);
                }
            }
            Ok(placed)
        };
        self.runtime.io.run(list).await
    }

    /// The files of the table here, once what is being written is part of it.
    pub(crate) async fn settled_files(&self, table: TableId) -> Result<BTreeSet<Uuid>, StorageError> {
        let store = self.store(table)?;
        let _flushing = store.flush_turn.lock().await;
        let _compacting = store.compact_turn.lock().await;
        let mut files: BTreeSet<Uuid> = self.manifest.lock().await.files(table).into_iter().collect();
        files.extend(store.frozen.borrow().iter().filter_map(super::flush::Frozen::written_id));
        Ok(files)
    }

    /// Those that have all their components.
    pub(crate) async fn still_there(
        &self,
        sources: Vec<Descriptor>,
    ) -> Result<Vec<Descriptor>, StorageError> {
        let disk = Arc::clone(&self.runtime.disk);
        let look = move || {
            let is_there = |source: &Descriptor| disk.exists(&source.path(Component::Toc)).unwrap_or(false);
            sources.into_iter().filter(is_there).collect()
        };
        Ok(self.runtime.io.run(look).await)
    }

    /// Brings files into the table's directory and writes the journal. They are held until
    /// [`Shard::end_import`].
    pub(crate) async fn bring(
        &self,
        table: TableId,
        sources: Vec<Descriptor>,
        options: ImportOptions,
    ) -> Result<(PathBuf, Vec<Brought>), StorageError> {
        let definition = self.store(table)?.table();
        let job = BringJob {
            runtime: self.runtime.clone(),
            directory: self.table_directory(&definition)?,
            table: definition,
            sources,
            options,
            sharding: self.sharding,
        };
        let brought = self.runtime.background.run_long("import", move || job.run());
        let brought = brought.await??;
        let files: Vec<Uuid> = brought.iter().map(|brought| brought.file.descriptor().id).collect();
        files.iter().for_each(|file| self.registry.retain(*file));
        let id = self.runtime.random.uuid_v4();
        let (disk, layout) = (Arc::clone(&self.runtime.disk), self.layout.clone());
        let begin = move || journal::begin(&*disk, &layout, id, &Journal { table, files });
        match self.runtime.io.run(begin).await {
            Ok(journal) => Ok((journal, brought)),
            Err(error) => {
                self.release(brought).await;
                Err(error)
            }
        }
    }

    /// Makes files part of the table here. They are not compacted before [`Shard::keep_imported`]: what is
    /// taken out again must still be files of its own.
    pub(crate) async fn add_imported(
        self: &Rc<Self>,
        table: TableId,
        files: Vec<Arc<TableFile>>,
    ) -> Result<(), StorageError> {
        let store = self.store(table)?;
        store.compacting.hold(&ids(&files));
        let change = FileChange { added: files, removed: Removed::These(Vec::new()), flushed: None };
        match self.commit(&store, change).await? {
            Some(_) => Ok(()),
            None => Err(StorageError::NoTable { table }),
        }
    }

    /// Takes files out again, as far as they are still here.
    pub(crate) async fn remove_imported(
        self: &Rc<Self>,
        table: TableId,
        files: Vec<Arc<TableFile>>,
    ) -> Result<(), StorageError> {
        let Ok(store) = self.store(table) else { return Ok(()) };
        for file in files {
            let id = file.descriptor().id;
            let change = FileChange { added: Vec::new(), removed: Removed::These(vec![id]), flushed: None };
            if let Some(gone) = self.commit(&store, change).await? {
                self.delete_files(&gone).await;
            }
        }
        Ok(())
    }

    /// Takes it that files stay, now that their import is over: they may be compacted.
    pub(crate) fn keep_imported(self: &Rc<Self>, table: TableId, files: &[Uuid]) {
        if let Ok(store) = self.store(table) {
            store.compacting.let_go(files);
            self.start_compaction(&store);
        }
    }

    /// Ends an import: from here on a start keeps what is listed. Deletes the sources that are moved.
    pub(crate) async fn end_import(
        &self,
        journal: PathBuf,
        brought: Vec<Brought>,
        sources: Vec<Descriptor>,
    ) -> Result<(), StorageError> {
        let disk = Arc::clone(&self.runtime.disk);
        let ended = self.runtime.io.run(move || journal::end(&*disk, &journal)).await;
        self.release(brought).await;
        ended?;
        let disk = Arc::clone(&self.runtime.disk);
        let delete = move || {
            for source in &sources {
                if let Err(error) = sstable::delete_table_file(&*disk, source) {
                    tracing::warn!(path = %source.path(Component::Data).display(), %error, "an imported file was not deleted where it came from");
                }
            }
        };
        self.runtime.io.run(delete).await;
        Ok(())
    }

    /// Lets go of files held for an import: those that no shard lists are deleted.
    async fn release(&self, brought: Vec<Brought>) {
        let files: Vec<Arc<TableFile>> = brought.into_iter().map(|brought| brought.file).collect();
        self.release_files(&files).await;
    }
}

/// Is a directory below that of all tables, and none of the copies kept there?
fn is_live(data: &Path, directory: &Path) -> bool {
    let is_copy = |part: PathPart<'_>| matches!(part, PathPart::Normal(name) if name == "snapshots" || name == "backups");
    directory.strip_prefix(data).is_ok_and(|below| !below.components().any(is_copy))
}
