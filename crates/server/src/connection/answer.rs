//! What a request is answered with, and how it is written.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use protocol::{
    Encoder, Flags, Opcode, Response, ResponseEnvelope, ResultMetadata, RowsHeader, RowsWriter, Version,
};
use query::{RowSink, RowsResult};
use stdx::id_map::IdMap;
use uuid::Uuid;

/// The answer to one request.
pub(super) enum Answer {
    /// Anything but rows without extras.
    Envelope(Box<ResponseEnvelope>),
    /// Rows, written from where they are stored straight into the output.
    Rows(Box<RowsAnswer>),
}

pub(super) struct RowsAnswer {
    pub(super) result: RowsResult,
    pub(super) metadata: Arc<ResultMetadata>,
    pub(super) no_metadata: bool,
    pub(super) new_metadata_id: Option<Bytes>,
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Answer::Envelope(Box::new(response.into()))
    }
}

impl Answer {
    /// The same answer with the id of its trace.
    pub(super) fn with_trace(self, id: Uuid) -> Self {
        let mut envelope = match self {
            Answer::Envelope(envelope) => envelope,
            Answer::Rows(rows) => Box::new(rows.into_response().into()),
        };
        envelope.tracing_id = Some(id);
        Answer::Envelope(envelope)
    }

    /// Appends it to the connection's output.
    pub(super) fn encode(self, encoder: &mut Encoder, version: Version, stream: i16) {
        match self {
            Answer::Envelope(envelope) => encoder.append_response(version, stream, &envelope),
            Answer::Rows(rows) => encoder
                .append_with(version, stream, Opcode::Result, Flags::NONE, |out| rows.write(out, version)),
        }
    }
}

impl RowsAnswer {
    fn write(&self, out: &mut BytesMut, version: Version) {
        let header = RowsHeader {
            metadata: &self.metadata,
            no_metadata: self.no_metadata,
            new_metadata_id: self.new_metadata_id.as_deref(),
            paging_state: self.result.paging_state.as_deref(),
        };
        let mut sink = Sink(RowsWriter::new(out, &header, version));
        let row_count = self.result.write_rows(&mut sink);
        sink.0.finish(u32::try_from(row_count).unwrap_or(u32::MAX));
    }

    /// As a message of its own, for answers that carry warnings, a tracing id or a payload.
    pub(super) fn into_response(self) -> Response {
        let mut out = BytesMut::new();
        let mut cells = Cells(&mut out);
        let row_count = self.result.write_rows(&mut cells);
        Response::Rows(protocol::Rows {
            metadata: self.metadata,
            no_metadata: self.no_metadata,
            new_metadata_id: self.new_metadata_id,
            paging_state: self.result.paging_state,
            row_count: u32::try_from(row_count).unwrap_or(u32::MAX),
            cells: out.freeze(),
        })
    }
}

struct Sink<'a>(RowsWriter<'a>);

impl RowSink for Sink<'_> {
    fn cell(&mut self, value: Option<&[u8]>) {
        self.0.cell(value);
    }

    fn expect(&mut self, byte_count: usize) {
        self.0.reserve(byte_count);
    }
}

struct Cells<'a>(&'a mut BytesMut);

impl RowSink for Cells<'_> {
    fn cell(&mut self, value: Option<&[u8]>) {
        protocol::put_cell(self.0, value);
    }

    fn expect(&mut self, byte_count: usize) {
        self.0.reserve(byte_count);
    }
}

/// Result columns in the protocol's form, by their id: so that a statement executed a million times
/// has them made once.
#[derive(Default)]
pub(super) struct MetadataCache(RefCell<IdMap<[u8; 16], Arc<ResultMetadata>>>);

/// Enough for every statement of an application; beyond it, all are made anew.
const METADATA_KEPT: usize = 10_000;

impl MetadataCache {
    pub(super) fn get(&self, result: &RowsResult) -> Arc<ResultMetadata> {
        let mut known = self.0.borrow_mut();
        if let Some(metadata) = known.get(&result.metadata_id) {
            return Arc::clone(metadata);
        }
        if known.len() >= METADATA_KEPT {
            known.clear();
        }
        let metadata = Arc::new(ResultMetadata::new(crate::convert::columns(&result.columns)));
        known.insert(result.metadata_id, Arc::clone(&metadata));
        metadata
    }
}
