//! What can go wrong between a call and its answer.

use std::path::PathBuf;

use assembly::AssemblyError;
use query::QueryError;
use runtime::BrokenInvariant;

use crate::ValueError;

/// Why a database could not be opened or closed, or a call could not be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are the facts the message tells")]
pub enum Error {
    /// The statement was refused or failed; the message is Cassandra's.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Another [`Database`](crate::Database), or another process, has this directory open.
    #[error("directory {directory} is in use by another database", directory = .directory.display())]
    InUse { directory: PathBuf },
    /// The directory is damaged, or the disk fails.
    #[error("open database in {directory}: {source}", directory = .directory.display())]
    Open { directory: PathBuf, source: AssemblyError },
    /// An option makes no sense.
    #[error("option {name}: {what}")]
    Option { name: &'static str, what: String },
    /// The system gave no threads or no randomness.
    #[error("start the database's threads: {0}")]
    Threads(std::io::Error),
    /// The database was closed before.
    #[error("the database is closed")]
    Closed,
    /// The disk failed, and the policy is to answer no more. What was acknowledged is there after the
    /// database is closed and opened again.
    #[error("the database answers no more since its disk failed: {cause}")]
    Stopped { cause: String },
    /// The database found itself at fault, and answers no more, so that nothing it wrote is lost: what was
    /// acknowledged is there after it is closed and opened again. Whether a write that went on meanwhile was done is
    /// not known.
    #[error("the database answers no more: {0}")]
    Poisoned(BrokenInvariant),
    /// The database was closed, or failed, while the call went on: whether a write was done is not known.
    #[error("the database ended before it answered")]
    NoAnswer,
    /// Not everything could be written out at the end; what was acknowledged is in the commit log.
    #[error("close the database: {0}")]
    Close(AssemblyError),
    /// Memtables could not be written out; what was acknowledged is in the commit log.
    #[error("flush: {0}")]
    Flush(storage::StorageError),
    /// A Rust value does not go into the type of its marker.
    #[error("bind value for {name}: {source}")]
    Bind { name: String, source: ValueError },
    /// A value does not go into the Rust type asked for.
    #[error("read column {column}: {source}")]
    Read { column: String, source: ValueError },
    /// The rows have no such column.
    #[error("there is no column {column} among {columns}")]
    NoColumn { column: String, columns: String },
    /// The Rust type has another number of columns than the row.
    #[error("a row of {got} columns does not go into {expected} values")]
    ColumnCount { expected: usize, got: usize },
    /// A value was given for a marker that the statement does not have.
    #[error("the statement has no marker named {name}")]
    NoMarker { name: String },
    /// The schema was changed: the statement's markers are no longer of the types it was prepared with.
    #[error("the statement must be prepared again: its markers have changed since")]
    MarkersChanged,
}
