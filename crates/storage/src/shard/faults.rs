//! A shard's part in what the node does when its disk fails; the policies are in `crate::health`.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use commitlog::LogEvent;
use schema::Table;
use sstable::{Descriptor, SstableError, TableFile};
use tokio::sync::Notify;
use uuid::Uuid;

use super::flush::RETRY_FLUSH_AFTER;
use super::{Damaged, Shard, TableStore};
use crate::health::{FaultKind, is_full, kind_of, path_of};
use crate::{Layout, StorageError};

/// Files that `best_effort` has left out of answers and that are to be set aside.
#[derive(Default)]
pub(super) struct LeftOut {
    files: RefCell<Vec<(Rc<TableStore>, Arc<TableFile>)>>,
    told: Rc<Notify>,
}

impl Shard {
    /// Takes in that an act of this shard failed.
    pub(super) fn note_fault(&self, act: &'static str, error: &StorageError) {
        self.health.note(act, error);
    }

    /// Where this shard writes files of a table.
    ///
    /// # Errors
    /// Nowhere, any more.
    pub(super) fn table_directory(&self, table: &Table) -> Result<PathBuf, StorageError> {
        Ok(Layout::table_in(self.health.write_directory(self.index)?, table))
    }

    /// What the log tells its shard.
    pub(super) fn watch_log(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        self.log.listen(move |event| {
            let Some(shard) = Weak::upgrade(&this) else { return };
            match event {
                LogEvent::Failed(error) => shard.health.note_log(&error),
                LogEvent::Full(error) => {
                    shard.health.note_log(&error);
                    runtime::spawn_local("disk fault", async move { shard.give_up_spares().await });
                }
                LogEvent::HasRoom => {}
                // What was acknowledged by `periodic` and not on the disk yet is in memory alone.
                LogEvent::GoesOn => shard.stores().into_iter().for_each(|store| shard.spawn_flush(store)),
            }
        });
    }

    /// Sets aside what is left out, whoever has found it damaged: a visitor must not start a task.
    pub(super) fn watch_left_out(self: &Rc<Self>) {
        let (this, told) = (Rc::downgrade(self), Rc::clone(&self.left_out.told));
        runtime::spawn_local("disk fault", async move {
            loop {
                told.notified().await;
                let Some(shard) = Weak::upgrade(&this) else { return };
                let left_out = std::mem::take(&mut *shard.left_out.files.borrow_mut());
                for (store, file) in left_out {
                    if let Err(error) = shard.set_aside(&store, &file).await {
                        shard.note_fault("set a damaged file aside", &error);
                        tracing::error!(%error, "a damaged table file was not set aside");
                    }
                }
            }
        });
    }

    /// A flush failed: what the disk has to do with it, and when to try again.
    pub(super) fn flush_failed(self: &Rc<Self>, error: &StorageError) {
        // Tried again by each flush that is asked for, and when the table is altered: not by itself.
        if let StorageError::TableFile(SstableError::Unsupported { .. }) = error {
            return self.health.note_options("flush", error);
        }
        let (kind, is_full) = (self.health.note("flush", error), is_full(error));
        if !is_full && kind != Some(FaultKind::Write) {
            return;
        }
        // Nobody may write to the table again, least of all while the disk is full.
        if self.flushing.is_tried_again.replace(true) {
            return;
        }
        let this = Rc::downgrade(self);
        runtime::spawn_local("disk fault", async move {
            if let Some(shard) = Weak::upgrade(&this).filter(|_| is_full) {
                shard.give_up_spares().await;
            }
            tokio::time::sleep(RETRY_FLUSH_AFTER).await;
            let Some(shard) = Weak::upgrade(&this) else { return };
            shard.flushing.is_tried_again.set(false);
            if shard.is_stopping.get() {
                return;
            }
            let waiting = shard.stores().into_iter().filter(|store| !store.frozen.borrow().is_empty());
            waiting.for_each(|store| shard.spawn_flush(store));
        });
    }

    /// The disk is full: what the log keeps to be written again is room.
    async fn give_up_spares(&self) {
        if let Err(error) = self.log.give_up_spares().await {
            tracing::warn!(%error, "log segments that are kept to be written again were not deleted");
        }
    }

    /// A read failed. Under `best_effort` it is tried again without the file that is to blame.
    pub(super) fn read_failed(&self, store: &TableStore, error: StorageError) -> Result<(), StorageError> {
        self.note_fault("read", &error);
        match self.health.answers_from_the_rest() && self.leave_out(store, &error) {
            true => Ok(()),
            false => Err(error),
        }
    }

    /// Under `best_effort`: uses the file that an error names no more. `false` when there is none.
    pub(super) fn leave_out(&self, store: &TableStore, error: &StorageError) -> bool {
        let Some((id, kind)) = culprit(error) else { return false };
        let files = store.files();
        let (out, rest): (Vec<_>, Vec<_>) =
            files.iter().cloned().partition(|file: &Arc<TableFile>| file.descriptor().id == id);
        let Some(file) = out.first() else { return false };
        let table = store.table();
        tracing::error!(keyspace = table.keyspace(), table = table.name(), %error, "a table file is left out of all answers: disk_failure_policy is best_effort");
        store.damage.borrow_mut().push(Damaged { id, reason: error.to_string() });
        *store.files.borrow_mut() = Rc::new(rest);
        self.cache.forget(&[file.number()]);
        self.account_files();
        // One that could not be read may be well after a restart, on another disk.
        let this = self.tables.borrow().get(&table.id()).cloned();
        if let (FaultKind::Damage, Some(store)) = (kind, this) {
            self.left_out.files.borrow_mut().push((store, Arc::clone(file)));
            self.left_out.told.notify_one();
        }
        true
    }
}

/// The table file that failed or is damaged, and which of the two.
fn culprit(error: &StorageError) -> Option<(Uuid, FaultKind)> {
    let kind = kind_of(error)?;
    match kind {
        FaultKind::Damage | FaultKind::Read => {}
        FaultKind::Write | FaultKind::Log | FaultKind::Full | FaultKind::Options => return None,
    }
    let (descriptor, _) = Descriptor::from_path(path_of(error)?).ok()?;
    Some((descriptor.id, kind))
}
