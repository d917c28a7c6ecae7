//! What a client is told when a statement can not be carried out.
//!
//! Messages are Cassandra's, word for word where they are known: drivers' and applications' tests
//! match on them, which is why they begin with capitals here and nowhere else.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use coordinator::replicas::{Failure, TooFew};
use coordinator::{Consistency, CoordinatorError};
use serde::{Deserialize, Serialize};
use storage::{StorageError, TableError};

use crate::timeouts::TimedOut;

/// Why a statement was refused, or failed. Each kind has a code of the native protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[allow(missing_docs, reason = "fields are the facts the protocol carries, under its names")]
pub enum QueryError {
    /// 0x2000: the text is no CQL.
    #[error("{0}")]
    Syntax(String),
    /// 0x2200: the statement makes no sense here.
    #[error("{0}")]
    Invalid(String),
    /// 0x2300: a definition makes no sense.
    #[error("{0}")]
    Config(String),
    /// 0x2400: it exists already; `table` is empty for a keyspace.
    #[error("{message}")]
    AlreadyExists { message: String, keyspace: String, table: String },
    /// 0x2100: not allowed.
    #[error("{0}")]
    Unauthorized(String),
    /// 0x2500: no statement of this id is kept.
    #[error(
        "Prepared query with ID {} not found (either the query was not prepared on this host \
         (maybe the host has been restarted?) or you have prepared too many queries and it has \
         been evicted from the internal cache)",
        types::blob::format(id)
    )]
    Unprepared { id: [u8; 16] },
    /// 0x1000: too few replicas alive.
    #[error("Cannot achieve consistency level {}", consistency.name())]
    Unavailable { consistency: Consistency, required: u32, alive: u32 },
    /// 0x1001: too much to do.
    #[error("{0}")]
    Overloaded(String),
    /// 0x1003: TRUNCATE failed.
    #[error("{0}")]
    Truncate(String),
    /// 0x1100: too few replicas answered a write in time.
    #[error("Operation timed out - received only {received} responses.")]
    WriteTimeout { consistency: Consistency, received: u32, block_for: u32, write_type: WriteType },
    /// 0x1100 too: replicas have not agreed in time on a change with a condition, and nothing was changed.
    #[error(
        "CAS operation timed out: received {received} of {block_for} required responses after 0 contention retries"
    )]
    CasWriteTimeout { consistency: Consistency, received: u32, block_for: u32 },
    /// 0x1700: a change with a condition may have been made, or may not.
    #[error("CAS operation result is unknown - proposal accepted by {received} but not a quorum.")]
    CasWriteUnknown { consistency: Consistency, received: u32, block_for: u32 },
    /// 0x1200: too few replicas answered a read in time.
    #[error("Operation timed out - received only {received} responses.")]
    ReadTimeout { consistency: Consistency, received: u32, block_for: u32, data_present: bool },
    /// 0x1300: a file that the answer needs can not be read, here or on other replicas.
    #[error("Operation failed - received {} responses and {} failures: {what}", .replicas.received, .replicas.failed.len())]
    ReadFailure { consistency: Consistency, replicas: FailedReplicas, what: String },
    /// 0x1300 too: a read came upon more tombstones than `tombstone_failure_threshold`.
    #[error("Operation failed - received {} responses and {} failures: {}", .0.replicas.received, .0.replicas.failed.len(), .0.replicas)]
    TooManyTombstones(Box<TombstoneFailure>),
    /// 0x1500: the commit log failed; what was written may or may not be there after a restart.
    #[error("Operation failed - received {} responses and {} failures: {what}", .replicas.received, .replicas.failed.len())]
    WriteFailure { consistency: Consistency, write_type: WriteType, replicas: FailedReplicas, what: String },
    /// 0x1400: a function failed.
    #[error("{message}")]
    FunctionFailure { message: String, keyspace: String, function: String, argument_types: Vec<String> },
    /// 0x000A: a request that breaks the protocol's rules, such as a damaged paging state.
    #[error("{0}")]
    Protocol(String),
    /// 0x0000: our fault.
    #[error("{0}")]
    Server(String),
    /// 0x0000 too: it was cut off by the node's stop.
    #[error("{}", TableError::ShuttingDown)]
    ShuttingDown,
}

/// Replicas that can not do their part, beside those that have done it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedReplicas {
    /// So many have.
    pub received: u32,
    /// So many must.
    pub block_for: u32,
    /// Who can not.
    pub failed: Vec<FailedReplica>,
}

/// A replica that can not do its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedReplica {
    /// Where other nodes reach it; `None` for this node, when it is alone.
    pub address: Option<SocketAddr>,
    /// Why it can not, as far as clients are told.
    pub reason: FailureReason,
}

/// Why a replica can not do its part, by Cassandra's names (`RequestFailureReason` of 5.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureReason {
    /// What was wrong stands in the logs.
    Unknown,
    /// It came upon more tombstones than `tombstone_failure_threshold`.
    ReadTooManyTombstones,
}

