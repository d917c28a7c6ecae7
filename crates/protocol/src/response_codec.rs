//! Responses to bytes and back.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::metadata::{DecodedRowsHeader, decode_rows_header};
use crate::rows::ROWS_KIND;
use crate::wire::{Put, Reader};
use crate::{
    ErrorResponse, Event, Flags, Frame, Opcode, Prepared, PreparedMetadata, ProtocolError, Response,
    ResponseEnvelope, ResultMetadata, Rows, RowsHeader, SchemaChange, Version,
};

const VOID_KIND: i32 = 1;
const SET_KEYSPACE_KIND: i32 = 3;
const PREPARED_KIND: i32 = 4;
const SCHEMA_CHANGE_KIND: i32 = 5;

impl ResponseEnvelope {
    /// Reads the response in a frame.
    ///
    /// # Errors
    /// The body is malformed; the frame after it is not affected.
    pub fn decode(frame: &Frame) -> Result<ResponseEnvelope, ProtocolError> {
        let flags = frame.header.flags;
        let mut reader = Reader::new(frame.body.clone());
        let tracing_id = match flags.contains(Flags::TRACING) {
            true => Some(reader.uuid()?),
            false => None,
        };
        let warnings = match flags.contains(Flags::WARNING) {
            true => reader.string_list()?,
            false => Vec::new(),
        };
        let custom_payload = match flags.contains(Flags::CUSTOM_PAYLOAD) {
            true => Some(reader.bytes_map()?),
            false => None,
        };
        let response = Response::decode(frame.header.opcode, reader, frame.header.version)?;
        Ok(ResponseEnvelope { tracing_id, warnings, custom_payload, response })
    }

    /// The flags its header needs.
    pub(crate) fn flags(&self, version: Version) -> Flags {
        let mut flags = Flags::NONE;
        if self.tracing_id.is_some() {
            flags = flags.with(Flags::TRACING);
        }
        if version >= Version::V4 && !self.warnings.is_empty() {
            flags = flags.with(Flags::WARNING);
        }
        if version >= Version::V4 && self.custom_payload.is_some() {
            flags = flags.with(Flags::CUSTOM_PAYLOAD);
        }
        flags
    }

    /// Appends the body, what goes before it included.
    pub(crate) fn encode_body(&self, out: &mut BytesMut, version: Version) {
        let flags = self.flags(version);
        if let Some(id) = self.tracing_id {
            out.put_slice(id.as_bytes());
        }
        if flags.contains(Flags::WARNING) {
            out.put_string_list(&self.warnings);
        }
        if let Some(payload) = self.custom_payload.as_ref().filter(|_| flags.contains(Flags::CUSTOM_PAYLOAD))
        {
            out.put_bytes_map(payload);
        }
        self.response.encode(out, version);
    }
}

impl Response {
    /// What it is on the wire.
    pub fn opcode(&self) -> Opcode {
        match self {
            Response::Error(_) => Opcode::Error,
            Response::Ready => Opcode::Ready,
            Response::Authenticate(_) => Opcode::Authenticate,
            Response::Supported(_) => Opcode::Supported,
            Response::Void
            | Response::Rows(_)
            | Response::SetKeyspace(_)
            | Response::Prepared(_)
            | Response::SchemaChange(_) => Opcode::Result,
            Response::Event(_) => Opcode::Event,
            Response::AuthChallenge(_) => Opcode::AuthChallenge,
            Response::AuthSuccess(_) => Opcode::AuthSuccess,
        }
    }

    fn encode(&self, out: &mut BytesMut, version: Version) {
        match self {
            Response::Error(error) => error.encode(out, version),
            Response::Ready => {}
            Response::Authenticate(class) => out.put_text(class),
            Response::Supported(options) => out.put_string_multimap(options),
            Response::Void => out.put_i32(VOID_KIND),
            Response::Rows(rows) => encode_rows(rows, out, version),
            Response::SetKeyspace(keyspace) => {
                out.put_i32(SET_KEYSPACE_KIND);
                out.put_text(keyspace);
            }
            Response::Prepared(prepared) => encode_prepared(prepared, out, version),
            Response::SchemaChange(change) => {
                out.put_i32(SCHEMA_CHANGE_KIND);
                change.encode(out, version);
            }
            Response::Event(event) => event.encode(out, version),
            Response::AuthChallenge(token) | Response::AuthSuccess(token) => {
                out.put_bytes_or_null(token.as_deref());
            }
        }
    }

