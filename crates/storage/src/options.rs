//! How a node keeps its data.

use std::path::PathBuf;

use commitlog::SyncMode;
use table::{CommitFailurePolicy, DiskFailurePolicy};

use read::TombstoneThresholds;

/// How a node keeps its data.
#[derive(Clone, Debug)]
pub struct StorageOptions {
    /// Directory of everything the node keeps.
    pub directory: PathBuf,
    /// Where table files go instead of `data` in it, if anywhere.
    pub data_directories: Vec<PathBuf>,
    /// How many shards; a directory made with another number is taken over.
    pub shard_count: u16,
    /// When a write counts as durable.
    pub sync: SyncMode,
    /// Bytes of a commit log segment.
    pub segment_bytes: u32,
    /// Memory for memtables of all shards, in bytes.
    pub memtable_bytes: usize,
    /// Memory that reads of all shards work in, in bytes.
    pub read_bytes: usize,
    /// Memory that merges of all shards read ahead into, in bytes.
    pub merge_bytes: usize,
    /// Memory for cached chunks of all shards, in bytes.
    pub cache_bytes: usize,
    /// Does the cache also use what memtables leave of theirs?
    pub cache_borrows: bool,
    /// Compactions that run at once, over all shards.
    pub concurrent_compactors: usize,
    /// Bytes a second that compactions of all shards may read; 0 is without limit.
    pub compaction_bytes_per_second: u64,
    /// Disk space for the commit log of all shards, in bytes: beyond it the tables whose writes are
    /// oldest are flushed.
    pub log_bytes: u64,
    /// May the log of an earlier run be needed by other nodes? Then all of it is kept until somebody says
    /// [from where on](crate::HeldLog::keep_from).
    pub is_log_kept: bool,
    /// Messages a shard lets wait for it.
    pub mailbox_messages: usize,
    /// Is a table kept as a snapshot before it is dropped or truncated?
    pub auto_snapshot: bool,
    /// Is each flushed file kept in `backups` too? Can be changed while the node runs.
    pub incremental_backups: bool,
    /// Tombstones that a read may come upon.
    pub tombstones: TombstoneThresholds,
    /// What to do when table files or their directories fail.
    pub disk_failure_policy: DiskFailurePolicy,
    /// What to do when the commit log fails.
    pub commit_failure_policy: CommitFailurePolicy,
    /// Spells a table as the statement that makes it, for the `schema.cql` of snapshots; storage
    /// knows no CQL.
    pub spell_table: Option<fn(&schema::Table) -> String>,
}

impl StorageOptions {
    /// Splits a memory budget: a quarter for memtables, three eighths for the cache, which has what memtables do not
    /// use for as long as they do not, the rest for requests,
    /// indexes, filters and the program itself.
    pub fn new(directory: impl Into<PathBuf>, shard_count: u16, memory_bytes: usize) -> Self {
        StorageOptions {
            directory: directory.into(),
            data_directories: Vec::new(),
            shard_count,
            sync: SyncMode::Group { window: std::time::Duration::ZERO },
            segment_bytes: 32 << 20,
            memtable_bytes: memory_bytes / 4,
            read_bytes: memory_bytes / 16,
            merge_bytes: memory_bytes / 16,
            cache_bytes: memory_bytes / 8 * 3,
            cache_borrows: true,
            concurrent_compactors: 2,
            compaction_bytes_per_second: 0,
            log_bytes: (memory_bytes as u64).clamp(1 << 30, 8 << 30),
            is_log_kept: false,
            mailbox_messages: 16 * 1024,
            auto_snapshot: false,
            incremental_backups: false,
            tombstones: TombstoneThresholds::default(),
            disk_failure_policy: DiskFailurePolicy::default(),
            commit_failure_policy: CommitFailurePolicy::default(),
            spell_table: None,
        }
    }
}
