//! What a statement answers.
//!
//! Rows of a plain selection are handed on as they are stored: the server's encoder is a
//! [`RowSink`] that is given each cell in place ([`RowsResult::write_rows`]).

use std::sync::Arc;

use bytes::Bytes;
use types::CqlType;

use crate::select::{ComputedRows, Projection, StoredRows};

/// The answer to a statement.
#[derive(Debug)]
pub struct Response {
    /// What it is.
    pub kind: ResponseKind,
    /// What the client should know although nothing failed.
    pub warnings: Vec<String>,
    /// Which of the warnings whoever runs the node should know of, too.
    pub tombstones: Vec<TombstoneWarning>,
}

/// A read came upon more tombstones than `tombstone_warn_threshold`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TombstoneWarning {
    /// Keyspace and table.
    pub table: String,
    /// The partition, of a range the last one that was looked at: the values of its key as CQL.
    pub key: String,
    /// Rows that live.
    pub live_count: u64,
    /// Tombstones beside them.
    pub tombstone_count: u64,
    /// The warning in Cassandra's words, which spell the read in their own way.
    pub text: String,
}

impl Response {
    pub(crate) fn void() -> Self {
        ResponseKind::Void.into()
    }
}

impl From<ResponseKind> for Response {
    fn from(kind: ResponseKind) -> Self {
        Response { kind, warnings: Vec::new(), tombstones: Vec::new() }
    }
}

/// What kind of answer it is.
#[derive(Debug)]
pub enum ResponseKind {
    /// Done.
    Void,
    /// Rows.
    Rows(RowsResult),
    /// `USE` was done: the session's keyspace is this one now.
    SetKeyspace(String),
    /// The schema was changed.
    SchemaChange(SchemaChange),
}

/// What changed in the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// How.
    pub change: ChangeType,
    /// What kind of thing.
    pub target: ChangeTarget,
    /// In which keyspace, or which keyspace.
    pub keyspace: String,
    /// Its name; empty for a keyspace.
    pub name: String,
    /// Types of the arguments of a function or aggregate.
    pub arguments: Vec<String>,
}

/// How the schema changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ChangeType {
    Created,
    Updated,
    Dropped,
}

/// What kind of thing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ChangeTarget {
    Keyspace,
    Table,
    Type,
    Function,
    Aggregate,
}

/// A column of a result, or a bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Keyspace of its table.
    pub keyspace: Arc<str>,
    /// Its table.
    pub table: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub cql_type: CqlType,
}

/// Receives the cells of rows, row after row, column after column.
pub trait RowSink {
    /// The next cell; `None` is null.
    fn cell(&mut self, value: Option<&[u8]>);

    /// About so many bytes of cells and their lengths will follow.
    fn expect(&mut self, _byte_count: usize) {}
}

/// A page of rows.
#[derive(Debug)]
pub struct RowsResult {
    /// The columns.
    pub columns: Arc<[ColumnSpec]>,
    /// MD5 over the columns: a client that knows it need not be told the columns (protocol v5).
    pub metadata_id: [u8; 16],
    /// Where to go on; `None` after the last page.
    pub paging_state: Option<Bytes>,
    /// Has the same statement other columns another time, so that no client may take them for known?
    pub varies: bool,
    pub(crate) body: RowsBody,
}

#[derive(Debug)]
pub(crate) enum RowsBody {
    Stored(StoredRows, Arc<Projection>),
    Computed(ComputedRows),
}

impl RowsResult {
    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        match &self.body {
            RowsBody::Stored(rows, _) => rows.row_count(),
            RowsBody::Computed(rows) => rows.row_count(),
        }
    }

    /// Gives every cell to the sink; the number of rows.
    pub fn write_rows(&self, sink: &mut impl RowSink) -> usize {
        match &self.body {
            RowsBody::Stored(rows, projection) => rows.write(projection, sink),
            RowsBody::Computed(rows) => rows.write(sink),
        }
        self.row_count()
    }

    /// All cells, copied: for tests and tools.
    pub fn to_cells(&self) -> Vec<Vec<Option<Bytes>>> {
        struct Collect {
            width: usize,
            rows: Vec<Vec<Option<Bytes>>>,
        }
        impl RowSink for Collect {
            fn cell(&mut self, value: Option<&[u8]>) {
                if self.rows.last().is_none_or(|row| row.len() == self.width) {
                    self.rows.push(Vec::with_capacity(self.width));
                }
                if let Some(row) = self.rows.last_mut() {
                    row.push(value.map(Bytes::copy_from_slice));
                }
            }
        }
        let mut collect = Collect { width: self.columns.len(), rows: Vec::new() };
        self.write_rows(&mut collect);
        collect.rows
    }
}

/// What a client is told about a statement it prepared.
#[derive(Clone, Debug)]
pub struct PreparedInfo {
    /// MD5 of the keyspace and the text.
    pub id: [u8; 16],
    /// MD5 of the result's columns.
    pub result_metadata_id: [u8; 16],
    /// What the markers are bound to.
    pub variables: Arc<[ColumnSpec]>,
    /// For each component of the partition key the marker it is bound by; empty when the key is
    /// not all markers.
    pub partition_key_indexes: Arc<[u16]>,
    /// Columns of the result; empty when it gives no rows.
    pub result_columns: Arc<[ColumnSpec]>,
    /// What the client should know although nothing failed.
    pub warnings: Vec<String>,
}

/// MD5 over the columns of a result.
pub(crate) fn metadata_id(columns: &[ColumnSpec]) -> [u8; 16] {
    use md5::{Digest, Md5};
    let mut hasher = Md5::new();
    for column in columns {
        hasher.update(column.keyspace.as_bytes());
        hasher.update([0]);
        hasher.update(column.table.as_bytes());
        hasher.update([0]);
        hasher.update(column.name.as_bytes());
        hasher.update([0]);
        hasher.update(column.cql_type.to_marshal().as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().into()
}
