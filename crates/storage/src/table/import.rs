//! A table's part in an import on its shard; the whole is in `crate::import`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use sstable::{Descriptor, TableFile};
use upkeep::{BringJob, Brought, ImportOptions, list_source};
use uuid::Uuid;

use super::{FileChange, TableStore, ids};
use crate::StorageError;
use crate::import::journal::{self, Journal};
use crate::shard::imports;

/// The table that files are brought into.
pub(crate) struct ImportTarget(pub(crate) Rc<TableStore>);

impl ImportTarget {
    /// All files in the table's own directory.
    pub(crate) async fn list_placed(&self) -> Result<Vec<Descriptor>, StorageError> {
        let shared = &self.0.shared;
        let directories = shared.layout.tables(&self.0.table());
        let disk = Arc::clone(&shared.runtime.disk);
        let list = move || {
            let mut placed = Vec::new();
            for directory in directories {
                if !matches!(disk.exists(&directory), Ok(false)) {
                    placed.extend(list_source(&*disk, &directory)?);
                }
            }
            Ok(placed)
        };
        shared.runtime.io.run(list).await
    }

    /// The files of the table here, once what is being written is part of it.
    pub(crate) async fn settled_files(&self) -> BTreeSet<Uuid> {
        let store = &self.0;
        let _flushing = store.flush_turn.lock().await;
        let _compacting = store.compaction.at_rest().await;
        let mut files: BTreeSet<Uuid> =
            store.shared.manifest.lock().await.files(store.id()).into_iter().collect();
        files.extend(store.memtables.written_ids());
        files
    }

    /// Brings files into the table's directory and writes the journal. They are held until
    /// the import ends.
    pub(crate) async fn bring(
        &self,
        sources: Vec<Descriptor>,
        options: ImportOptions,
    ) -> Result<(PathBuf, Vec<Brought>), StorageError> {
        let (shared, definition) = (&self.0.shared, self.0.table());
        let job = BringJob {
            runtime: shared.runtime.clone(),
            directory: shared.table_directory(&definition)?,
            table: definition,
            sources,
            options,
            sharding: shared.sharding,
        };
        let brought = shared.runtime.background.run_long("import", move || job.run());
        let brought = brought.await??;
        let files: Vec<Uuid> = brought.iter().map(|brought| brought.file.descriptor().id).collect();
        files.iter().for_each(|file| shared.registry.retain(*file));
        let (id, table) = (shared.runtime.random.uuid_v4(), self.0.id());
        let (disk, layout) = (Arc::clone(&shared.runtime.disk), shared.layout.clone());
        let begin = move || journal::begin(&*disk, &layout, id, &Journal { table, files });
        match shared.runtime.io.run(begin).await {
            Ok(journal) => Ok((journal, brought)),
            Err(error) => {
                imports::release(shared, brought).await;
                Err(error)
            }
        }
    }

    /// Makes files part of the table here. They are not compacted before [`ImportTarget::keep`]: what is
    /// taken out again must still be files of its own.
    pub(crate) async fn add(&self, files: Vec<Arc<TableFile>>) -> Result<(), StorageError> {
        self.0.compaction.hold(&ids(&files));
        match FileChange::adding(files).commit(&self.0).await? {
            Some(_) => Ok(()),
            None => Err(StorageError::NoTable { table: self.0.id() }),
        }
    }

    /// Takes files out again, as far as they are still here.
    pub(crate) async fn remove(&self, files: Vec<Arc<TableFile>>) -> Result<(), StorageError> {
        for file in files {
            let change = FileChange::replacing(vec![file.descriptor().id], Vec::new());
            if let Some(gone) = change.commit(&self.0).await? {
                self.0.shared.delete_files(&gone).await;
            }
        }
        Ok(())
    }

    /// Takes it that files stay, now that their import is over: they may be compacted.
    pub(crate) fn keep(&self, files: &[Uuid]) {
        self.0.compaction.let_go(files);
        self.0.start_compaction();
    }
}
