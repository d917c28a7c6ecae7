//! Consistency levels, kinds of batch and kinds of write, with their codes and names.

use std::fmt;

use crate::ProtocolError;

/// How many replicas must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
#[expect(missing_docs, reason = "the names are CQL's own")]
pub enum Consistency {
    Any = 0,
    One = 1,
    Two = 2,
    Three = 3,
    Quorum = 4,
    All = 5,
    LocalQuorum = 6,
    EachQuorum = 7,
    Serial = 8,
    LocalSerial = 9,
    LocalOne = 10,
    /// Cassandra 5's `NODE_LOCAL`: only for internal use, never taken from a query there either.
    NodeLocal = 11,
}

impl Consistency {
    /// Every level, by code.
    pub const ALL_LEVELS: [Consistency; 12] = [
        Consistency::Any,
        Consistency::One,
        Consistency::Two,
        Consistency::Three,
        Consistency::Quorum,
        Consistency::All,
        Consistency::LocalQuorum,
        Consistency::EachQuorum,
        Consistency::Serial,
        Consistency::LocalSerial,
        Consistency::LocalOne,
        Consistency::NodeLocal,
    ];

    /// The level of a wire code.
    pub fn from_code(code: u16) -> Result<Consistency, ProtocolError> {
        Consistency::ALL_LEVELS
            .get(usize::from(code))
            .copied()
            .ok_or(ProtocolError::UnknownConsistency { code })
    }

    /// Its wire code.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// Is it one of the two levels of the Paxos phase?
    pub fn is_serial(self) -> bool {
        matches!(self, Consistency::Serial | Consistency::LocalSerial)
    }

    /// Does it count replicas of the local data centre only?
    pub fn is_datacenter_local(self) -> bool {
        matches!(self, Consistency::LocalOne | Consistency::LocalQuorum | Consistency::LocalSerial)
    }

    /// Its name, as in CQL shells and error texts: `LOCAL_QUORUM`.
    pub fn name(self) -> &'static str {
        match self {
            Consistency::Any => "ANY",
            Consistency::One => "ONE",
            Consistency::Two => "TWO",
            Consistency::Three => "THREE",
            Consistency::Quorum => "QUORUM",
            Consistency::All => "ALL",
            Consistency::LocalQuorum => "LOCAL_QUORUM",
            Consistency::EachQuorum => "EACH_QUORUM",
            Consistency::Serial => "SERIAL",
            Consistency::LocalSerial => "LOCAL_SERIAL",
            Consistency::LocalOne => "LOCAL_ONE",
            Consistency::NodeLocal => "NODE_LOCAL",
        }
    }

    /// The level of a name, in any case.
    pub fn from_name(name: &str) -> Option<Consistency> {
        Consistency::ALL_LEVELS.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The kind of a BATCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchKind {
    /// Atomic over partitions.
    Logged = 0,
    /// Just grouped.
    Unlogged = 1,
    /// Of counter updates.
    Counter = 2,
}

impl BatchKind {
    /// The kind of a wire code.
    pub fn from_code(code: u8) -> Result<BatchKind, ProtocolError> {
        match code {
            0 => Ok(BatchKind::Logged),
            1 => Ok(BatchKind::Unlogged),
            2 => Ok(BatchKind::Counter),
            // Printed signed, as Cassandra does.
            _ => Err(ProtocolError::UnknownBatchKind { code: code as i8 }),
        }
    }

    /// Its wire code.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// What kind of write timed out or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteType {
    /// One partition, no batch.
    Simple,
    /// A logged batch whose batchlog was written.
    Batch,
    /// An unlogged batch.
    UnloggedBatch,
    /// A counter update.
    Counter,
    /// The batchlog of a logged batch.
    BatchLog,
    /// A lightweight transaction.
    Cas,
    /// The view updates of a write.
    View,
    /// Change data capture.
    Cdc,
}

impl WriteType {
    const ALL: [WriteType; 8] = [
        WriteType::Simple,
        WriteType::Batch,
        WriteType::UnloggedBatch,
        WriteType::Counter,
        WriteType::BatchLog,
        WriteType::Cas,
        WriteType::View,
        WriteType::Cdc,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            WriteType::Simple => "SIMPLE",
            WriteType::Batch => "BATCH",
            WriteType::UnloggedBatch => "UNLOGGED_BATCH",
            WriteType::Counter => "COUNTER",
            WriteType::BatchLog => "BATCH_LOG",
            WriteType::Cas => "CAS",
            WriteType::View => "VIEW",
            WriteType::Cdc => "CDC",
        }
    }

    /// The kind of a wire name.
    pub fn from_name(name: &str) -> Option<WriteType> {
        WriteType::ALL.into_iter().find(|write_type| write_type.name() == name)
    }
}
