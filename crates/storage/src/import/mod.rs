//! Table files that come from elsewhere: `nodetool import` and `refresh`.
//!
//! | a reader asks | file |
//! |---|---|
//! | which files of a directory count, and how is one brought in? | the crate `upkeep` |
//! | what if a crash comes in between? | `journal.rs` |
//! | how does it become part of a table? | here, and `import.rs` of the crate `table` |
//!
//! A file gets a new id and our checksums, and each shard that owns a partition of it lists it; reads
//! take what is theirs, and compaction splits it.

pub(crate) mod journal;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use schema::TableId;
use sstable::{Descriptor, TableFile};
use table::ImportTarget;
use upkeep::{Brought, ImportOptions};
use uuid::Uuid;

use crate::shard::{Shard, imports};
use crate::{Shards, StorageError};

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Table files that are part of the table now.
    pub file_count: usize,
    /// Partitions in them.
    pub partition_count: u64,
    /// Bytes of them.
    pub disk_bytes: u64,
}

impl Shards {
    /// Makes the table files of a directory part of a table: all or none of them, also if the process
    /// is killed.
    ///
    /// # Errors
    /// A file does not fit the table, is damaged, or of a version that is not read; the disk fails.
    /// Nothing was imported then, and the directory is as it was.
    ///
    /// # Cancel safety
    /// Dropped, files may be imported; what is half done is taken back by the next start.
    pub async fn import(
        &self,
        table: TableId,
        directory: PathBuf,
        options: ImportOptions,
    ) -> Result<ImportSummary, StorageError> {
        let list = move |shard: Rc<Shard>| async move {
            shard.table(table)?;
            imports::list(&shard, directory).await
        };
        let sources = self.on_when_free(0, list).await??;
        self.bring_in(table, sources, options).await
    }

    /// Makes table files that were placed in the table's own directory part of it.
    ///
    /// # Errors
    /// As [`Shards::import`].
    ///
    /// # Cancel safety
    /// As [`Shards::import`].
    pub async fn refresh(
        &self,
        table: TableId,
        options: ImportOptions,
    ) -> Result<ImportSummary, StorageError> {
        let list = move |shard: Rc<Shard>| async move {
            Ok::<_, StorageError>(target(&shard, table)?.list_placed().await?)
        };
        let mut sources = self.on_when_free(0, list).await??;
        // Files that were being written when the directory was listed are known by now, or gone.
        for shard in 0..self.count() {
            let settle = move |shard: Rc<Shard>| async move {
                Ok::<_, StorageError>(target(&shard, table)?.settled_files().await)
            };
            let known = self.on_when_free(shard, settle).await??;
            sources.retain(|source| !known.contains(&source.id));
        }
        let exists =
            move |shard: Rc<Shard>| async move { imports::still_there(shard.shared(), sources).await };
        let sources = self.on_when_free(0, exists).await??;
        self.bring_in(table, sources, ImportOptions { copy_data: false, ..options }).await
    }

    async fn bring_in(
        &self,
        table: TableId,
        sources: Vec<Descriptor>,
        options: ImportOptions,
    ) -> Result<ImportSummary, StorageError> {
        if sources.is_empty() {
            return Ok(ImportSummary::default());
        }
        let kept = sources.clone();
        let bring = move |shard: Rc<Shard>| async move {
            let brought = target(&shard, table)?.bring(kept, options).await?;
            imports::begin(&shard, table, brought).await
        };
        let (journal, brought) = self.on_when_free(0, bring).await??;
        // The sources go when all is done. No test can break it: both sides know one rule.
        let mut owners = brought.iter().filter_map(|brought| brought.shards.as_ref()).flatten();
        assert!(owners.all(|shard| *shard < self.count()), "what is brought in is a running shard's");
        let mut result = Ok(());
        for shard in 0..self.count() {
            let is_mine =
                |brought: &&Brought| brought.shards.as_ref().is_none_or(|shards| shards.contains(&shard));
            let files: Vec<Arc<TableFile>> =
                brought.iter().filter(is_mine).map(|brought| Arc::clone(&brought.file)).collect();
            let add = move |shard: Rc<Shard>| async move { Ok(target(&shard, table)?.add(files).await?) };
            result = self.on_when_free(shard, add).await.and_then(|added| added);
            if result.is_err() {
                break;
            }
        }
        if result.is_err() {
            for shard in 0..self.count() {
                let files: Vec<Arc<TableFile>> =
                    brought.iter().map(|brought| Arc::clone(&brought.file)).collect();
                let remove = move |shard: Rc<Shard>| async move {
                    match target(&shard, table) {
                        Ok(target) => target.remove(files).await,
                        Err(_) => Ok(()),
                    }
                };
                self.on_when_free(shard, remove).await??;
            }
        }
        let summary = ImportSummary {
            file_count: brought.len(),
            partition_count: brought.iter().map(|brought| brought.file.summary().partition_count).sum(),
            disk_bytes: brought.iter().map(|brought| brought.file.summary().disk_bytes).sum(),
        };
        let files: Vec<Uuid> = brought.iter().map(|brought| brought.file.descriptor().id).collect();
        let are_moved = result.is_ok() && !options.copy_data;
        let gone = if are_moved { sources } else { Vec::new() };
        let end =
            move |shard: Rc<Shard>| async move { imports::end(shard.shared(), journal, brought, gone).await };
        self.on_when_free(0, end).await??;
        for shard in 0..self.count() {
            let files = files.clone();
            let keep = move |shard: Rc<Shard>| async move {
                if let Ok(target) = target(&shard, table) {
                    target.keep(&files);
                }
            };
            self.on_when_free(shard, keep).await?;
        }
        result.map(|()| summary)
    }
}

/// The table on a shard that files are brought into.
fn target(shard: &Shard, table: TableId) -> Result<ImportTarget, StorageError> {
    Ok(ImportTarget(shard.table(table)?))
}
