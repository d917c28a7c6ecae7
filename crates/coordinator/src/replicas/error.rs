//! What a client hears when too few replicas did their part.

use std::net::SocketAddr;

use read::TooManyTombstones;
use replica::Failure;
use storage::StorageError;

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
    #[error("write failed: {received} of {required} replicas have answered, {} failed: {}", .failures.len(), told(.failures))]
    WriteFailure {
        /// So many have it.
        received: u32,
        /// So many must.
        required: u32,
        /// Who said that it can not, and why.
        failures: Vec<(SocketAddr, Failure)>,
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
    #[error("read failed: {received} of {required} replicas have answered, {} failed: {}", .failures.len(), told(.failures))]
    ReadFailure {
        /// So many have answered.
        received: u32,
        /// So many must.
        required: u32,
        /// Who said that it can not, and why.
        failures: Vec<(SocketAddr, Failure)>,
    },
    /// The table was emptied at that epoch of the schema, and this node has not come so far: it is to be done again
    /// then. Some may have done it, and emptied it since, or will.
    #[error("the table was emptied at epoch {epoch} of the schema")]
    Outdated {
        /// Which.
        epoch: u64,
    },
    /// A conditional change that was proposed may have been made, and others have changed the partition since.
    #[error("it is not known whether a conditional change was made")]
    InDoubt,
    /// A conditional change is chosen, and will be made: too few have said in time that they have it.
    #[error("write of what was agreed on timed out: {received} of {required} replicas have answered")]
    Chosen {
        /// So many have it.
        received: u32,
        /// So many must.
        required: u32,
    },
    /// The table is not known here, or its keyspace is not in the ring.
    #[error("there is no such table in the ring")]
    NoTable,
    /// Something that has nothing to do with replicas.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
}

fn told(failures: &[(SocketAddr, Failure)]) -> String {
    let told = failures.iter().map(|(address, failure)| format!("{failure} ({address})"));
    told.collect::<Vec<_>>().join(", ")
}

impl From<ReplicaError> for CoordinatorError {
    fn from(error: ReplicaError) -> Self {
        let table_gone = || CoordinatorError::NoTable { table: "of the request".to_owned() };
        match error {
            ReplicaError::Coordinator(error) => error,
            ReplicaError::NoTable => table_gone(),
            ReplicaError::InDoubt => CoordinatorError::InDoubt,
            ReplicaError::Chosen { received, required } => CoordinatorError::Chosen { received, required },
            ReplicaError::Outdated { epoch } => CoordinatorError::Outdated { epoch },
            ReplicaError::Unavailable { consistency, required, alive } => {
                CoordinatorError::Unavailable { consistency: consistency.name(), required, alive }
            }
            ReplicaError::ReadFailure { received, required, failures } => {
                // What a larger page would mend is told as if it had been met here.
                let mended = failures.iter().find_map(|(_, failure)| match failure {
                    Failure::RowTooLarge { bytes } => Some(StorageError::RowTooLarge { bytes: *bytes }),
                    _ => None,
                });
                mended.map_or(
                    CoordinatorError::TooFew(TooFew { is_write: false, received, required, failures }),
                    CoordinatorError::Storage,
                )
            }
            ReplicaError::ReadTimeout { received, required } => {
                let failures = Vec::new();
                CoordinatorError::TooFew(TooFew { is_write: false, received, required, failures })
            }
            ReplicaError::WriteTimeout { received, required } => {
                let failures = Vec::new();
                CoordinatorError::TooFew(TooFew { is_write: true, received, required, failures })
            }
            ReplicaError::WriteFailure { received, required, failures } => {
                CoordinatorError::TooFew(TooFew { is_write: true, received, required, failures })
            }
        }
    }
}

/// Too few replicas did their part of something that was sent: it may be done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{received} of {required} replicas have answered, {} failed: {}", .failures.len(), told(.failures))]
pub struct TooFew {
    /// Was it a write?
    pub is_write: bool,
    /// So many have done it.
    pub received: u32,
    /// So many must.
    pub required: u32,
    /// Who said that it can not, and why; nobody when it was a matter of time.
    pub failures: Vec<(SocketAddr, Failure)>,
}

impl TooFew {
    /// The tombstones that ended a read, when a replica came upon too many.
    pub fn tombstones(&self) -> Option<&TooManyTombstones> {
        self.failures.iter().find_map(|(_, failure)| match failure {
            Failure::TooManyTombstones(found) => Some(found),
            _ => None,
        })
    }
}
