//! How a change of a table's files becomes true: in the manifest, durably, and then for readers.
//!
//! ```text
//!   flush, compaction, import, scrub, truncation ──► commit ─┬─ the manifest is another, in one step
//!                                                             └─ readers have other files, in one step
//! ```
//!
//! Nobody else changes either meanwhile. A change that no longer fits, since somebody else was first, is not made.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use commitlog::LogPosition;
use manifest::{Edit, Position};
use runtime::Plant;
use sstable::TableFile;
use uuid::Uuid;

use super::{Shard, TableStore};
use crate::StorageError;

/// A change of the files of a table.
pub(super) struct FileChange {
    pub(super) added: Vec<Arc<TableFile>>,
    pub(super) removed: Removed,
    /// Replay begins here from now on.
    pub(super) flushed: Option<LogPosition>,
}

/// Which files go.
pub(super) enum Removed {
    These(Vec<Uuid>),
    /// All that there are when the change is made.
    All,
}

impl Shard {
    /// Makes a change of a table's files durable and then true for readers, in one step: nobody
    /// else changes the manifest or the table's files meanwhile. Gives the files that went; `None`
    /// when the change no longer fits, because a file it removes or the table is gone already.
    pub(super) async fn commit(
        &self,
        store: &TableStore,
        change: FileChange,
    ) -> Result<Option<Vec<Arc<TableFile>>>, StorageError> {
        self.runtime.failsafe.guarded("a change of table files", self.commit_in_turn(store, change)).await
    }

    async fn commit_in_turn(
        &self,
        store: &TableStore,
        change: FileChange,
    ) -> Result<Option<Vec<Arc<TableFile>>>, StorageError> {
        let mut manifest = self.manifest.lock().await;
        let files = store.files();
        let removed: Vec<Arc<TableFile>> = match &change.removed {
            Removed::All => files.to_vec(),
            Removed::These(ids) => {
                files.iter().filter(|file| ids.contains(&file.descriptor().id)).cloned().collect()
            }
        };
        let still_fits = match &change.removed {
            Removed::All => true,
            Removed::These(ids) => removed.len() == ids.len(),
        };
        if !still_fits || store.is_dropped.get() {
            return Ok(None);
        }
        let table = store.table().id();
        let named = match change.removed {
            // Those that can not be read, too.
            Removed::All => manifest.files(table),
            Removed::These(ids) => ids,
        };
        let is_flush = change.flushed.is_some();
        let flushed = change.flushed.map(Position::from);
        let mut edit = Edit { added: ids(&change.added), removed: named, flushed, ..Edit::default() };
        if !edit.removed.is_empty() && self.runtime.plants.has(Plant::UnnamedFileRemoved) {
            edit.removed.push(Uuid::nil());
        }
        let next = manifest.edited(table, &edit, self.timestamps.mark());
        self.replace_manifest(&mut manifest, next).await?;
        if is_flush {
            store.compacting.note_flush(&change.added);
        }
        let gone = ids(&removed);
        let mut files: Vec<Arc<TableFile>> =
            store.files().iter().filter(|file| !gone.contains(&file.descriptor().id)).cloned().collect();
        change.added.iter().for_each(|file| self.registry.retain(file.descriptor().id));
        files.extend(change.added);
        let named: BTreeSet<Uuid> = manifest.files(table).into_iter().collect();
        let is_named = |file: &Arc<TableFile>| named.contains(&file.descriptor().id);
        assert!(files.iter().all(is_named), "readers have no file that the manifest does not name");
        *store.files.borrow_mut() = Rc::new(files);
        self.account_files();
        Ok(Some(removed))
    }

    /// As [`Shard::commit`], for files that others can be made in place of: they go when the change does not
    /// fit any more (the table was truncated or dropped, and they hold what should be gone), and when it
    /// fails, lest each try leave one on a disk that is full.
    pub(super) async fn commit_new(
        &self,
        store: &TableStore,
        change: FileChange,
    ) -> Result<Option<Vec<Arc<TableFile>>>, StorageError> {
        let added = change.added.clone();
        let committed = self.commit(store, change).await;
        let is_unnamed = match &committed {
            Ok(gone) => gone.is_none(),
            // It may have failed when the disk had it already.
            Err(_) => !self.is_any_named(store, &added).await,
        };
        if is_unnamed {
            self.delete_files(&added).await;
        }
        committed
    }

    /// Does the manifest that is on the disk name any of those files, as far as can be told?
    async fn is_any_named(&self, store: &TableStore, files: &[Arc<TableFile>]) -> bool {
        let manifest = self.manifest.lock().await.clone();
        let (table, ids) = (store.table().id(), ids(files));
        let read = self.runtime.io.run(move || manifest.read_again()).await;
        read.map_or(true, |on_disk| on_disk.files(table).iter().any(|id| ids.contains(id)))
    }
}

/// The files of a table by id, for finding what to remove.
pub(super) fn ids(files: &[Arc<TableFile>]) -> Vec<Uuid> {
    files.iter().map(|file| file.descriptor().id).collect()
}
