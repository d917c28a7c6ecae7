//! Why a request could not be carried out.

use runtime::Panicked;
use storage::{StorageError, TableError};
use tokio::task::JoinError;

use crate::replicas::TooFew;

/// What went wrong, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CoordinatorError {
    /// Nothing was done.
    #[error("overloaded: {what}")]
    Overloaded { what: String },
    /// Some of a write is done, or will be: the client must not take it for refused.
    #[error("not all of it is written yet: {cause}")]
    Unfinished { cause: Box<CoordinatorError> },
    #[error("the schema moved on from epoch {based_on} to {current}")]
    SchemaMoved { based_on: u64, current: u64 },
    /// A table was emptied at that epoch of the schema, and this node has not come so far.
    #[error("a table is being emptied: this node has not come to epoch {epoch} of the schema yet")]
    Outdated { epoch: u64 },
    #[error("change schema: {0}")]
    Schema(#[from] schema::SchemaError),
    /// Nothing was done: what was proposed to the ring can not be.
    #[error("{what}")]
    RingRefuses { what: String },
    /// It may be done all the same, unless it is said that nothing was: the ring did not agree in time.
    #[error("the nodes of the ring have not agreed on it: {what}")]
    NotAgreed { what: String },
    #[error("keep the schema: {0}")]
    Metadata(cluster::MetadataError),
    #[error("cannot achieve consistency level {consistency}: {required} required, {alive} alive")]
    Unavailable { consistency: &'static str, required: u32, alive: u32 },
    /// Something was sent, and too few replicas did it.
    #[error("{0}")]
    TooFew(TooFew),
    /// A conditional change will be made: too few replicas have said in time that they have it.
    #[error("write of what was agreed on timed out: {received} of {required} replicas have answered")]
    Chosen { received: u32, required: u32 },
    /// A conditional change may have been made.
    #[error("it is not known whether a conditional change was made")]
    InDoubt,
    #[error("table {table} does not exist")]
    NoTable { table: String },
    #[error("the batch of {batch_bytes} bytes is larger than the {batch_bytes_max} allowed")]
    BatchTooLarge { batch_bytes: usize, batch_bytes_max: usize },
    /// A logged batch may be recorded on some nodes, and is not on as many as it should be: nothing of it is written
    /// yet, and it may be written as a whole.
    #[error("record logged batch: {received} of {required} nodes have answered")]
    Unrecorded { received: u32, required: u32 },
    #[error("read logged batch: {0}")]
    DamagedBatch(rows::MutationError),
    #[error("a logged batch does not fit its tables: {what}")]
    MisfitBatch { what: String },
    #[error("a logged batch of version {version} that can not be read")]
    UnknownBatch { version: i32 },
    #[error("{0}")]
    Storage(StorageError),
    #[error("{0}")]
    Table(TableError),
    #[error("the node is shutting down")]
    ShuttingDown,
}

impl From<StorageError> for CoordinatorError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Table(error) => error.into(),
            StorageError::ShardBusy { .. } => CoordinatorError::Overloaded { what: error.to_string() },
            StorageError::ShardGone { .. } => CoordinatorError::ShuttingDown,
            other => CoordinatorError::Storage(other),
        }
    }
}

impl From<TableError> for CoordinatorError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::NoRoom { .. } | TableError::DiskFull { .. } => {
                CoordinatorError::Overloaded { what: error.to_string() }
            }
            TableError::ShuttingDown => CoordinatorError::ShuttingDown,
            TableError::NoTable { table } => CoordinatorError::NoTable { table: table.0.to_string() },
            other => CoordinatorError::Table(other),
        }
    }
}

/// Of a task that did not come to its end.
impl From<JoinError> for CoordinatorError {
    fn from(error: JoinError) -> Self {
        match error.try_into_panic() {
            Ok(payload) => CoordinatorError::Table(Panicked::of(&*payload).into()),
            Err(_) => CoordinatorError::ShuttingDown,
        }
    }
}

impl CoordinatorError {
    /// The same, of a write that is not to be taken back any more.
    pub(crate) fn of_what_is_begun(self) -> Self {
        CoordinatorError::Unfinished { cause: Box::new(self) }
    }

    /// The same for another one that was to be done together with the first.
    pub(crate) fn told_again(&self) -> CoordinatorError {
        match self {
            CoordinatorError::Overloaded { what } => CoordinatorError::Overloaded { what: what.clone() },
            CoordinatorError::Unfinished { cause } => cause.told_again().of_what_is_begun(),
            CoordinatorError::Outdated { epoch } => CoordinatorError::Outdated { epoch: *epoch },
            CoordinatorError::Unavailable { consistency, required, alive } => {
                CoordinatorError::Unavailable { consistency, required: *required, alive: *alive }
            }
            CoordinatorError::TooFew(too_few) => CoordinatorError::TooFew(too_few.clone()),
            CoordinatorError::NoTable { table } => CoordinatorError::NoTable { table: table.clone() },
            CoordinatorError::ShuttingDown => CoordinatorError::ShuttingDown,
            refusal if refusal.is_refusal() => CoordinatorError::Overloaded { what: refusal.to_string() },
            // It can not be told in the same words; nobody must take it for refused.
            other => CoordinatorError::Overloaded { what: other.to_string() }.of_what_is_begun(),
        }
    }

    /// Did it come before anything was written?
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            CoordinatorError::Overloaded { .. }
                | CoordinatorError::NoTable { .. }
                | CoordinatorError::Storage(StorageError::MutationTooLarge { .. })
        )
    }

    /// Is it sure that nothing was done of what it answers?
    pub fn says_nothing_was_done(&self) -> bool {
        self.is_refusal() || matches!(self, CoordinatorError::Unavailable { .. })
    }

    /// Is it of no use to try again?
    pub(crate) fn is_final(&self) -> bool {
        matches!(
            self,
            CoordinatorError::ShuttingDown
                | CoordinatorError::DamagedBatch(_)
                | CoordinatorError::UnknownBatch { .. }
                | CoordinatorError::MisfitBatch { .. }
                | CoordinatorError::Table(TableError::Broken(_))
        )
    }
}

impl From<cluster::MetadataError> for CoordinatorError {
    fn from(error: cluster::MetadataError) -> Self {
        match error {
            cluster::MetadataError::Moved { based_on, current } => {
                CoordinatorError::SchemaMoved { based_on, current }
            }
            cluster::MetadataError::Schema(error) => CoordinatorError::Schema(error),
            other => CoordinatorError::Metadata(other),
        }
    }
}
