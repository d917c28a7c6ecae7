//! What can go wrong between memory and disk.

use std::io;
use std::path::PathBuf;

use commitlog::CommitLogError;
use compaction::MergeError;
use manifest::StateError;
use runtime::{BrokenInvariant, JobError, Panicked};
use schema::TableId;
use sstable::SstableError;
use upkeep::UpkeepError;

/// Why a table, or what it has in common with others, could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum TableError {
    #[error("table {table:?} does not exist on this node")]
    NoTable { table: TableId },
    /// It was planned before the table was emptied, at that epoch of the schema.
    #[error("table {table:?} was emptied at epoch {truncated_at} of the schema, after this was planned")]
    Outdated { table: TableId, truncated_at: u64 },
    #[error("commit log: {0}")]
    CommitLog(#[from] CommitLogError),
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
    #[error("data directory {path} can not be used: {what}", path = .path.display())]
    Directory { path: PathBuf, what: String },
}

impl From<JobError> for TableError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Stopped(_) => TableError::ShuttingDown,
            JobError::Panicked(panicked) => TableError::Panicked(panicked),
        }
    }
}

impl From<StateError> for TableError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Disk { act, source } => TableError::Disk { act, source },
            StateError::Damaged { path, what } => TableError::DamagedState { path, what },
            StateError::DamagedRecord { path, offset, expected, got } => {
                TableError::DamagedRecord { path, offset, expected, got }
            }
            StateError::Newer { path, what } => TableError::Directory { path, what },
        }
    }
}

impl From<MergeError> for TableError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::TableFile(error) => TableError::TableFile(error),
            MergeError::Disk { act, source } => TableError::Disk { act, source },
        }
    }
}

impl From<UpkeepError> for TableError {
    fn from(error: UpkeepError) -> Self {
        match error {
            UpkeepError::TableFile(error) => TableError::TableFile(error),
            UpkeepError::Disk { act, source } => TableError::Disk { act, source },
            UpkeepError::Damaged { path, what } => TableError::DamagedState { path, what },
            UpkeepError::Directory { path, what } => TableError::Directory { path, what },
        }
    }
}
