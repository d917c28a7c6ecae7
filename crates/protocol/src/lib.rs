//! The CQL native protocol, versions 3, 4 and 5 (and 6 beta), without I/O: bytes in, messages out.
//!
//! A server feeds what it reads to a [`Decoder`], which cuts it into [`Frame`]s (out of plain
//! envelopes, or out of checksummed segments once version 5 is established) and tells errors that
//! end the connection from those that do not. A frame becomes a [`Request`]; its [`Response`] is
//! appended by an [`Encoder`] to one output buffer, together with all others of the same read.
//! Clients (the shell, the load generator, tests) use the same types the other way round.
//!
//! ```text
//!   bytes -> Decoder -> Frame -> Request -> (somebody answers) -> Response -> Encoder -> bytes
//! ```
//!
//! Error texts are Cassandra 5.0's, word for word, because drivers match on them.

mod consistency;
mod header;
mod text;
mod values;
mod version;
mod wire;

mod parameters;
mod plain_execute;
mod request;
mod request_codec;

mod error;
mod error_codec;
mod event;
mod event_codec;
mod metadata;
mod response;
mod response_codec;
mod rows;
mod type_option;

mod compression;
mod decoder;
mod encoder;
mod segment;
mod startup;

pub use compression::Compression;
pub use consistency::{BatchKind, Consistency, WriteType};
pub use decoder::{Decoder, FRAME_BYTES_MAX_DEFAULT, Fate, FrameError};
pub use encoder::{Encoder, Framing, Workspace};
pub use error::{ErrorKind, ErrorResponse, FailureReason, ProtocolError};
pub use event::{
    Event, EventKind, SchemaChange, SchemaChangeKind, SchemaTarget, StatusChangeKind, TopologyChangeKind,
};
pub use header::{Direction, Flags, Frame, HEADER_BYTES, Header, Opcode};
pub use metadata::RowsHeader;
pub use plain_execute::{PlainExecute, PlainValues};
pub use request::{
    Batch, BatchQuery, BatchStatement, CustomPayload, Execute, Prepare, Query, QueryParameters, Request,
    RequestEnvelope,
};
pub use response::{
    ColumnSpec, Prepared, PreparedMetadata, Response, ResponseEnvelope, ResultMetadata, Rows,
};
pub use rows::{CellReader, RowsWriter, put_cell};
pub use startup::{CQL_VERSION, Stage, StartupOptions, supported_options};
pub use text::Text;
pub use values::{Value, Values};
pub use version::Version;
