//! Errors to bytes and back, with what older versions do not know said in their words.

use bytes::{BufMut, BytesMut};

use crate::wire::{Put, Reader};
use crate::{Consistency, ErrorKind, ErrorResponse, FailureReason, ProtocolError, Version, WriteType};

/// The counts most errors of the coordinator begin with.
struct Counts {
    consistency: Consistency,
    received: i32,
    block_for: i32,
}

impl Counts {
    fn read(reader: &mut Reader) -> Result<Counts, ProtocolError> {
        Ok(Counts { consistency: reader.consistency()?, received: reader.i32()?, block_for: reader.i32()? })
    }
}

impl ErrorResponse {
    pub(crate) fn encode(&self, out: &mut BytesMut, version: Version) {
        match self.as_known_to(version) {
            None => encode_known(&self.kind, &self.message, out, version),
            Some(older) => encode_known(&older.kind, &older.message, out, version),
        }
    }

    /// The error that an older version has for one it does not know, if it does not know it.
    fn as_known_to(&self, version: Version) -> Option<ErrorResponse> {
        let kind = match &self.kind {
            ErrorKind::ReadFailure { consistency, received, block_for, data_present, .. }
                if version < Version::V4 =>
            {
                ErrorKind::ReadTimeout {
                    consistency: *consistency,
                    received: *received,
                    block_for: *block_for,
                    data_present: *data_present,
                }
            }
            ErrorKind::WriteFailure { consistency, received, block_for, write_type, .. }
                if version < Version::V4 =>
            {
                ErrorKind::WriteTimeout {
                    consistency: *consistency,
                    received: *received,
                    block_for: *block_for,
                    write_type: *write_type,
                    contentions: None,
                }
            }
            ErrorKind::FunctionFailure { .. } | ErrorKind::CdcWriteFailure if version < Version::V4 => {
                ErrorKind::Invalid
            }
            ErrorKind::CasWriteUnknown { consistency, received, block_for } if version < Version::V5 => {
                ErrorKind::WriteTimeout {
                    consistency: *consistency,
                    received: *received,
                    block_for: *block_for,
                    write_type: WriteType::Cas,
                    contentions: None,
                }
            }
            _ => return None,
        };
        Some(ErrorResponse::new(kind, self.message.clone()))
    }

    pub(crate) fn decode(reader: &mut Reader, version: Version) -> Result<ErrorResponse, ProtocolError> {
        let code = reader.i32()?;
        let message = reader.string()?;
        let kind = decode_kind(code, reader, version)?;
        Ok(ErrorResponse { message, kind })
    }
}

fn encode_known(kind: &ErrorKind, message: &str, out: &mut BytesMut, version: Version) {
    out.put_i32(kind.code());
    out.put_text(message);
    match kind {
        ErrorKind::Unavailable { consistency, required, alive } => {
            put_counts(out, *consistency, *required, *alive);
        }
        ErrorKind::WriteTimeout { consistency, received, block_for, write_type, contentions } => {
            put_counts(out, *consistency, *received, *block_for);
            out.put_text(write_type.name());
            if let Some(contentions) = contentions
                && *write_type == WriteType::Cas
                && version >= Version::V5
            {
                out.put_u16(*contentions);
            }
        }
        ErrorKind::ReadTimeout { consistency, received, block_for, data_present } => {
            put_counts(out, *consistency, *received, *block_for);
            out.put_u8(u8::from(*data_present));
        }
        ErrorKind::ReadFailure { consistency, received, block_for, failures, data_present } => {
            put_counts(out, *consistency, *received, *block_for);
            put_failures(out, failures, version);
            out.put_u8(u8::from(*data_present));
        }
        ErrorKind::WriteFailure { consistency, received, block_for, failures, write_type } => {
            put_counts(out, *consistency, *received, *block_for);
            put_failures(out, failures, version);
            out.put_text(write_type.name());
        }
        ErrorKind::FunctionFailure { keyspace, function, argument_types } => {
            out.put_text(keyspace);
            out.put_text(function);
            out.put_string_list(argument_types);
        }
        ErrorKind::CasWriteUnknown { consistency, received, block_for } => {
            put_counts(out, *consistency, *received, *block_for);
        }
        ErrorKind::AlreadyExists { keyspace, table } => {
            out.put_text(keyspace);
            out.put_text(table);
        }
        ErrorKind::Unprepared { id } => out.put_short_bytes(id),
        ErrorKind::Server
        | ErrorKind::Protocol
        | ErrorKind::BadCredentials
        | ErrorKind::Overloaded
        | ErrorKind::IsBootstrapping
        | ErrorKind::Truncate
        | ErrorKind::CdcWriteFailure
        | ErrorKind::Syntax
        | ErrorKind::Unauthorized
        | ErrorKind::Invalid
        | ErrorKind::Config => {}
    }
}

