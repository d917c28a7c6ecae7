//! What comes with a statement: the session it belongs to, bound values, paging, timestamps.

use bytes::Bytes;
use coordinator::Consistency;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a session remembers from one statement to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// The keyspace of `USE`.
    pub keyspace: Option<String>,
}

/// A value bound to a marker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindValue {
    /// A value in its native encoding; may be empty.
    Set(Bytes),
    /// `null`.
    Null,
    /// Not given: leaves a column as it is.
    Unset,
}

/// The values bound to the markers of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Values {
    /// In the order of the markers.
    Positional(Vec<BindValue>),
    /// By the names of the markers (a `?` has the name of its column).
    Named(Vec<(String, BindValue)>),
}

impl Default for Values {
    fn default() -> Self {
        Values::Positional(Vec::new())
    }
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Values::Positional(values) => values.len(),
            Values::Named(values) => values.len(),
        }
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What comes with a statement.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// The level of the condition's read, for `IF`.
    pub serial_consistency: Option<Consistency>,
    /// Bound values.
    pub values: Values,
    /// Rows a page may hold; all when not given (or not positive on the wire).
    pub page_size: Option<u32>,
    /// Where the page before ended, as [`crate::RowsResult::paging_state`] gave it.
    pub paging_state: Option<Bytes>,
    /// The timestamp (µs) of a write that does not say its own.
    pub timestamp: Option<i64>,
    /// The keyspace of this request alone.
    pub keyspace: Option<String>,
    /// The moment (seconds since 1970) that decides what has expired.
    pub now_in_seconds: Option<i32>,
    /// The client's name for this request, a `timeuuid`: sent again, a change with a condition, or of counters, is not
    /// made again.
    pub operation: Option<Uuid>,
}

impl Default for QueryOptions {
    fn default() -> Self {
        QueryOptions {
            consistency: Consistency::One,
            serial_consistency: None,
            values: Values::default(),
            page_size: None,
            paging_state: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
            operation: None,
        }
    }
}

/// What a batch promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchType {
    /// Whole or absent.
    Logged,
    /// Parts of different partitions are independent.
    Unlogged,
    /// Counters.
    Counter,
}

/// A part of a BATCH message.
#[derive(Clone, Debug)]
pub struct BatchStatement {
    /// What it is.
    pub query: BatchQuery,
    /// Its bound values.
    pub values: Values,
}

/// The statement of a part of a BATCH message.
#[derive(Clone, Debug)]
pub enum BatchQuery {
    /// The text of an INSERT, UPDATE or DELETE.
    Text(String),
    /// The id of a prepared one.
    Prepared([u8; 16]),
}
