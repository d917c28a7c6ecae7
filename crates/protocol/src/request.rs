//! What clients ask.

use bytes::Bytes;

use crate::{BatchKind, Consistency, EventKind, Text, Values};

/// Key and value pairs a client sends along for extensions of the server.
pub type CustomPayload = Vec<(String, Option<Bytes>)>;

/// A request with what its header's flags announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestEnvelope {
    /// Trace it, and answer with the trace's id.
    pub tracing: bool,
    /// Of version 4 on.
    pub custom_payload: Option<CustomPayload>,
    /// What is asked.
    pub request: Request,
}

impl From<Request> for RequestEnvelope {
    fn from(request: Request) -> RequestEnvelope {
        RequestEnvelope { tracing: false, custom_payload: None, request }
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Opens the connection: options by name, in the order sent.
    Startup(Vec<(String, String)>),
    /// What does the server support? Also the heartbeat.
    Options,
    /// A SASL token.
    AuthResponse(Option<Bytes>),
    /// A statement as text.
    Query(Query),
    /// Keep a statement for later.
    Prepare(Prepare),
    /// Run a kept statement.
    Execute(Execute),
    /// Several writes at once.
    Batch(Batch),
    /// Send events of these kinds from now on.
    Register(Vec<EventKind>),
}

/// A statement as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The statement.
    pub query: Text,
    /// How to run it.
    pub parameters: QueryParameters,
}

/// A statement to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    /// The statement.
    pub query: Text,
    /// Keyspace for unqualified tables (version 5 on).
    pub keyspace: Option<Text>,
}

/// A kept statement to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute {
    /// Id given when it was prepared.
    pub id: Bytes,
    /// Id of the result metadata the client knows (version 5 on).
    pub result_metadata_id: Option<Bytes>,
    /// How to run it.
    pub parameters: QueryParameters,
}

/// Several writes at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its kind.
    pub kind: BatchKind,
    /// The writes.
    pub statements: Vec<BatchStatement>,
    /// How to run them; has neither values nor a page.
    pub parameters: QueryParameters,
}

/// One write of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchStatement {
    /// The statement.
    pub query: BatchQuery,
    /// Its values, always by position.
    pub values: Values,
}

/// How a batch names a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchQuery {
    /// As text.
    Text(Text),
    /// By the id given when it was prepared.
    Prepared(Bytes),
}

/// How to run a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryParameters {
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// Bound values.
    pub values: Values,
    /// Names of the values, one each, when they were not bound by position.
    pub names: Option<Vec<Text>>,
    /// The client knows the result's columns: leave them out.
    pub skip_metadata: bool,
    /// Rows per page; `None` and anything below 1 mean no paging.
    pub page_size: Option<i32>,
    /// Where the last page ended, as given with it.
    pub paging_state: Option<Bytes>,
    /// Level of the Paxos phase; `None` means SERIAL.
    pub serial_consistency: Option<Consistency>,
    /// Write time in microseconds, when the statement has none of its own.
    pub timestamp: Option<i64>,
    /// Keyspace for unqualified tables (specified from version 5 on; Cassandra takes it before too).
    pub keyspace: Option<Text>,
    /// What time it is, for expiry (version 5 on).
    pub now_in_seconds: Option<u32>,
}

impl QueryParameters {
    /// Parameters with a consistency level and nothing else.
    pub fn at(consistency: Consistency) -> QueryParameters {
        QueryParameters {
            consistency,
            values: Values::default(),
            names: None,
            skip_metadata: false,
            page_size: None,
            paging_state: None,
            serial_consistency: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        }
    }
}
