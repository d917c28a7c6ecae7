//! Which files to merge, and how to cut the result: pure choices over what is known of them.
//!
//! ```text
//!   facts of all files ─┐                          ┌─ files to merge
//!   time, memtables ────┼─► Strategy::choose ─► Task ─ level of what comes out
//!   options ────────────┘        │                 └─ where it is cut
//!                                └ Memory: what the strategy remembers of earlier choices
//! ```
//!
//! A worker of the shard carries tasks out (`crate::shard::compact`). Choices are those of Cassandra 5;
//! where it takes the files that are read most first, all files count alike here.
//!
//! | strategy | file |
//! |---|---|
//! | SizeTieredCompactionStrategy | `size_tiered.rs` |
//! | LeveledCompactionStrategy | `leveled.rs`, over `generations.rs` |
//! | TimeWindowCompactionStrategy | `time_window.rs` |
//! | UnifiedCompactionStrategy | `unified.rs`, over `unified_options.rs` and `overlaps.rs` |
//! | what all share | `expired.rs`, `tombstones.rs` |

pub(crate) mod control;
mod expired;
mod facts;
mod generations;
mod leveled;
mod options;
mod overlaps;
mod report;
mod size_tiered;
mod time_window;
mod tombstones;
mod unified;
mod unified_options;

use uuid::Uuid;

pub(crate) use control::CompactionControl;
pub(crate) use expired::fully_expired;
pub(crate) use facts::{FileFacts, Picture, Repair};
pub(crate) use options::Settings;
pub(crate) use report::History;
pub use report::{
    ActiveCompaction, CompactionKind, CompactionRecord, CompactionRequest, CompactionTotals, RewriteFiles,
    RewriteRequest,
};

/// Levels that the leveled strategy can have, the 0th included.
pub(crate) const LEVEL_COUNT: usize = 9;
const _: () = assert!(LEVEL_COUNT > 1, "there is a level above the 0th");

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Task {
    /// The files to merge. Those of them that hold nothing any more need not be read.
    pub(crate) inputs: Vec<Uuid>,
    /// Level of what comes out.
    pub(crate) level: u32,
    /// Where what comes out is cut.
    pub(crate) split: Split,
    /// What it is called.
    pub(crate) kind: CompactionKind,
    /// The one input may keep its content: only its level changes.
    pub(crate) is_move: bool,
}

impl Task {
    pub(crate) fn merge(inputs: Vec<Uuid>) -> Self {
        Task { inputs, level: 0, split: Split::Whole, kind: CompactionKind::Compaction, is_move: false }
    }

    pub(crate) fn of(files: &[&FileFacts]) -> Self {
        Task::merge(files.iter().map(|file| file.id).collect())
    }

    /// The file alone, written anew with all that is in it.
    pub(crate) fn rewrite(file: &FileFacts) -> Self {
        let kind = CompactionKind::UpgradeSstables;
        Task { level: file.level, kind, ..Task::merge(vec![file.id]) }
    }

    /// Does all of the inputs stay that is not hidden by others of them?
    pub(crate) fn keeps_tombstones(&self) -> bool {
        self.kind == CompactionKind::UpgradeSstables
    }

    fn tombstones(file: &FileFacts) -> Self {
        Task { kind: CompactionKind::TombstoneCompaction, ..Task::merge(vec![file.id]) }
    }
}

/// Where the result of a merge is cut into files. Always between partitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Split {
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
pub(crate) struct Memory {
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
    pub(crate) fn note_flush(&mut self, bytes: u64) {
        let bytes = bytes as f64;
        self.flush_bytes = if self.flush_bytes == 0.0 { bytes } else { self.flush_bytes * 0.8 + bytes * 0.2 };
    }
}

/// A choice, and how many more would follow it by the strategy's own estimate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    pub(crate) task: Option<Task>,
    pub(crate) pending: usize,
}
