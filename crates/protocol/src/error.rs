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
        let message = format!(
            "Prepared query with ID {} not found (either the query was not prepared on this host \
             (maybe the host has been restarted?) or you have prepared too many queries and it has been \
             evicted from the internal cache)",
            hex(&id)
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
    #[error("Invalid query kind in BATCH messages. Must be 0 or 1 but got {code}")]
    UnknownBatchQuery { code: i8 },
    #[error("Not enough bytes to read {what}")]
    Truncated { what: &'static str },
    #[error("Cannot read value of length {length}, only {remaining} bytes remaining in the message")]
    ValueTooLong { length: i32, remaining: usize },
    #[error("Invalid ByteBuf length {length}")]
    NegativeValueLength { length: i32 },
    #[error(
        "Cannot decode string as UTF8: '{hex}'; java.nio.charset.MalformedInputException: Input length = {malformed}"
    )]
    NotUtf8 { hex: String, malformed: usize },
    #[error("Invalid value '{value}' for {what}")]
    UnknownName { value: String, what: &'static str },
    #[error("Invalid IP address of {length} bytes while deserializing inet address")]
    AddressLength { length: u8 },
    #[error("Invalid port {port} while deserializing inet address")]
    Port { port: i32 },
    #[error("Out of bound timestamp, must be in [{}, {}] (got {timestamp})", i64::MIN + 1, i64::MAX)]
    Timestamp { timestamp: i64 },
    #[error("Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4")]
    CustomPayloadTooEarly,
    #[error("Unsupported message")]
    UnsupportedMessage,
    #[error("Unknown error code {code}")]
    UnknownErrorCode { code: i32 },
    #[error("Unknown result kind {kind}")]
    UnknownResultKind { kind: i32 },
    #[error("Unknown type option {code}")]
    UnknownTypeOption { code: u16 },
    #[error("Types are nested deeper than {depth_max}")]
    TypeTooDeep { depth_max: usize },
    #[error("Unknown custom type '{class}'")]
    UnknownCustomType { class: String },
    #[error("Invalid count {count}")]
    Count { count: i32 },
    #[error("Invalid value for envelope header body length field: {length}")]
    NegativeBodyLength { length: i32 },
    /// Of a plain envelope (versions 3 and 4, and before STARTUP); an INVALID, not a PROTOCOL error.
    #[error("Request is too big: length {length} exceeds maximum allowed length {length_max}.")]
    RequestTooBig { length: u64, length_max: usize },
    /// Of an envelope in segments (version 5 on); an INVALID, not a PROTOCOL error.
    #[error("CQL Message of size {length} bytes exceeds allowed maximum of {length_max} bytes")]
    MessageTooBig { length: u64, length_max: usize },
    #[error(
        "The connection is not yet in a valid state to process multi frame CQL Messages, usually thismeans that \
         authentication is still pending. type = {opcode}, size = {length}"
    )]
    LargeBeforeReady { opcode: Opcode, length: u64 },
    #[error(
        "{connection:08x} invalid, unrecoverable CRC mismatch detected in frame {}. Read {read}, Computed {computed}",
        if *header { "header" } else { "body" }
    )]
    Checksum { connection: u32, header: bool, read: i32, computed: i32 },
    #[error("Provided frame does not appear to be Snappy compressed")]
    NotSnappy,
    #[error("Provided frame does not appear to be LZ4 compressed")]
    NotLz4,
    #[error("Envelope of {length} bytes does not fit into the {remaining} bytes left of its segment")]
    EnvelopeCut { length: u64, remaining: usize },
    #[error("Unexpected message {opcode}, expecting STARTUP or OPTIONS")]
    BeforeStartup { opcode: Opcode },
    #[error("Unexpected message {opcode}, expecting SASL_RESPONSE")]
    BeforeAuthentication { opcode: Opcode },
    #[error("Unexpected message STARTUP, the connection is already initialized")]
    StartupTwice,
    #[error("Missing value CQL_VERSION in STARTUP message")]
    CqlVersionMissing,
    #[error("CQL version {version} is not supported by the binary protocol (supported version are >= 3.0.0)")]
    CqlVersionTooOld { version: String },
    #[error("Invalid version value: {version}")]
    CqlVersionInvalid { version: String },
    #[error("Unknown compression algorithm: {name}")]
    UnknownCompression { name: String },
    #[error("Snappy compression is not supported in protocol V5")]
    SnappyInSegments,
}

impl ProtocolError {
    /// The error for bytes that should have been text, with Cassandra's facts about them.
    pub(crate) fn not_utf8(bytes: &[u8]) -> ProtocolError {
        /// Enough to recognise it by; Cassandra shows all.
        const SHOWN_BYTES_MAX: usize = 1024;
        let malformed = match std::str::from_utf8(bytes) {
            Err(error) => error.error_len().unwrap_or(1),
            Ok(_) => 0,
        };
        let shown = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
        ProtocolError::NotUtf8 { hex: hex(shown), malformed }
    }
}

impl From<ProtocolError> for ErrorResponse {
    fn from(error: ProtocolError) -> ErrorResponse {
        let kind = match error {
            ProtocolError::RequestTooBig { .. } | ProtocolError::MessageTooBig { .. } => ErrorKind::Invalid,
            _ => ErrorKind::Protocol,
        };
        ErrorResponse::new(kind, error.to_string())
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