impl FailedReplicas {
    /// This node, when it is alone; what was wrong stands in its log.
    fn this_node() -> Self {
        FailedReplicas::alone(FailureReason::Unknown)
    }

    /// This node, when it is alone and came upon too many tombstones.
    pub(crate) fn with_tombstones() -> Self {
        FailedReplicas::alone(FailureReason::ReadTooManyTombstones)
    }

    fn alone(reason: FailureReason) -> Self {
        FailedReplicas { received: 0, block_for: 1, failed: vec![FailedReplica { address: None, reason }] }
    }

    /// Those of a ring.
    pub(crate) fn of_ring(too_few: &TooFew) -> Self {
        let reason = |failure: &Failure| match failure {
            Failure::TooManyTombstones(_) => FailureReason::ReadTooManyTombstones,
            _ => FailureReason::Unknown,
        };
        let failed = too_few.failures.iter();
        let failed = failed
            .map(|(address, failure)| FailedReplica { address: Some(*address), reason: reason(failure) });
        FailedReplicas { received: too_few.received, block_for: too_few.required, failed: failed.collect() }
    }
}

impl fmt::Display for FailedReplicas {
    /// Who failed and why, as Cassandra tells it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, FailedReplica { address, reason }) in self.failed.iter().enumerate() {
            let name = match reason {
                FailureReason::Unknown => "UNKNOWN",
                FailureReason::ReadTooManyTombstones => "READ_TOO_MANY_TOMBSTONES",
            };
            let separator = if index == 0 { "" } else { ", " };
            let address = address.unwrap_or(ALONE);
            write!(formatter, "{separator}{name} from /{address}")?;
        }
        Ok(())
    }
}

/// What a node that is alone calls itself.
const ALONE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7000);

/// A read that was ended because of tombstones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TombstoneFailure {
    /// The level it was asked for.
    pub consistency: Consistency,
    /// Who came upon them, and who has answered.
    pub replicas: FailedReplicas,
    /// What the log is to say.
    pub what: String,
    /// What the client should know beside the error.
    pub warnings: Vec<String>,
}

/// What kind of write timed out or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteType {
    /// One partition.
    Simple,
    /// A logged batch, its log written.
    Batch,
    /// An unlogged batch.
    UnloggedBatch,
    /// A logged batch, its log not yet written.
    BatchLog,
    /// A change with a condition.
    Cas,
    /// An update of counters.
    Counter,
}

