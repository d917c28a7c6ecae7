//! How a change of a table's files becomes true: in the manifest, durably, and then for readers.
//!
//! ```text
//!   flush, compaction, import, scrub, truncation ──► commit ─┬─ the manifest is another, in one step
//!                                                             └─ readers have other files, in one step
//! ```
//!
//! Nobody else changes either meanwhile. A change that no longer fits, since somebody else was first, is not made.

use std::collections::BTreeSet;
use std::sync::Arc;

use commitlog::LogPosition;
use manifest::{Edit, Position};
use runtime::Plant;
use sstable::TableFile;
use uuid::Uuid;

use super::TableStore;
use crate::TableError;

/// A change of the files of a table.
pub(crate) struct FileChange {
    added: Vec<Arc<TableFile>>,
    removed: Removed,
    /// Replay begins here from now on.
    flushed: Option<LogPosition>,
}

/// Which files go.
enum Removed {
    These(Vec<Uuid>),
    /// All that there are when the change is made.
    All,
}

impl FileChange {
    /// Files that come beside those that there are.
    pub(crate) fn adding(added: Vec<Arc<TableFile>>) -> Self {
        FileChange { added, removed: Removed::These(Vec::new()), flushed: None }
    }

    /// The file of a memtable, if it needs one: the log is in files up to there.
    pub(super) fn flushing(file: Option<Arc<TableFile>>, flushed_to: LogPosition) -> Self {
        FileChange { flushed: Some(flushed_to), ..FileChange::adding(file.into_iter().collect()) }
    }

    /// No file is left, and nothing that the log has up to there.
    pub(super) fn emptying(flushed_to: LogPosition) -> Self {
        FileChange { added: Vec::new(), removed: Removed::All, flushed: Some(flushed_to) }
    }

    /// Files that go, and those that come in their place.
    pub(crate) fn replacing(removed: Vec<Uuid>, added: Vec<Arc<TableFile>>) -> Self {
        FileChange { added, removed: Removed::These(removed), flushed: None }
    }

    /// Makes a change of a table's files durable and then true for readers, in one step: nobody
    /// else changes the manifest or the table's files meanwhile. Gives the files that went; `None`
    /// when the change no longer fits, because a file it removes or the table is gone already.
    pub(crate) async fn commit(self, store: &TableStore) -> Result<Option<Vec<Arc<TableFile>>>, TableError> {
        store.shared.runtime.failsafe.guarded("a change of table files", self.commit_in_turn(store)).await
    }

    async fn commit_in_turn(self, store: &TableStore) -> Result<Option<Vec<Arc<TableFile>>>, TableError> {
        let shared = &store.shared;
        let mut manifest = shared.manifest.lock().await;
        let files = store.files.all();
        let removed: Vec<Arc<TableFile>> = match &self.removed {
            Removed::All => files.to_vec(),
            Removed::These(ids) => {
                files.iter().filter(|file| ids.contains(&file.descriptor().id)).cloned().collect()
            }
        };
        let still_fits = match &self.removed {
            Removed::All => true,
            Removed::These(ids) => removed.len() == ids.len(),
        };
        if !still_fits || store.is_dropped() {
            return Ok(None);
        }
        let table = store.id();
        let named = match self.removed {
            // Those that can not be read, too.
            Removed::All => manifest.files(table),
            Removed::These(ids) => ids,
        };
        let is_flush = self.flushed.is_some();
        let flushed = self.flushed.map(Position::from);
        let mut edit = Edit { added: ids(&self.added), removed: named, flushed, ..Edit::default() };
        if !edit.removed.is_empty() && shared.runtime.plants.has(Plant::UnnamedFileRemoved) {
            edit.removed.push(Uuid::nil());
        }
        let next = manifest.edited(table, &edit, shared.timestamps.mark());
        shared.replace_manifest(&mut manifest, next).await?;
        if is_flush {
            store.compaction.note_flush(&self.added);
        }
        let gone = ids(&removed);
        let is_gone = |file: &Arc<TableFile>| gone.contains(&file.descriptor().id);
        let mut files: Vec<Arc<TableFile>> =
            store.files.all().iter().filter(|file| !is_gone(file)).cloned().collect();
        self.added.iter().for_each(|file| shared.registry.retain(file.descriptor().id));
        files.extend(self.added);
        let named: BTreeSet<Uuid> = manifest.files(table).into_iter().collect();
        let is_named = |file: &Arc<TableFile>| named.contains(&file.descriptor().id);
        assert!(files.iter().all(is_named), "readers have no file that the manifest does not name");
        store.files.replace(files);
        shared.account_files();
        Ok(Some(removed))
    }

    /// As [`FileChange::commit`], for files that others can be made in place of: they go when the change does not
    /// fit any more (the table was truncated or dropped, and they hold what should be gone), and when it
    /// fails, lest each try leave one on a disk that is full.
    pub(crate) async fn commit_new(
        self,
        store: &TableStore,
    ) -> Result<Option<Vec<Arc<TableFile>>>, TableError> {
        let added = self.added.clone();
        let committed = self.commit(store).await;
        let is_unnamed = match &committed {
            Ok(gone) => gone.is_none(),
            // It may have failed when the disk had it already.
            Err(_) => !is_any_named(store, &added).await,
        };
        if is_unnamed {
            store.shared.delete_files(&added).await;
        }
        committed
    }
}

/// Does the manifest that is on the disk name any of those files, as far as can be told?
async fn is_any_named(store: &TableStore, files: &[Arc<TableFile>]) -> bool {
    let manifest = store.shared.manifest.lock().await.clone();
    let (table, ids) = (store.id(), ids(files));
    let read = store.shared.runtime.io.run(move || manifest.read_again()).await;
    read.map_or(true, |on_disk| on_disk.files(table).iter().any(|id| ids.contains(id)))
}

/// The files of a table by id, for finding what to remove.
pub(crate) fn ids(files: &[Arc<TableFile>]) -> Vec<Uuid> {
    files.iter().map(|file| file.descriptor().id).collect()
}
