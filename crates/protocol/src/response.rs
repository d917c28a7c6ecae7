//! What a server answers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use types::CqlType;
use uuid::Uuid;

use crate::metadata::EncodedColumns;
use crate::{CustomPayload, ErrorResponse, Event, SchemaChange};

/// A response with what goes before its body.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseEnvelope {
    /// Id of the trace, when the request asked for one.
    pub tracing_id: Option<Uuid>,
    /// Warnings for the user (left out before version 4).
    pub warnings: Vec<String>,
    /// Of version 4 on.
    pub custom_payload: Option<CustomPayload>,
    /// The answer.
    pub response: Response,
}

impl From<Response> for ResponseEnvelope {
    fn from(response: Response) -> ResponseEnvelope {
        ResponseEnvelope { tracing_id: None, warnings: Vec::new(), custom_payload: None, response }
    }
}

/// A response. The five kinds of RESULT are variants of their own.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// Something went wrong.
    Error(ErrorResponse),
    /// The connection is open.
    Ready,
    /// Authenticate first, with the named class.
    Authenticate(String),
    /// What is supported, in order.
    Supported(Vec<(String, Vec<String>)>),
    /// RESULT of a statement that returns nothing.
    Void,
    /// RESULT of a statement that returns rows.
    Rows(Rows),
    /// RESULT of `USE`.
    SetKeyspace(String),
    /// RESULT of PREPARE.
    Prepared(Prepared),
    /// RESULT of a statement that changed the schema.
    SchemaChange(SchemaChange),
    /// Something a client registered for; sent on stream -1.
    Event(Event),
    /// The next step of SASL.
    AuthChallenge(Option<Bytes>),
    /// Authenticated.
    AuthSuccess(Option<Bytes>),
}

impl From<ErrorResponse> for Response {
    fn from(error: ErrorResponse) -> Response {
        Response::Error(error)
    }
}

/// Rows of a result, cells already encoded.
///
/// `cells` does not depend on the protocol version: each cell is a 4-byte length (-1 for null) and
/// its bytes, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// The columns.
    pub metadata: Arc<ResultMetadata>,
    /// Leave the columns out, the client knows them (only their count is sent).
    pub no_metadata: bool,
    /// The columns are not those the client knows: their new id (version 5 on).
    pub new_metadata_id: Option<Bytes>,
    /// Where to go on, if there is more.
    pub paging_state: Option<Bytes>,
    /// How many rows `cells` holds.
    pub row_count: u32,
    /// Their cells.
    pub cells: Bytes,
}

/// Columns of a result. Empty for a statement without rows.
#[derive(Clone, Debug, Default)]
pub struct ResultMetadata {
    columns: Vec<ColumnSpec>,
    /// As they were first written: a statement that is executed a million times shows the same every time.
    pub(crate) encoded: OnceLock<EncodedColumns>,
}

impl ResultMetadata {
    /// Of these columns, in the order of the cells.
    pub fn new(columns: Vec<ColumnSpec>) -> Self {
        ResultMetadata { columns, encoded: OnceLock::new() }
    }

    /// In the order of the cells.
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }
}

impl PartialEq for ResultMetadata {
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns
    }
}

impl Eq for ResultMetadata {}

/// Name and type of a column or of a bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Keyspace of its table.
    pub keyspace: Arc<str>,
    /// Its table.
    pub table: Arc<str>,
    /// Its name, unquoted.
    pub name: Arc<str>,
    /// Its type.
    pub cql_type: CqlType,
}

/// A kept statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Id to EXECUTE it by.
    pub id: Bytes,
    /// Id of `result` (sent from version 5 on; empty when read from an older version).
    pub result_metadata_id: Bytes,
    /// Its bind markers.
    pub bind: PreparedMetadata,
    /// Its result's columns.
    pub result: Arc<ResultMetadata>,
}

/// Bind markers of a kept statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedMetadata {
    /// In the order of the values.
    pub columns: Vec<ColumnSpec>,
    /// The marker of each component of the partition key, in key order; empty when not all of
    /// them are bound (sent from version 4 on).
    pub partition_key_indexes: Vec<u16>,
}
