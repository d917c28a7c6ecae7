//! The nine bytes before every body, and what they say.
//!
//! ```text
//!   0         1         2                   4         5                                       9
//!   +---------+---------+-------------------+---------+---------------------------------------+
//!   | version |  flags  |      stream       | opcode  |              body length              |
//!   +---------+---------+-------------------+---------+---------------------------------------+
//! ```
//!
//! The top bit of `version` is the direction (set in responses). All numbers are big-endian.

use std::fmt;

use bytes::Bytes;

use crate::{ProtocolError, Version};

/// Length of an envelope's header.
pub const HEADER_BYTES: usize = 9;

/// The bit of the version byte that marks a response.
pub(crate) const RESPONSE_BIT: u8 = 0x80;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the specification's")]
pub enum Opcode {
    Error = 0x00,
    Startup = 0x01,
    Ready = 0x02,
    Authenticate = 0x03,
    /// Of version 1; refused with an error of its own.
    Credentials = 0x04,
    Options = 0x05,
    Supported = 0x06,
    Query = 0x07,
    Result = 0x08,
    Prepare = 0x09,
    Execute = 0x0A,
    Register = 0x0B,
    Event = 0x0C,
    Batch = 0x0D,
    AuthChallenge = 0x0E,
    AuthResponse = 0x0F,
    AuthSuccess = 0x10,
}

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// A client.
    Request,
    /// A server.
    Response,
}

impl fmt::Display for Direction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Direction::Request => "REQUEST",
            Direction::Response => "RESPONSE",
        })
    }
}

impl Opcode {
    const ALL: [Opcode; 17] = [
        Opcode::Error,
        Opcode::Startup,
        Opcode::Ready,
        Opcode::Authenticate,
        Opcode::Credentials,
        Opcode::Options,
        Opcode::Supported,
        Opcode::Query,
        Opcode::Result,
        Opcode::Prepare,
        Opcode::Execute,
        Opcode::Register,
        Opcode::Event,
        Opcode::Batch,
        Opcode::AuthChallenge,
        Opcode::AuthResponse,
        Opcode::AuthSuccess,
    ];

    /// The message of a code sent in a direction.
    ///
    /// # Errors
    /// The code is unknown, or belongs to the other direction.
    pub fn from_code(code: u8, direction: Direction) -> Result<Opcode, ProtocolError> {
        let opcode = Opcode::ALL.get(usize::from(code)).copied();
        // Printed signed, as Cassandra does.
        let opcode = opcode.ok_or(ProtocolError::UnknownOpcode { code: code as i8 })?;
        match opcode.direction() == direction {
            true => Ok(opcode),
            false => Err(ProtocolError::WrongDirection { opcode, got: direction }),
        }
    }

    /// Its code on the wire.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Who sends it.
    pub fn direction(self) -> Direction {
        match self {
            Opcode::Startup
            | Opcode::Credentials
            | Opcode::Options
            | Opcode::Query
            | Opcode::Prepare
            | Opcode::Execute
            | Opcode::Register
            | Opcode::Batch
            | Opcode::AuthResponse => Direction::Request,
            Opcode::Error
            | Opcode::Ready
            | Opcode::Authenticate
            | Opcode::Supported
            | Opcode::Result
            | Opcode::Event
            | Opcode::AuthChallenge
            | Opcode::AuthSuccess => Direction::Response,
        }
    }

    /// Its name in the specification and in error texts.
    pub fn name(self) -> &'static str {
        match self {
            Opcode::Error => "ERROR",
            Opcode::Startup => "STARTUP",
            Opcode::Ready => "READY",
            Opcode::Authenticate => "AUTHENTICATE",
            Opcode::Credentials => "CREDENTIALS",
            Opcode::Options => "OPTIONS",
            Opcode::Supported => "SUPPORTED",
            Opcode::Query => "QUERY",
            Opcode::Result => "RESULT",
            Opcode::Prepare => "PREPARE",
            Opcode::Execute => "EXECUTE",
            Opcode::Register => "REGISTER",
            Opcode::Event => "EVENT",
            Opcode::Batch => "BATCH",
            Opcode::AuthChallenge => "AUTH_CHALLENGE",
            Opcode::AuthResponse => "AUTH_RESPONSE",
            Opcode::AuthSuccess => "AUTH_SUCCESS",
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The flags of a header. Unknown bits are kept and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// None set.
    pub const NONE: Flags = Flags(0);
    /// The body is compressed with the algorithm of STARTUP (versions 3 and 4).
    pub const COMPRESSED: Flags = Flags(0x01);
    /// Request: trace it. Response: a trace id precedes the body.
    pub const TRACING: Flags = Flags(0x02);
    /// A map of bytes precedes the body.
    pub const CUSTOM_PAYLOAD: Flags = Flags(0x04);
    /// Response: a list of warnings precedes the body.
    pub const WARNING: Flags = Flags(0x08);
    /// The client knows that the version is a beta.
    pub const USE_BETA: Flags = Flags(0x10);

    /// Flags of a header byte.
    pub fn from_bits(bits: u8) -> Flags {
        Flags(bits)
    }

    /// The header byte.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Are all of `other` set?
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[must_use]
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These without `other`.
    #[must_use]
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

/// A header, without the length of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the protocol the body is written in.
    pub version: Version,
    /// Its flags.
    pub flags: Flags,
    /// Ties a response to its request; negative in events.
    pub stream: i16,
    /// What the body is.
    pub opcode: Opcode,
}

/// One message as found on the wire: a header and its body, already decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The header, [`Flags::COMPRESSED`] cleared when the body was decompressed.
    pub header: Header,
    /// The body.
    pub body: Bytes,
}
