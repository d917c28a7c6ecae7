//! Requests to bytes and back.

use bytes::{BufMut, BytesMut};

use crate::parameters::put_values;
use crate::wire::{Put, Reader};
use crate::{
    Batch, BatchKind, BatchQuery, BatchStatement, EventKind, Execute, Flags, Frame, Opcode, Prepare,
    ProtocolError, Query, QueryParameters, Request, RequestEnvelope, Version,
};

/// The flag of PREPARE (version 5 on) that announces a keyspace.
const PREPARE_WITH_KEYSPACE: i32 = 0x01;

impl RequestEnvelope {
    /// Reads the request in a frame. Bytes after it are ignored, as Cassandra does.
    ///
    /// # Errors
    /// The body is malformed; the frame after it is not affected.
    pub fn decode(frame: &Frame) -> Result<RequestEnvelope, ProtocolError> {
        let header = &frame.header;
        let mut reader = Reader::new(frame.body.clone());
        let custom_payload = match header.flags.contains(Flags::CUSTOM_PAYLOAD) {
            true if header.version < Version::V4 => return Err(ProtocolError::CustomPayloadTooEarly),
            true => Some(reader.bytes_map()?),
            false => None,
        };
        let request = Request::decode(header.opcode, &mut reader, header.version)?;
        Ok(RequestEnvelope { tracing: header.flags.contains(Flags::TRACING), custom_payload, request })
    }

    /// The flags its header needs.
    pub(crate) fn flags(&self, version: Version) -> Flags {
        let mut flags = Flags::NONE;
        if self.tracing {
            flags = flags.with(Flags::TRACING);
        }
        if self.custom_payload.is_some() && version >= Version::V4 {
            flags = flags.with(Flags::CUSTOM_PAYLOAD);
        }
        flags
    }

    /// Appends the body, what goes before it included.
    pub(crate) fn encode_body(&self, out: &mut BytesMut, version: Version) {
        if let Some(payload) = &self.custom_payload
            && version >= Version::V4
        {
            out.put_bytes_map(payload);
        }
        self.request.encode(out, version);
    }
}

impl Request {
    /// What it is on the wire.
    pub fn opcode(&self) -> Opcode {
        match self {
            Request::Startup(_) => Opcode::Startup,
            Request::Options => Opcode::Options,
            Request::AuthResponse(_) => Opcode::AuthResponse,
            Request::Query(_) => Opcode::Query,
            Request::Prepare(_) => Opcode::Prepare,
            Request::Execute(_) => Opcode::Execute,
            Request::Batch(_) => Opcode::Batch,
            Request::Register(_) => Opcode::Register,
        }
    }

    fn decode(opcode: Opcode, reader: &mut Reader, version: Version) -> Result<Request, ProtocolError> {
        match opcode {
            Opcode::Startup => Ok(Request::Startup(reader.string_map()?)),
            Opcode::Options => Ok(Request::Options),
            Opcode::AuthResponse => Ok(Request::AuthResponse(reader.bytes()?)),
            Opcode::Query => Ok(Request::Query(Query {
                query: reader.long_text()?,
                parameters: QueryParameters::decode(reader, version)?,
            })),
            Opcode::Prepare => Ok(Request::Prepare(decode_prepare(reader, version)?)),
            Opcode::Execute => Ok(Request::Execute(Execute {
                id: reader.short_bytes()?,
                result_metadata_id: match version.uses_segments() {
                    true => Some(reader.short_bytes()?),
                    false => None,
                },
                parameters: QueryParameters::decode(reader, version)?,
            })),
            Opcode::Batch => Ok(Request::Batch(decode_batch(reader, version)?)),
            Opcode::Register => Ok(Request::Register(reader.list(decode_event_kind)?)),
            _ => Err(ProtocolError::UnsupportedMessage),
        }
    }

    fn encode(&self, out: &mut BytesMut, version: Version) {
        match self {
            Request::Startup(options) => out.put_string_map(options),
            Request::Options => {}
            Request::AuthResponse(token) => out.put_bytes_or_null(token.as_deref()),
            Request::Query(query) => {
                out.put_long_text(query.query.as_bytes());
                query.parameters.encode(out, version);
            }
            Request::Prepare(prepare) => encode_prepare(prepare, out, version),
            Request::Execute(execute) => {
                out.put_short_bytes(&execute.id);
                if version.uses_segments() {
                    out.put_short_bytes(execute.result_metadata_id.as_deref().unwrap_or_default());
                }
                execute.parameters.encode(out, version);
            }
            Request::Batch(batch) => encode_batch(batch, out, version),
            Request::Register(kinds) => out.put_list(kinds, |out, kind| out.put_text(kind.name())),
        }
    }
}

fn decode_event_kind(reader: &mut Reader) -> Result<EventKind, ProtocolError> {
    let name = reader.text()?;
    EventKind::from_name(name.as_str())
        .ok_or_else(|| ProtocolError::UnknownName { value: name.to_string(), what: "Type" })
}

fn decode_prepare(reader: &mut Reader, version: Version) -> Result<Prepare, ProtocolError> {
    let query = reader.long_text()?;
    let has_keyspace = version.uses_segments() && reader.i32()? & PREPARE_WITH_KEYSPACE != 0;
    let keyspace = match has_keyspace {
        true => Some(reader.text()?),
        false => None,
    };
    Ok(Prepare { query, keyspace })
}

fn encode_prepare(prepare: &Prepare, out: &mut BytesMut, version: Version) {
    out.put_long_text(prepare.query.as_bytes());
    if !version.uses_segments() {
        return;
    }
    match &prepare.keyspace {
        None => out.put_i32(0),
        Some(keyspace) => {
            out.put_i32(PREPARE_WITH_KEYSPACE);
            out.put_text(keyspace.as_str());
        }
    }
}

fn decode_batch(reader: &mut Reader, version: Version) -> Result<Batch, ProtocolError> {
    // Cassandra looks at the kind last, so that a malformed statement is told first.
    let kind = reader.u8()?;
    let statements = reader.list(|reader| {
        let query = match reader.u8()? {
            0 => BatchQuery::Text(reader.long_text()?),
            1 => BatchQuery::Prepared(reader.short_bytes()?),
            code => return Err(ProtocolError::UnknownBatchQuery { code: code as i8 }),
        };
        Ok(BatchStatement { query, values: reader.values(version, None)? })
    })?;
    let parameters = QueryParameters::decode(reader, version)?;
    Ok(Batch { kind: BatchKind::from_code(kind)?, statements, parameters })
}

fn encode_batch(batch: &Batch, out: &mut BytesMut, version: Version) {
    out.put_u8(batch.kind.code());
    out.put_list(&batch.statements, |out, statement| {
        match &statement.query {
            BatchQuery::Text(text) => {
                out.put_u8(0);
                out.put_long_text(text.as_bytes());
            }
            BatchQuery::Prepared(id) => {
                out.put_u8(1);
                out.put_short_bytes(id);
            }
        }
        put_values(out, version, &statement.values, None);
    });
    batch.parameters.encode(out, version);
}