    fn decode(opcode: Opcode, mut reader: Reader, version: Version) -> Result<Response, ProtocolError> {
        Ok(match opcode {
            Opcode::Error => Response::Error(ErrorResponse::decode(&mut reader, version)?),
            Opcode::Ready => Response::Ready,
            Opcode::Authenticate => Response::Authenticate(reader.string()?),
            Opcode::Supported => Response::Supported(reader.string_multimap()?),
            Opcode::Result => return decode_result(reader, version),
            Opcode::Event => Response::Event(Event::decode(&mut reader)?),
            Opcode::AuthChallenge => Response::AuthChallenge(reader.bytes()?),
            Opcode::AuthSuccess => Response::AuthSuccess(reader.bytes()?),
            _ => return Err(ProtocolError::UnsupportedMessage),
        })
    }
}

fn decode_result(mut reader: Reader, version: Version) -> Result<Response, ProtocolError> {
    match reader.i32()? {
        VOID_KIND => Ok(Response::Void),
        ROWS_KIND => Ok(Response::Rows(decode_rows(reader, version)?)),
        SET_KEYSPACE_KIND => Ok(Response::SetKeyspace(reader.string()?)),
        PREPARED_KIND => Ok(Response::Prepared(decode_prepared(&mut reader, version)?)),
        SCHEMA_CHANGE_KIND => Ok(Response::SchemaChange(SchemaChange::decode(&mut reader)?)),
        kind => Err(ProtocolError::UnknownResultKind { kind }),
    }
}

fn encode_rows(rows: &Rows, out: &mut BytesMut, version: Version) {
    let header = RowsHeader {
        metadata: &rows.metadata,
        no_metadata: rows.no_metadata,
        new_metadata_id: rows.new_metadata_id.as_deref(),
        paging_state: rows.paging_state.as_deref(),
    };
    out.put_i32(ROWS_KIND);
    header.encode(out, version);
    out.put_u32(rows.row_count);
    out.put_slice(&rows.cells);
}

/// Reads a result and checks that it holds as many well-formed cells as it says.
fn decode_rows(mut reader: Reader, version: Version) -> Result<Rows, ProtocolError> {
    let DecodedRowsHeader { metadata, column_count, no_metadata, new_metadata_id, paging_state } =
        decode_rows_header(&mut reader, version)?;
    let row_count = reader.i32()?;
    let row_count = u32::try_from(row_count).map_err(|_| ProtocolError::Count { count: row_count })?;
    let cells = reader.rest();
    check_cells(&cells, column_count as u64 * u64::from(row_count))?;
    Ok(Rows { metadata: Arc::new(metadata), no_metadata, new_metadata_id, paging_state, row_count, cells })
}

fn check_cells(cells: &Bytes, cell_count: u64) -> Result<(), ProtocolError> {
    let mut reader = Reader::new(cells.clone());
    for _ in 0..cell_count {
        reader.cell_range()?;
    }
    Ok(())
}

fn encode_prepared(prepared: &Prepared, out: &mut BytesMut, version: Version) {
    out.put_i32(PREPARED_KIND);
    out.put_short_bytes(&prepared.id);
    if version.uses_segments() {
        out.put_short_bytes(&prepared.result_metadata_id);
    }
    prepared.bind.encode(out, version);
    let header = RowsHeader {
        metadata: &prepared.result,
        no_metadata: false,
        new_metadata_id: None,
        paging_state: None,
    };
    header.encode(out, version);
}

fn decode_prepared(reader: &mut Reader, version: Version) -> Result<Prepared, ProtocolError> {
    let id = reader.short_bytes()?;
    let result_metadata_id = match version.uses_segments() {
        true => reader.short_bytes()?,
        false => Bytes::new(),
    };
    let bind = PreparedMetadata::decode(reader, version)?;
    let result: ResultMetadata = decode_rows_header(reader, version)?.metadata;
    Ok(Prepared { id, result_metadata_id, bind, result: Arc::new(result) })
}
