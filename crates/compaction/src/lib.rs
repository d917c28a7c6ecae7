//! How table files become fewer: which to merge, and the merge.
//!
//! Choices are pure: a strategy looks at what is known of the files and says what to do.
//!
//! ```text
//!   facts of all files ─┐                          ┌─ files to merge
//!   time, memtables ────┼─► Strategy::choose ─► Task ─ level of what comes out
//!   options ────────────┘        │                 └─ where it is cut
//!                                └ Memory: what the strategy remembers of earlier choices
//! ```
//!
//! Choices are those of Cassandra 5; where it takes the files that are read most first, all files count alike here.
//! A [`Merge`] writes what a task's inputs come to. It is advanced piece by piece by whoever carries the task out,
//! who owns the files: it says which are there, names the result, and deletes the inputs.
//!
//! | strategy | file |
//! |---|---|
//! | SizeTieredCompactionStrategy | `size_tiered.rs` |
//! | LeveledCompactionStrategy | `leveled.rs`, over `generations.rs` |
//! | TimeWindowCompactionStrategy | `time_window.rs` |
//! | UnifiedCompactionStrategy | `unified.rs`, over `unified_options.rs` and `overlaps.rs` |
//! | what all share | `expired.rs`, `tombstones.rs` |
//!
//! | beside them | file |
//! |---|---|
//! | the merge | `merge.rs`, `merge/` |
//! | what all shards of a node share | `control.rs` |
//! | what a node tells of its compactions | `report.rs` |

mod control;
mod error;
mod expired;
mod facts;
mod generations;
mod leveled;
mod merge;
mod options;
mod overlaps;
mod report;
mod size_tiered;
mod time_window;
mod tombstones;
mod unified;
mod unified_options;

use std::collections::BTreeSet;

use uuid::Uuid;

pub use control::{CompactionControl, CompactionsHeld, MergeWatch};
pub use error::MergeError;
pub use expired::fully_expired;
pub use facts::{FileFacts, Picture, Repair};
pub use merge::{Ahead, Merge, MergeJob, MergeState, Merged};
pub use options::Settings;
pub use report::{
    ActiveCompaction, CompactionKind, CompactionRecord, CompactionRequest, CompactionTotals, History,
    RewriteFiles, RewriteRequest,
};

/// Levels that the leveled strategy can have, the 0th included.
pub(crate) const LEVEL_COUNT: usize = 9;
const _: () = assert!(LEVEL_COUNT > 1, "there is a level above the 0th");

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The files to merge. Those of them that hold nothing any more need not be read.
    pub inputs: Vec<Uuid>,
    /// Level of what comes out.
    pub level: u32,
    /// Where what comes out is cut.
    pub split: Split,
    /// What it is called.
    pub kind: CompactionKind,
    /// The one input may keep its content: only its level changes.
    pub is_move: bool,
}

impl Task {
    pub(crate) fn merge(inputs: Vec<Uuid>) -> Self {
        Task { inputs, level: 0, split: Split::Whole, kind: CompactionKind::Compaction, is_move: false }
    }

    pub(crate) fn of(files: &[&FileFacts]) -> Self {
        Task::merge(files.iter().map(|file| file.id).collect())
    }

