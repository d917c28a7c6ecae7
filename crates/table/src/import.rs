//! A table's part in an import on its shard; that it is in all shards or in none is for the node to see to.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use sstable::{Descriptor, TableFile};
use upkeep::{BringJob, Brought, ImportOptions, list_source};
use uuid::Uuid;

use super::commit::ids;
use super::{FileChange, TableStore};
use crate::TableError;

/// The table that files are brought into.
pub struct ImportTarget(pub Rc<TableStore>);

impl ImportTarget {
    /// All files in the table's own directory.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn list_placed(&self) -> Result<Vec<Descriptor>, TableError> {
        let shared = &self.0.shared;
        let directories = shared.directories.tables(&self.0.table());
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
    pub async fn settled_files(&self) -> BTreeSet<Uuid> {
        let store = &self.0;
        let _flushing = store.flush_turn.lock().await;
        let _compacting = store.compaction.at_rest().await;
        let mut files: BTreeSet<Uuid> =
            store.shared.manifest.lock().await.files(store.id()).into_iter().collect();
        files.extend(store.memtables.written_ids());
        files
    }

    /// Brings files into the table's directory. They are held until the import ends.
    ///
    /// # Errors
    /// One does not fit the table or is damaged, or the disk fails; none is brought then.
    pub async fn bring(
        &self,
        sources: Vec<Descriptor>,
        options: ImportOptions,
    ) -> Result<Vec<Brought>, TableError> {
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
        brought.iter().for_each(|brought| shared.registry.retain(brought.file.descriptor().id));
        Ok(brought)
    }

    /// Makes files part of the table here. They are not compacted before [`ImportTarget::keep`]: what is
    /// taken out again must still be files of its own.
    ///
    /// # Errors
    /// The table is gone, or the disk fails.
    pub async fn add(&self, files: Vec<Arc<TableFile>>) -> Result<(), TableError> {
        self.0.compaction.hold(&ids(&files));
        match FileChange::adding(files).commit(&self.0).await? {
            Some(_) => Ok(()),
            None => Err(TableError::NoTable { table: self.0.id() }),
        }
    }

    /// Takes files out again, as far as they are still here.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn remove(&self, files: Vec<Arc<TableFile>>) -> Result<(), TableError> {
        for file in files {
            let change = FileChange::replacing(vec![file.descriptor().id], Vec::new());
            if let Some(gone) = change.commit(&self.0).await? {
                self.0.shared.delete_files(&gone).await;
            }
        }
        Ok(())
    }

    /// Takes it that files stay, now that their import is over: they may be compacted.
    pub fn keep(&self, files: &[Uuid]) {
        self.0.compaction.let_go(files);
        self.0.start_compaction();
    }
}
