//! Room for writes: memtables may grow to the budget, and are written out when half of it is spent.

use std::rc::Rc;

use super::Shard;
use crate::StorageError;

impl Shard {
    /// Would a write have to wait for room, or to start a flush?
    pub(super) fn is_short_of_room(&self) -> bool {
        let (bytes, budget) = (self.memtable_bytes.get(), self.memtable_budget());
        bytes > budget || (bytes > budget / 2 && self.flushing.count.get() == 0) || self.is_stopping.get()
    }

    /// May anything be written?
    ///
    /// # Errors
    /// The node is stopping, or broken.
    pub(super) fn check_open(&self) -> Result<(), StorageError> {
        self.runtime.failsafe.check()?;
        if self.is_stopping.get() { Err(StorageError::ShuttingDown) } else { Ok(()) }
    }

    /// Starts flushes when memtables grow, and holds writers back only when the budget is spent.
    ///
    /// # Errors
    /// The budget is spent and flushes fail: waiting would not help.
    pub(super) async fn wait_for_room(self: &Rc<Self>) -> Result<(), StorageError> {
        self.check_open()?;
        let budget = self.memtable_budget();
        if self.memtable_bytes.get() <= budget / 2 {
            return Ok(());
        }
        if self.flushing.count.get() == 0 && self.recent_flush_failure().is_none() {
            self.flush_largest();
        }
        while self.memtable_bytes.get() > budget {
            self.check_open()?;
            if self.flushing.count.get() == 0 {
                if let Some(refusal) = self.recent_flush_failure() {
                    return Err(refusal);
                }
                if !self.flush_largest() {
                    // Nothing is left to write out: the budget is smaller than an empty table.
                    return Ok(());
                }
            }
            self.flushing.room.notified().await;
        }
        Ok(())
    }
}