    /// It, held to what whoever carries it out takes for granted of a choice among these files.
    pub(crate) fn checked<'a>(self, files: impl IntoIterator<Item = &'a FileFacts>) -> Task {
        let ids: BTreeSet<Uuid> = self.inputs.iter().copied().collect();
        let is_input = |file: &&FileFacts| ids.contains(&file.id);
        let inputs: Vec<&FileFacts> = files.into_iter().filter(is_input).collect();
        assert!(!inputs.is_empty(), "something is compacted");
        assert_eq!(inputs.len(), self.inputs.len(), "a compaction is of files that are there, each once");
        assert!(inputs.iter().all(|file| file.is_free()), "a file is in one compaction, and sound");
        let states = inputs.chunk_by(|a, b| a.repair == b.repair).count();
        assert_eq!(states, 1, "files of one state of repair are compacted together");
        assert!((self.level as usize) < LEVEL_COUNT, "what is compacted has a level that there is");
        self
    }

    /// The file alone, written anew with all that is in it.
    pub fn rewrite(file: &FileFacts) -> Self {
        let kind = CompactionKind::UpgradeSstables;
        Task { level: file.level, kind, ..Task::merge(vec![file.id]) }
    }

    /// Does all of the inputs stay that is not hidden by others of them?
    pub fn keeps_tombstones(&self) -> bool {
        self.kind == CompactionKind::UpgradeSstables
    }

    fn tombstones(file: &FileFacts) -> Self {
        Task { kind: CompactionKind::TombstoneCompaction, ..Task::merge(vec![file.id]) }
    }
}

/// Where the result of a merge is cut into files. Always between partitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Split {
    /// One file.
    Whole,
    /// A new file when one has more than that many bytes.
    Bytes(u64),
    /// The same, and a level further up when one is full: a major compaction of the leveled strategy.
    Levels {
        /// Bytes of a file.
        bytes: u64,
        /// How many times the level below a level holds.
        fanout: u32,
    },
    /// Half of all that is read, a quarter, an eighth, and so on.
    Halves,
    /// At the bounds of that many equal parts of the ring.
    Parts(u32),
}

/// What strategies remember of a table between choices; lost at a restart.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// When fully expired files were looked for, ms since 1970.
    pub(crate) expired_checked_ms: Option<u64>,
    /// The newest time window any file was in.
    pub(crate) window_max: i64,
    /// Where the last compaction out of a level ended.
    pub(crate) last_compacted: [Option<types::Token>; LEVEL_COUNT],
    /// Compactions since one went into a level.
    pub(crate) rounds: [u32; LEVEL_COUNT],
    /// Bytes of a flushed file, on average.
    pub(crate) flush_bytes: f64,
    /// Counts choices among equals.
    pub(crate) turn: usize,
}

impl Memory {
    /// Takes in that a file of so many bytes was flushed.
    pub fn note_flush(&mut self, bytes: u64) {
        let bytes = bytes as f64;
        self.flush_bytes = if self.flush_bytes == 0.0 { bytes } else { self.flush_bytes * 0.8 + bytes * 0.2 };
    }
}

/// A choice, and how many more would follow it by the strategy's own estimate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// What to do; `None` when there is nothing.
    pub task: Option<Task>,
    /// How much there is to do, this task included.
    pub pending: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing::*;

    #[test]
    #[should_panic(expected = "something is compacted")]
    fn a_compaction_of_nothing_is_seen() {
        Task::merge(Vec::new()).checked(&[file(1, MB)]);
    }

    #[test]
    #[should_panic(expected = "a compaction is of files that are there, each once")]
    fn a_file_that_is_chosen_twice_is_seen() {
        let files = [file(1, MB), file(2, MB)];
        Task::of(&[&files[0], &files[1], &files[0]]).checked(&files);
    }

    #[test]
    #[should_panic(expected = "a file is in one compaction, and sound")]
    fn a_file_that_is_being_compacted_is_not_chosen_again() {
        let files = [file(1, MB), FileFacts { is_busy: true, ..file(2, MB) }];
        Task::of(&[&files[0], &files[1]]).checked(&files);
    }

    #[test]
    #[should_panic(expected = "files of one state of repair are compacted together")]
    fn a_repaired_file_is_not_merged_with_one_that_is_not() {
        let files = [file(1, MB), FileFacts { repair: Repair::Repaired, ..file(2, MB) }];
        Task::of(&[&files[0], &files[1]]).checked(&files);
    }

    #[test]
    #[should_panic(expected = "what is compacted has a level that there is")]
    fn a_level_that_is_too_high_is_seen() {
        Task { level: LEVEL_COUNT as u32, ..Task::of(&[&file(1, MB)]) }.checked(&[file(1, MB)]);
    }
}
