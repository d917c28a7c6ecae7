//! What tables do when the disk fails; the policies are in `crate::health`.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use commitlog::{CommitLogError, LogEvent, LogPosition};
use sstable::{SstableError, TableFile};
use tokio::sync::Notify;

use super::Shared;
use super::write_room::RETRY_FLUSH_AFTER;
use crate::TableError;
use crate::TableStore;
use crate::health::FaultKind;
use crate::scrub::Quarantine;

/// Files that `best_effort` has left out of answers and that are to be set aside.
#[derive(Default)]
pub(crate) struct LeftOut {
    /// A table that is no more has nothing to be set aside.
    files: RefCell<Vec<(Weak<TableStore>, Arc<TableFile>)>>,
    told: Rc<Notify>,
}

impl LeftOut {
    /// Has a file of a table set aside soon.
    pub(crate) fn add(&self, store: &Rc<TableStore>, file: Arc<TableFile>) {
        self.files.borrow_mut().push((Rc::downgrade(store), file));
        self.told.notify_one();
    }

    fn take_all(&self) -> Vec<(Weak<TableStore>, Arc<TableFile>)> {
        std::mem::take(&mut *self.files.borrow_mut())
    }
}

impl Shared {
    /// What the log tells its shard.
    pub(super) fn watch_log(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        self.log.listen(move |event| {
            let Some(shared) = Weak::upgrade(&this) else { return };
            match event {
                LogEvent::Failed(error) => shared.health.note_log(&error),
                LogEvent::Full(error) => {
                    shared.health.note_log(&error);
                    runtime::spawn_local("disk fault", async move { shared.give_up_spares().await });
                }
                LogEvent::HasRoom => {}
                // What was acknowledged by `periodic` and not on the disk yet is in memory alone.
                LogEvent::GoesOn => {
                    let tables = shared.tables();
                    tables.iter().flat_map(|tables| tables.all()).for_each(|store| store.spawn_flush());
                }
            }
        });
    }

    /// Sets aside what is left out, whoever has found it damaged: a visitor must not start a task.
    pub(super) fn watch_left_out(self: &Rc<Self>) {
        let (this, told) = (Rc::downgrade(self), Rc::clone(&self.left_out.told));
        runtime::spawn_local("disk fault", async move {
            loop {
                told.notified().await;
                let Some(shared) = Weak::upgrade(&this) else { return };
                for (store, file) in shared.left_out.take_all() {
                    let Some(store) = Weak::upgrade(&store) else { continue };
                    if let Err(error) = Quarantine(&store).take(&file).await {
                        shared.note_fault("set a damaged file aside", &error);
                        tracing::error!(%error, "a damaged table file was not set aside");
                    }
                }
            }
        });
    }

    /// A flush failed: what the disk has to do with it, and when to try again.
    pub(crate) fn flush_failed(self: &Rc<Self>, error: &TableError) {
        // Tried again by each flush that is asked for, and when the table is altered: not by itself.
        if let TableError::TableFile(SstableError::Unsupported { .. }) = error {
            return self.health.note_options("flush", error);
        }
        let (kind, is_full) = (self.health.note("flush", error), error.is_full());
        if !is_full && kind != Some(FaultKind::Write) {
            return;
        }
        // Nobody may write to the table again, least of all while the disk is full.
        if !self.room.begin_retry() {
            return;
        }
        let this = Rc::downgrade(self);
        runtime::spawn_local("disk fault", async move {
            if let Some(shared) = Weak::upgrade(&this).filter(|_| is_full) {
                shared.give_up_spares().await;
            }
            tokio::time::sleep(RETRY_FLUSH_AFTER).await;
            let Some(shared) = Weak::upgrade(&this) else { return };
            shared.room.end_retry();
            let tables = shared.tables().filter(|_| !shared.is_stopping());
            let waiting = |store: &Rc<TableStore>| store.memtables().has_frozen();
            let tables = tables.iter().flat_map(|tables| tables.all());
            tables.filter(waiting).for_each(|store| store.spawn_flush());
        });
    }

    /// The disk is full: what the log keeps to be written again, or to be read again, is room.
    async fn give_up_spares(&self) {
        self.log.hold_from(LogPosition::END);
        // Spares first: that needs no room. What is let go then becomes spares.
        for given_up in [self.log.give_up_spares().await, self.let_go_of_held().await] {
            if let Err(error) = given_up {
                tracing::warn!(%error, "log segments that are kept and not needed were not deleted");
            }
        }
    }

    async fn let_go_of_held(&self) -> Result<(), CommitLogError> {
        self.log.discard_unheld().await?;
        self.log.give_up_spares().await
    }
}
