//! What can go wrong between a request and the tables of its shard.

use std::path::PathBuf;

use commitlog::CommitLogError;
use manifest::StateError;
use read::{ReadError, TooManyTombstones};
use runtime::{BrokenInvariant, JobError, Panicked};
use schema::TableId;
use sstable::SstableError;
use table::TableError;
use upkeep::UpkeepError;

use crate::record::RecordError;

/// Why storage could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum StorageError {
    /// A table could not, or what it needs: the disk, the log, room in memory.
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(
        "commit log: {0}; acknowledged writes may be lost with it: commit_failure_policy = \"ignore\" starts without them"
    )]
    LostLog(CommitLogError),
    #[error("the record at byte {offset} of {path} can not be read: {source}", path = .path.display())]
    LoggedRecord { path: PathBuf, offset: u32, source: RecordError },
    #[error("the mutation of {mutation_bytes} bytes is larger than the {mutation_bytes_max} allowed")]
    MutationTooLarge { mutation_bytes: usize, mutation_bytes_max: usize },
    #[error("shard {shard} died while it was starting; its thread has said why")]
    DiedStarting { shard: usize },
    #[error("shard {shard} no longer answers")]
    ShardGone { shard: usize },
    #[error("shard {shard} has too many requests waiting")]
    ShardBusy { shard: usize },
    #[error("{problem}")]
    SnapshotName { problem: &'static str },
    #[error("a row takes {bytes} bytes, more than the page may have")]
    RowTooLarge { bytes: usize },
    #[error("the read came upon {} tombstones, more than tombstone_failure_threshold", .0.tombstone_count)]
    TooManyTombstones(Box<TooManyTombstones>),
}

impl StorageError {
    /// The table that does not exist here, if that is why: it was dropped, or is not known yet.
    pub fn missing_table(&self) -> Option<TableId> {
        match self {
            StorageError::Table(TableError::NoTable { table }) => Some(*table),
            _ => None,
        }
    }
}

/// What was done with a table; `None` when it was dropped in the meantime, so that nothing is left to do.
///
/// # Errors
/// It could not be done, for another reason.
pub fn unless_dropped<T>(done: Result<T, StorageError>) -> Result<Option<T>, StorageError> {
    match done {
        Err(error) if error.missing_table().is_some() => Ok(None),
        done => done.map(Some),
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

/// What a table may meet is its error also where a shard meets it.
macro_rules! as_of_a_table {
    ($($met:ty),+ $(,)?) => {
        $(impl From<$met> for StorageError {
            fn from(error: $met) -> Self {
                StorageError::Table(error.into())
            }
        })+
    };
}

as_of_a_table!(BrokenInvariant, CommitLogError, JobError, Panicked, SstableError, StateError, UpkeepError);
