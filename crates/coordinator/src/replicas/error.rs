//! What a client hears when too few replicas did their part.

use crate::{Consistency, CoordinatorError};

/// Too few replicas. Counts are of replicas, as Cassandra tells them.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// Nothing was sent: too few live.
    #[error("cannot achieve consistency level {}: {required} required, {alive} alive", .consistency.name())]
    Unavailable {
        /// As it was asked for.
        consistency: Consistency,
        /// So many must answer.
        required: u32,
        /// So many could.
        alive: u32,
    },
    /// Some may have done it: too few have said so in time.
    #[error("write timed out: {received} of {required} replicas have answered")]
    WriteTimeout {
        /// So many have it.
        received: u32,
        /// So many must.
        required: u32,
    },
    /// Some may have done it: too many said that they can not.
    #[error("write failed: {received} of {required} replicas have answered, {failure_count} failed: {first}")]
    WriteFailure {
        /// So many have it.
        received: u32,
        /// So many must.
        required: u32,
        /// So many said why not.
        failure_count: u32,
        /// What the first of them said.
        first: replica::Failure,
    },
    /// Too few have answered in time.
    #[error("read timed out: {received} of {required} replicas have answered")]
    ReadTimeout {
        /// So many have answered.
        received: u32,
        /// So many must.
        required: u32,
    },
    /// Too many said that they can not.
    #[error("read failed: {received} of {required} replicas have answered, {failure_count} failed: {first}")]
    ReadFailure {
        /// So many have answered.
        received: u32,
        /// So many must.
        required: u32,
        /// So many said why not.
        failure_count: u32,
        /// What the first of them said.
        first: replica::Failure,
    },
    /// The table is not known here, or its keyspace is not in the ring.
    #[error("there is no such table in the ring")]
    NoTable,
    /// Something that has nothing to do with replicas.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
}
