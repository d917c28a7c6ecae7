//! One node's data: shards with their commit log and tables; starts, writes, reads.
//!
//! A [`Shard`] owns a part of the token space and lives on one thread; [`Shards`] is how anybody
//! reaches one. Nothing here knows statements, sessions or other nodes: a write is an encoded
//! [`rows::Mutation`], a read is a [`read::ReadCommand`].
//!
//! ```text
//!            write                                     read
//!              │                                         │
//!   commit log ◄─ record            memtable ─┐  frozen ─┤  table files ─ filter, index, chunk cache
//!              │                               └──────────┴───► merge ──► live rows
//!              ▼ memtable ── flush ──► table file ── compaction ──► fewer table files
//! ```

mod directories;
mod error;
pub mod hostile;
mod import;
mod layout;
mod node;
mod options;
mod overlay;
mod reach;
mod record;
mod recovery;
mod replay;
mod shard;
mod snapshots;

pub use cache::{CacheStats, ChunkLengthStats, ColdReads};
pub use commitlog::{LogPosition, SyncMode};
pub use compaction::{
    ActiveCompaction, CompactionKind, CompactionRecord, CompactionRequest, CompactionTotals, CompactionsHeld,
    RewriteFiles, RewriteRequest,
};
pub use error::{StorageError, unless_dropped};
pub use import::ImportSummary;
pub use layout::{Layout, NodeFacts};
pub use manifest::{StateError, state_file};
pub use memtable::KEYS_TOGETHER;
pub use node::{Directory, LocalShards, Recovered, RunningShards, lock_directory};
pub use options::StorageOptions;
pub use overlay::Overlay;
pub use reach::{ShardHandle, Shards};
pub use record::RecordError;
pub use shard::{
    Claim, HashedRow, HeldLog, Logged, LoggedMutations, Lookups, LookupsSent, Outcomes, Replaced, Settles,
    Shard, ShardMemory, TruncationNote, Unit, Unsettled, VisitStats, Wait, WriteUnderWay, Writes, outdated,
    quarantined, unsettled,
};
pub use snapshots::check_snapshot_name;
pub use table::{
    CommitFailurePolicy, Compactor, DataDirectory, Demand, DiskFailurePolicy, Emptying, FaultKind,
    FaultRecord, FileSpan, FileVerdict, Health, PartitionBytes, PrefetchState, PrefetchStats, ScrubbedFile,
    SliceStats, Snapshots, TableDirectories, TableError, TableStats, TableStore,
};
pub use upkeep::{ClearFilter, ImportOptions, SnapshotFacts};