impl QueryError {
    /// An [`QueryError::Invalid`] of this message.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        QueryError::Invalid(message.into())
    }

    /// An [`QueryError::Config`] of this message.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        QueryError::Config(message.into())
    }

    /// The refusal of something Cassandra can do and we can not yet.
    pub(crate) fn unsupported(what: &str) -> Self {
        QueryError::Invalid(format!("{what} is not supported yet"))
    }

    /// The end of a read that came upon too many tombstones, in the words of the log.
    pub(crate) fn too_many_tombstones(
        consistency: Consistency,
        replicas: FailedReplicas,
        what: String,
    ) -> Self {
        let warnings = Vec::new();
        QueryError::TooManyTombstones(Box::new(TombstoneFailure { consistency, replicas, what, warnings }))
    }

    /// The code of the native protocol.
    pub fn code(&self) -> i32 {
        match self {
            QueryError::Server(_) | QueryError::ShuttingDown => 0x0000,
            QueryError::Protocol(_) => 0x000A,
            QueryError::Unavailable { .. } => 0x1000,
            QueryError::Overloaded(_) => 0x1001,
            QueryError::Truncate(_) => 0x1003,
            QueryError::WriteTimeout { .. } | QueryError::CasWriteTimeout { .. } => 0x1100,
            QueryError::CasWriteUnknown { .. } => 0x1700,
            QueryError::ReadTimeout { .. } => 0x1200,
            QueryError::ReadFailure { .. } | QueryError::TooManyTombstones(_) => 0x1300,
            QueryError::FunctionFailure { .. } => 0x1400,
            QueryError::WriteFailure { .. } => 0x1500,
            QueryError::Syntax(_) => 0x2000,
            QueryError::Unauthorized(_) => 0x2100,
            QueryError::Invalid(_) => 0x2200,
            QueryError::Config(_) => 0x2300,
            QueryError::AlreadyExists { .. } => 0x2400,
            QueryError::Unprepared { .. } => 0x2500,
        }
    }

    /// What a coordinator's error means to the client, at that level, of what is no write.
    pub(crate) fn from_coordinator(error: CoordinatorError, consistency: Consistency) -> Self {
        QueryError::of_write(error, consistency, WriteType::Simple)
    }

    /// What it means to the client of a write.
    pub(crate) fn of_write(error: CoordinatorError, consistency: Consistency, write_type: WriteType) -> Self {
        match error {
            CoordinatorError::Overloaded { .. } => QueryError::Overloaded(error.to_string()),
            // As in Cassandra, where a timeout of the type BATCH says that the batch is in the log and will be whole.
            CoordinatorError::Unfinished { .. } => TimedOut.of_write(consistency, write_type),
            // Of the record, whatever was asked for: so Cassandra tells it.
            CoordinatorError::Unrecorded { received, required } => QueryError::WriteTimeout {
                consistency: if required > 1 { Consistency::Two } else { Consistency::One },
                received,
                block_for: required,
                write_type: WriteType::BatchLog,
            },
            CoordinatorError::Unavailable { required, alive, .. } => {
                QueryError::Unavailable { consistency, required, alive }
            }
            CoordinatorError::TooFew(too_few) => QueryError::of_too_few(too_few, consistency, write_type),
            CoordinatorError::RingRefuses { what } => QueryError::invalid(what),
            // As in Cassandra, whose timeout of the type SIMPLE says that a conditional change is decided.
            CoordinatorError::Chosen { received, required: block_for } => {
                QueryError::WriteTimeout { consistency, received, block_for, write_type: WriteType::Simple }
            }
            CoordinatorError::InDoubt => {
                QueryError::CasWriteUnknown { consistency, received: 0, block_for: 1 }
            }
            CoordinatorError::BatchTooLarge { .. } => QueryError::invalid("Batch too large"),
            // As Cassandra 5's MutationExceededMaxSizeException.
            CoordinatorError::NoTable { .. }
            | CoordinatorError::Storage(StorageError::MutationTooLarge { .. }) => {
                QueryError::invalid(error.to_string())
            }
            CoordinatorError::ShuttingDown => QueryError::ShuttingDown,
            CoordinatorError::Storage(StorageError::TooManyTombstones(_)) => {
                let (replicas, what) = (FailedReplicas::with_tombstones(), error.to_string());
                QueryError::too_many_tombstones(consistency, replicas, what)
            }
            CoordinatorError::Table(TableError::CommitLog(_)) => {
                let (replicas, what) = (FailedReplicas::this_node(), error.to_string());
                QueryError::WriteFailure { consistency, write_type, replicas, what }
            }
            CoordinatorError::Table(
                TableError::TableFile(_) | TableError::Quarantined { .. } | TableError::Disk { .. },
            ) => {
                let (replicas, what) = (FailedReplicas::this_node(), error.to_string());
                QueryError::ReadFailure { consistency, replicas, what }
            }
            _ => QueryError::Server(error.to_string()),
        }
    }

    /// What it means that too few replicas did their part.
    fn of_too_few(too_few: TooFew, consistency: Consistency, write_type: WriteType) -> Self {
        let replicas = FailedReplicas::of_ring(&too_few);
        let TooFew { is_write, received, required, failures } = too_few;
        // What was wrong stands in the logs of those nodes, and in ours.
        let what = replicas.to_string();
        for (address, failure) in &failures {
            tracing::warn!(%address, %failure, is_write, "a replica has failed");
        }
        match (is_write, replicas.failed.is_empty()) {
            (true, true) if write_type == WriteType::Cas => {
                QueryError::CasWriteTimeout { consistency, received, block_for: required }
            }
            (true, true) => {
                QueryError::WriteTimeout { consistency, received, block_for: required, write_type }
            }
            (true, false) => QueryError::WriteFailure { consistency, write_type, replicas, what },
            (false, true) => {
                let data_present = received > 0;
                QueryError::ReadTimeout { consistency, received, block_for: required, data_present }
            }
            (false, false) => QueryError::ReadFailure { consistency, replicas, what },
        }
    }
}

impl From<cql::SyntaxError> for QueryError {
    fn from(error: cql::SyntaxError) -> Self {
        QueryError::Syntax(error.message().to_owned())
    }
}

/// `Err(Invalid(format!(…)))`, for the many refusals of one line.
macro_rules! refuse {
    ($($argument:tt)*) => { return Err($crate::QueryError::invalid(stdx::brief!($($argument)*))) };
}
pub(crate) use refuse;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_begun_is_late_and_not_refused() {
        let told = |error, write_type| QueryError::of_write(error, Consistency::Quorum, write_type);
        let refused = || CoordinatorError::Overloaded { what: "no room".into() };
        assert_eq!(told(refused(), WriteType::Batch), QueryError::Overloaded("overloaded: no room".into()));
        for write_type in [WriteType::Batch, WriteType::UnloggedBatch] {
            let unfinished = CoordinatorError::Unfinished { cause: Box::new(refused()) };
            let (consistency, received, block_for) = (Consistency::Quorum, 0, 1);
            let late = QueryError::WriteTimeout { consistency, received, block_for, write_type };
            assert_eq!(told(unfinished, write_type), late);
        }
    }
}
