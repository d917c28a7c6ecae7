//! What can go wrong between memory and disk.

use std::io;
use std::path::PathBuf;

use commitlog::CommitLogError;
use compaction::MergeError;
use manifest::StateError;
use read::{ReadError, TooManyTombstones};
use runtime::{BrokenInvariant, JobError, Panicked};
use schema::TableId;
use sstable::SstableError;
use upkeep::UpkeepError;

use crate::record::RecordError;

/// Why storage could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum StorageError {
    #[error("table {table:?} does not exist on this node")]
    NoTable { table: TableId },
    #[error("commit log: {0}")]
    CommitLog(#[from] CommitLogError),
    #[error(
        "commit log: {0}; acknowledged writes may be lost with it: commit_failure_policy = \"ignore\" starts without them"
    )]
    LostLog(CommitLogError),
    #[error("the record at byte {offset} of {path} can not be read: {source}", path = .path.display())]
    LoggedRecord { path: PathBuf, offset: u32, source: RecordError },
    #[error("table file: {0}")]
    TableFile(#[from] SstableError),
    #[error("table {table} has a table file that can not be read: {reason}")]
    Quarantined { table: String, reason: String },
    #[error("{act}: {source}")]
    Disk { act: &'static str, source: io::Error },
    #[error("{path} is damaged: {what}", path = .path.display())]
    DamagedState { path: PathBuf, what: String },
    #[error(
        "{path} is damaged at byte {offset}: checksum {got:#010x}, expected {expected:#010x}",
        path = .path.display()
    )]
    DamagedRecord { path: PathBuf, offset: u64, expected: u32, got: u32 },
    #[error("the mutation of {mutation_bytes} bytes is larger than the {mutation_bytes_max} allowed")]
    MutationTooLarge { mutation_bytes: usize, mutation_bytes_max: usize },
    #[error("no room in memory for writes, and writing it out fails: {reason}")]
    NoRoom { reason: String },
    #[error("the disk is full: writes are refused until there is space, reads are served ({reason})")]
    DiskFull { reason: String },
    #[error(
        "not enough space for compaction of {table}: {file_count} files of {needed_bytes} bytes, {free_bytes} bytes are free"
    )]
    NoSpaceForCompaction { table: String, file_count: usize, needed_bytes: u64, free_bytes: u64 },
    #[error("no directory is left that table files may be written to")]
    NoDirectory,
    #[error("shard {shard} died while it was starting; its thread has said why")]
    DiedStarting { shard: usize },
    #[error("shard {shard} no longer answers")]
    ShardGone { shard: usize },
    #[error("shard {shard} has too many requests waiting")]
    ShardBusy { shard: usize },
    #[error("the node is shutting down")]
    ShuttingDown,
    /// Work of this request, or in its behalf, is at fault; the next one may go well.
    #[error("it panicked: {0}")]
    Panicked(#[from] Panicked),
    /// Nothing is done any more, by anybody.
    #[error(transparent)]
    Broken(#[from] BrokenInvariant),
    #[error("Snapshot {tag} already exists.")]
    SnapshotExists { tag: String },
    #[error("{problem}")]
    SnapshotName { problem: &'static str },
    #[error("data directory {path} can not be used: {what}", path = .path.display())]
    Directory { path: PathBuf, what: String },
    #[error("a row takes {bytes} bytes, more than the page may have")]
    RowTooLarge { bytes: usize },
    #[error("the read came upon {} tombstones, more than tombstone_failure_threshold", .0.tombstone_count)]
    TooManyTombstones(Box<TooManyTombstones>),
}

impl From<JobError> for StorageError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Stopped(_) => StorageError::ShuttingDown,
            JobError::Panicked(panicked) => StorageError::Panicked(panicked),
        }
    }
}

impl From<StateError> for StorageError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Disk { act, source } => StorageError::Disk { act, source },
            StateError::Damaged { path, what } => StorageError::DamagedState { path, what },
            StateError::DamagedRecord { path, offset, expected, got } => {
                StorageError::DamagedRecord { path, offset, expected, got }
            }
            StateError::Newer { path, what } => StorageError::Directory { path, what },
        }
    }
}

impl From<ReadError> for StorageError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::RowTooLarge { bytes } => StorageError::RowTooLarge { bytes },
            ReadError::TooManyTombstones(found) => StorageError::TooManyTombstones(found),
        }
    }
}

impl From<MergeError> for StorageError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::TableFile(error) => StorageError::TableFile(error),
            MergeError::Disk { act, source } => StorageError::Disk { act, source },
        }
    }
}

impl From<UpkeepError> for StorageError {
    fn from(error: UpkeepError) -> Self {
        match error {
            UpkeepError::TableFile(error) => StorageError::TableFile(error),
            UpkeepError::Disk { act, source } => StorageError::Disk { act, source },
            UpkeepError::Damaged { path, what } => StorageError::DamagedState { path, what },
            UpkeepError::Directory { path, what } => StorageError::Directory { path, what },
        }
    }
}
