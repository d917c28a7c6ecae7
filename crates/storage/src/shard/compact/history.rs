//! Compactions that ended, remembered over starts in a small file for each shard (`history/shard-<n>.json`).
//!
//! It is for people to look at: where it can not be read or written, a warning is all. Of a shard that is no
//! more after a change of their number, it is forgotten.

use std::sync::Arc;

use compaction::{CompactionRecord, History};
use manifest::state_file::{read_state, write_state_below};
use runtime::Runtime;

use crate::Layout;
use crate::shard::Shard;

/// What the shard remembers.
pub(in crate::shard) fn read_history(runtime: &Runtime, layout: &Layout, shard: usize) -> History {
    let read = read_state::<Vec<CompactionRecord>>(&*runtime.disk, &layout.compaction_history(shard));
    let records = read.unwrap_or_else(|error| {
        tracing::warn!(%error, "which compactions have ended before is not known");
        None
    });
    History::of(records.unwrap_or_default(), runtime.clock.now_micros() / 1_000)
}

impl Shard {
    /// Writes down which compactions have ended.
    pub(super) async fn write_history(&self) {
        let _turn = self.compactions.history_turn.lock().await;
        let records = self.compaction_history();
        let (disk, path) = (Arc::clone(&self.runtime.disk), self.layout.compaction_history(self.index));
        let written = self.runtime.io.run(move || write_state_below(&*disk, &path, &records)).await;
        if let Err(error) = written {
            tracing::warn!(%error, "a compaction that has ended is forgotten at the next start");
        }
    }
}