fn put_counts(out: &mut BytesMut, consistency: Consistency, first: i32, second: i32) {
    out.put_u16(consistency.code());
    out.put_i32(first);
    out.put_i32(second);
}

/// How many replicas failed; from version 5 on also which and why.
fn put_failures(out: &mut BytesMut, failures: &[(std::net::IpAddr, FailureReason)], version: Version) {
    out.put_i32(failures.len() as i32);
    if version >= Version::V5 {
        for (address, reason) in failures {
            out.put_address(*address);
            out.put_u16(reason.code());
        }
    }
}

fn read_failures(
    reader: &mut Reader,
    version: Version,
) -> Result<Vec<(std::net::IpAddr, FailureReason)>, ProtocolError> {
    let count = reader.i32()?;
    let mut failures = Vec::new();
    if version >= Version::V5 {
        for _ in 0..count {
            failures.push((reader.address()?, FailureReason::from_code(reader.u16()?)));
        }
    }
    Ok(failures)
}

fn read_write_type(reader: &mut Reader) -> Result<WriteType, ProtocolError> {
    let name = reader.text()?;
    WriteType::from_name(name.as_str())
        .ok_or_else(|| ProtocolError::UnknownName { value: name.to_string(), what: "WriteType" })
}

fn decode_kind(code: i32, reader: &mut Reader, version: Version) -> Result<ErrorKind, ProtocolError> {
    Ok(match code {
        0x0000 => ErrorKind::Server,
        0x000A => ErrorKind::Protocol,
        0x0100 => ErrorKind::BadCredentials,
        0x1000 => ErrorKind::Unavailable {
            consistency: reader.consistency()?,
            required: reader.i32()?,
            alive: reader.i32()?,
        },
        0x1001 => ErrorKind::Overloaded,
        0x1002 => ErrorKind::IsBootstrapping,
        0x1003 => ErrorKind::Truncate,
        0x1100 => {
            let Counts { consistency, received, block_for } = Counts::read(reader)?;
            let write_type = read_write_type(reader)?;
            let contentions = match write_type == WriteType::Cas && reader.remaining() >= 2 {
                true if version >= Version::V5 => Some(reader.u16()?),
                _ => None,
            };
            ErrorKind::WriteTimeout { consistency, received, block_for, write_type, contentions }
        }
        0x1200 => {
            let Counts { consistency, received, block_for } = Counts::read(reader)?;
            ErrorKind::ReadTimeout { consistency, received, block_for, data_present: reader.u8()? != 0 }
        }
        0x1300 => {
            let Counts { consistency, received, block_for } = Counts::read(reader)?;
            let failures = read_failures(reader, version)?;
            let data_present = reader.u8()? != 0;
            ErrorKind::ReadFailure { consistency, received, block_for, failures, data_present }
        }
        0x1400 => ErrorKind::FunctionFailure {
            keyspace: reader.string()?,
            function: reader.string()?,
            argument_types: reader.string_list()?,
        },
        0x1500 => {
            let Counts { consistency, received, block_for } = Counts::read(reader)?;
            let failures = read_failures(reader, version)?;
            let write_type = read_write_type(reader)?;
            ErrorKind::WriteFailure { consistency, received, block_for, failures, write_type }
        }
        0x1600 => ErrorKind::CdcWriteFailure,
        0x1700 => {
            let Counts { consistency, received, block_for } = Counts::read(reader)?;
            ErrorKind::CasWriteUnknown { consistency, received, block_for }
        }
        0x2000 => ErrorKind::Syntax,
        0x2100 => ErrorKind::Unauthorized,
        0x2200 => ErrorKind::Invalid,
        0x2300 => ErrorKind::Config,
        0x2400 => ErrorKind::AlreadyExists { keyspace: reader.string()?, table: reader.string()? },
        0x2500 => ErrorKind::Unprepared { id: reader.short_bytes()? },
        code => return Err(ProtocolError::UnknownErrorCode { code }),
    })
}
