//! What a request is answered with, and how it is written.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use protocol::{
    Encoder, ErrorKind, Flags, Opcode, Response, ResponseEnvelope, ResultMetadata, RowsHeader, RowsWriter,
    Version,
};
use query::{ColumnSpec, RowSink, RowsResult};
use stdx::id_map::IdHash;
use stdx::weighed_lru::WeighedLru;
use uuid::Uuid;

/// The answer to one request.
pub(super) enum Answer {
    /// Anything but rows without extras.
    Envelope(Box<ResponseEnvelope>),
    /// Rows, written from where they are stored straight into the output.
    Rows(Box<RowsAnswer>),
    /// What was encoded elsewhere.
    Encoded(Bytes),
}

pub(super) struct RowsAnswer {
    pub(super) result: RowsResult,
    pub(super) described: Described,
}

/// How rows are described to a client.
pub(super) struct Described {
    metadata: Arc<ResultMetadata>,
    no_metadata: bool,
    new_metadata_id: Option<Bytes>,
}

/// How a client wants rows described.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) skip_metadata: bool,
    /// The id that it knows the metadata by, where the protocol has such.
    pub(super) known_metadata_id: Option<&'a [u8]>,
}

impl Wanted<'static> {
    /// With all that there is to say.
    pub(super) const AFRESH: Self = Wanted { skip_metadata: false, known_metadata_id: None };
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
            Answer::Encoded(_) => return self,
        };
        envelope.tracing_id = Some(id);
        Answer::Envelope(envelope)
    }

    /// Does it say that a write is late?
    pub(super) fn is_write_timeout(&self) -> bool {
        let Answer::Envelope(envelope) = self else { return false };
        let Response::Error(error) = &envelope.response else { return false };
        matches!(error.kind, ErrorKind::WriteTimeout { .. })
    }

    /// Appends it to the connection's output.
    pub(super) fn encode(self, encoder: &mut Encoder, version: Version, stream: i16) {
        match self {
            Answer::Envelope(envelope) => encoder.append_response(version, stream, &envelope),
            Answer::Rows(rows) => encoder
                .append_with(version, stream, Opcode::Result, Flags::NONE, |out| rows.write(out, version)),
            Answer::Encoded(_) => unreachable!("a connection sends it as it is"),
        }
    }
}

impl RowsAnswer {
    fn write(&self, out: &mut BytesMut, version: Version) {
        let paging_state = self.result.paging_state.as_deref();
        self.described.write_rows(out, version, paging_state, |sink| self.result.write_rows(sink));
    }

    /// As a message of its own, for answers that carry warnings, a tracing id or a payload.
    pub(super) fn into_response(self) -> Response {
        let mut out = BytesMut::new();
        let mut cells = Cells(&mut out);
        let row_count = self.result.write_rows(&mut cells);
        Response::Rows(protocol::Rows {
            metadata: self.described.metadata,
            no_metadata: self.described.no_metadata,
            new_metadata_id: self.described.new_metadata_id,
            paging_state: self.result.paging_state,
            row_count: u32::try_from(row_count).unwrap_or(u32::MAX),
            cells: out.freeze(),
        })
    }
}

impl Described {
    /// Writes the body of a message of rows, which `rows` gives to the sink and counts.
    pub(super) fn write_rows(
        &self,
        out: &mut BytesMut,
        version: Version,
        paging_state: Option<&[u8]>,
        rows: impl FnOnce(&mut Sink<'_>) -> usize,
    ) {
        let header = RowsHeader {
            metadata: &self.metadata,
            no_metadata: self.no_metadata,
            new_metadata_id: self.new_metadata_id.as_deref(),
            paging_state,
        };
        let mut sink = Sink(RowsWriter::new(out, &header, version));
        let row_count = rows(&mut sink);
        sink.0.finish(u32::try_from(row_count).unwrap_or(u32::MAX));
    }
}

/// Where rows are written into an answer.
pub(super) struct Sink<'a>(RowsWriter<'a>);

impl Sink<'_> {
    /// Appends rows that were written into [`Cells`].
    pub(super) fn put_encoded(&mut self, cells: &[u8]) {
        self.0.cells(cells);
    }
}

impl RowSink for Sink<'_> {
    fn cell(&mut self, value: Option<&[u8]>) {
        self.0.cell(value);
    }

    fn expect(&mut self, byte_count: usize) {
        self.0.reserve(byte_count);
    }
}

/// Where rows are written that become part of an answer later.
pub(super) struct Cells<'a>(pub(super) &'a mut BytesMut);

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
pub(super) struct MetadataCache(RefCell<WeighedLru<[u8; 16], Arc<ResultMetadata>, IdHash>>);

/// What a column takes beside its name and type: as it is, and as it is written into answers.
const COLUMN_BYTES: usize = 160;

impl MetadataCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        MetadataCache(RefCell::new(WeighedLru::new(bytes_max)))
    }

    fn get(&self, id: &[u8; 16], columns: &[ColumnSpec]) -> Arc<ResultMetadata> {
        let mut known = self.0.borrow_mut();
        if let Some(metadata) = known.get(id) {
            return Arc::clone(metadata);
        }
        let metadata = Arc::new(ResultMetadata::new(crate::convert::columns(columns)));
        let bytes = columns.iter().map(|column| COLUMN_BYTES + 3 * column.name.len()).sum();
        known.put(*id, Arc::clone(&metadata), bytes);
        metadata
    }

    /// How rows of these columns, whose metadata has that id, are described to a client.
    pub(super) fn describe(&self, id: &[u8; 16], columns: &[ColumnSpec], wanted: Wanted<'_>) -> Described {
        let has_changed = wanted.known_metadata_id.is_some_and(|known| known != id);
        Described {
            metadata: self.get(id, columns),
            no_metadata: wanted.skip_metadata && !has_changed,
            new_metadata_id: has_changed.then(|| Bytes::copy_from_slice(id)),
        }
    }
}
