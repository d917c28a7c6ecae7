//! Segments that nobody needs go.

use std::sync::Arc;

use crate::CommitLog;
use crate::error::CommitLogError;
use crate::position::LogPosition;
use crate::roster::Ids;

impl CommitLog {
    /// Tells that no record below `position` is needed any more. Lets go of the segments that hold only
    /// such records, and gives how many; the one being written stays, and those that are
    /// [held](CommitLog::hold_from) or [kept](CommitLog::keep_from).
    ///
    /// # Panics
    /// When the position is behind the log's end: nothing can be known of records that are still to come.
    ///
    /// # Cancel safety
    /// Dropped before it is done, some of the files may be gone; call it again.
    pub async fn discard_below(&self, position: LogPosition) -> Result<usize, CommitLogError> {
        let shared = &self.shared;
        let unneeded: Ids = {
            let mut state = shared.state.borrow_mut();
            assert!(
                position <= state.next,
                "only what was appended is given up: {position} of {}",
                state.next
            );
            state.lost.retain(|(_, to, _)| *to > position);
            state.needed_from = state.needed_from.max(position);
            let below = state.unneeded_below().min(state.held_from.min(state.kept_from).segment);
            state.segments.range(..below).map(|(id, _)| *id).collect()
        };
        if unneeded.is_empty() {
            return Ok(0);
        }
        let (spares, roster, ids) = (Arc::clone(&self.spares), Arc::clone(&self.roster), unneeded.clone());
        let retired = shared.io.run(move || roster.strike(&ids).and_then(|()| spares.retire(ids))).await;
        retired.map_err(CommitLogError::disk("discard segments"))?;
        let mut state = shared.state.borrow_mut();
        state.segments.retain(|id, _| !unneeded.contains(id));
        state.gone_below = state.gone_below.max(unneeded.last().map_or(0, |last| last + 1));
        drop(state);
        Ok(unneeded.len())
    }

    /// Bytes that are free where segments are written; `None` where the disk does not tell.
    pub async fn free_bytes(&self) -> Option<u64> {
        let (disk, directory) = (Arc::clone(&self.shared.disk), self.shared.directory.clone());
        self.shared.io.run(move || disk.free_space(&directory)).await.ok()
    }

    /// Deletes what is kept to be written again: the disk is full.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn give_up_spares(&self) -> Result<(), CommitLogError> {
        let spares = Arc::clone(&self.spares);
        let gone = self.shared.io.run(move || spares.give_up()).await;
        gone.map_err(CommitLogError::disk("delete spare segments"))
    }
}
