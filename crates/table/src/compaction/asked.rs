//! Compactions that somebody asks for, or forbids.

use std::rc::Rc;

use compaction::{CompactionRequest, RewriteFiles, RewriteRequest};

use super::rewrite::is_old;
use super::{Compaction, Outcome, Pause, Survey};
use crate::TableError;
use crate::TableStore;

impl TableStore {
    /// Compacts what is asked for and waits for it. Compactions of the table that go on are stopped first.
    ///
    /// # Errors
    /// A file is damaged or the disk failed; the inputs stay.
    pub async fn compact(self: &Rc<Self>, request: &CompactionRequest) -> Result<(), TableError> {
        let _turn = self.compaction.asked_turn.lock().await;
        let pause = Pause::new(self);
        self.compaction.stop(self).await;
        let tasks = Survey::of(self).requested(request);
        for task in tasks {
            let Some(_slot) = self.shared.compactor.control().slot().await else { break };
            if matches!(Compaction::claim(self, task).run().await?, Outcome::Stopped) {
                break;
            }
        }
        drop(pause);
        self.start_compaction();
        Ok(())
    }

    /// Writes files of the table anew, one after the other, and waits for it. Compactions that go on
    /// are stopped first: they may write as the table asked before. Was it gone through to the end? Not if
    /// somebody stopped it.
    ///
    /// # Errors
    /// A file is damaged or the disk failed; it stays, as do those after it.
    pub async fn rewrite(self: &Rc<Self>, request: RewriteRequest) -> Result<bool, TableError> {
        let _turn = self.compaction.asked_turn.lock().await;
        let pause = Pause::new(self);
        self.compaction.stop(self).await;
        let tasks = Survey::of(self).rewrites(|file, facts| {
            let is_wanted = match request.files {
                RewriteFiles::OldVersion => is_old(file),
                RewriteFiles::OtherCompression => !file.is_compressed_as(&self.compression()),
                RewriteFiles::All => true,
            };
            is_wanted && request.created_max_ms.is_none_or(|max| facts.created_ms <= max)
        });
        // All of them now: strategies go on with the others meanwhile.
        let claimed: Vec<_> = tasks.into_iter().map(|task| Compaction::claim(self, task)).collect();
        drop(pause);
        let done = run_all(self, claimed).await;
        self.start_compaction();
        done
    }

    /// Turns the compactions that the strategy asks for on or off, until the next start.
    pub fn set_auto_compaction(self: &Rc<Self>, is_on: bool) {
        self.compaction.is_off.set(!is_on);
        if is_on {
            self.start_compaction();
        } else {
            self.shared.compactor.forget_pending(&self.table());
            self.shared.compactor.stop_those_of(self);
        }
    }

    /// Are they on, as far as `nodetool` is concerned?
    pub fn is_auto_compaction_on(&self) -> bool {
        !self.compaction.is_off()
    }
}

/// Carries tasks out, one after the other. Was it gone through to the end?
async fn run_all(store: &TableStore, claimed: Vec<Compaction>) -> Result<bool, TableError> {
    for compaction in claimed {
        let Some(_slot) = store.shared.compactor.control().slot().await else { return Ok(false) };
        // Truncated meanwhile.
        if !compaction.has_inputs() {
            continue;
        }
        if matches!(compaction.run().await?, Outcome::Stopped) {
            return Ok(false);
        }
    }
    Ok(true)
}
