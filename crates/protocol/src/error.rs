//! What can be wrong: with the bytes of a peer ([`ProtocolError`]), and with a request in
//! general ([`ErrorResponse`], the body of ERROR).

use std::net::IpAddr;

use bytes::Bytes;

use crate::{Consistency, Direction, Opcode, Version, WriteType};

/// The body of ERROR: a text for people and a kind with its facts for programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ErrorResponse {
    /// For people; some drivers match on it.
    pub message: String,
    /// The code and what belongs to it.
    pub kind: ErrorKind,
}

impl ErrorResponse {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ErrorResponse {
        ErrorResponse { message: message.into(), kind }
    }

    /// 0x2200: the statement makes no sense here.
    pub fn invalid(message: impl Into<String>) -> ErrorResponse {
        ErrorResponse::new(ErrorKind::Invalid, message)
    }

    /// 0x2000: the statement cannot be parsed.
    pub fn syntax(message: impl Into<String>) -> ErrorResponse {
        ErrorResponse::new(ErrorKind::Syntax, message)
    }

    /// 0x000A: the frame is wrong.
    pub fn protocol(message: impl Into<String>) -> ErrorResponse {
        ErrorResponse::new(ErrorKind::Protocol, message)
    }

    /// 0x0000: our fault.
    pub fn server(message: impl Into<String>) -> ErrorResponse {
        ErrorResponse::new(ErrorKind::Server, message)
    }

    /// 0x2500: no statement with this id is kept, in Cassandra's words.
    pub fn unprepared(id: Bytes) -> ErrorResponse {
        use std::fmt::Write;
        let mut hex = String::with_capacity(id.len() * 2);
        for byte in &id {
            let _ = write!(hex, "{byte:02x}");
        }
        let message = format!(
            "Prepared query with ID {hex} not found (either the query was not prepared on this host \
             (maybe the host has been restarted?) or you have prepared too many queries and it has been \
             evicted from the internal cache)"
        );
        ErrorResponse::new(ErrorKind::Unprepared { id }, message)
    }
}

/// Kinds of error. Counts are of replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields repeat from variant to variant; their names are the specification's")]
pub enum ErrorKind {
    /// 0x0000: our fault.
    Server,
    /// 0x000A: the frame is wrong.
    Protocol,
    /// 0x0100: wrong user or password.
    BadCredentials,
    /// 0x1000: too few replicas alive.
    Unavailable { consistency: Consistency, required: i32, alive: i32 },
    /// 0x1001: too much to do.
    Overloaded,
    /// 0x1002: this node has no data yet.
    IsBootstrapping,
    /// 0x1003: TRUNCATE failed.
    Truncate,
    /// 0x1100: too few replicas answered a write in time.
    WriteTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        write_type: WriteType,
        /// How often a CAS write met another (version 5 on, CAS only).
        contentions: Option<u16>,
    },
    /// 0x1200: too few replicas answered a read in time.
    ReadTimeout { consistency: Consistency, received: i32, block_for: i32, data_present: bool },
    /// 0x1300: replicas answered a read with errors.
    ReadFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<(IpAddr, FailureReason)>,
        data_present: bool,
    },
    /// 0x1400: a user-defined function failed.
    FunctionFailure { keyspace: String, function: String, argument_types: Vec<String> },
    /// 0x1500: replicas answered a write with errors.
    WriteFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<(IpAddr, FailureReason)>,
        write_type: WriteType,
    },
    /// 0x1600: change data capture has no room.
    CdcWriteFailure,
    /// 0x1700: a CAS write may or may not have happened.
    CasWriteUnknown { consistency: Consistency, received: i32, block_for: i32 },
    /// 0x2000: the statement cannot be parsed.
    Syntax,
    /// 0x2100: not allowed.
    Unauthorized,
    /// 0x2200: the statement makes no sense here.
    Invalid,
    /// 0x2300: a definition makes no sense.
    Config,
    /// 0x2400: it exists already; `table` is empty for a keyspace.
    AlreadyExists { keyspace: String, table: String },
    /// 0x2500: no statement with this id is kept.
    Unprepared { id: Bytes },
}

impl ErrorKind {
    /// Its code on the wire.
    pub fn code(&self) -> i32 {
        match self {
            ErrorKind::Server => 0x0000,
            ErrorKind::Protocol => 0x000A,
            ErrorKind::BadCredentials => 0x0100,
            ErrorKind::Unavailable { .. } => 0x1000,
            ErrorKind::Overloaded => 0x1001,
            ErrorKind::IsBootstrapping => 0x1002,
            ErrorKind::Truncate => 0x1003,
            ErrorKind::WriteTimeout { .. } => 0x1100,
            ErrorKind::ReadTimeout { .. } => 0x1200,
            ErrorKind::ReadFailure { .. } => 0x1300,
            ErrorKind::FunctionFailure { .. } => 0x1400,
            ErrorKind::WriteFailure { .. } => 0x1500,
            ErrorKind::CdcWriteFailure => 0x1600,
            ErrorKind::CasWriteUnknown { .. } => 0x1700,
            ErrorKind::Syntax => 0x2000,
            ErrorKind::Unauthorized => 0x2100,
            ErrorKind::Invalid => 0x2200,
            ErrorKind::Config => 0x2300,
            ErrorKind::AlreadyExists { .. } => 0x2400,
            ErrorKind::Unprepared { .. } => 0x2500,
        }
    }
}

/// Why a replica failed (version 5 on).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
#[expect(missing_docs, reason = "the names are Cassandra's")]
pub enum FailureReason {
    Unknown = 0,
    ReadTooManyTombstones = 1,
    Timeout = 2,
    IncompatibleSchema = 3,
    ReadSize = 4,
    NodeDown = 5,
    IndexNotAvailable = 6,
    ReadTooManyIndexes = 7,
}

impl FailureReason {
    /// The reason of a wire code; `Unknown` for codes of later versions.
    pub fn from_code(code: u16) -> FailureReason {
        match code {
            1 => FailureReason::ReadTooManyTombstones,
            2 => FailureReason::Timeout,
            3 => FailureReason::IncompatibleSchema,
            4 => FailureReason::ReadSize,
            5 => FailureReason::NodeDown,
            6 => FailureReason::IndexNotAvailable,
            7 => FailureReason::ReadTooManyIndexes,
            _ => FailureReason::Unknown,
        }
    }

    /// Its wire code.
    pub fn code(self) -> u16 {
        self as u16
    }
}

/// What is wrong with a peer's bytes. The texts are Cassandra's, as clients see them in ERROR
/// (hence capitals, and the misprint in one of them).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what the fields are")]
pub enum ProtocolError {
    #[error(
        "Invalid or unsupported protocol version ({number}); supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)"
    )]
    UnsupportedVersion { number: u8 },
    #[error("Beta version of the protocol used ({version}), but USE_BETA flag is unset")]
    BetaWithoutFlag { version: Version },
    #[error("Invalid message version. Got {got} but {}messages on this connection had version {established}",
        if established.uses_segments() { "previous" } else { "previous " })]
    VersionChanged { got: Version, established: Version },
    #[error("Unknown opcode {code}")]
    UnknownOpcode { code: i8 },
    #[error("Wrong protocol direction (expected {}, got {got}) for opcode {} ({opcode})",
        opcode.direction(), opcode.code())]
    WrongDirection { opcode: Opcode, got: Direction },
    #[error("Unknown code {code} for a consistency level")]
    UnknownConsistency { code: u16 },
    #[error("Invalid BATCH message type {code}")]
    UnknownBatchKind { code: i8 },
}
