//! What CQL statements mean: prepared, planned against the schema, executed through the
//! coordinator, answered as rows.
//!
//! ```text
//!   text ── cql ──► Statement ── plan ──► Plan (per schema epoch, kept for prepared statements)
//!                                          │ bound values
//!                 reads: restrictions ──► ReadCommand ── coordinator ──► rows ── select ──► cells
//!                 writes: modify ───────► Mutation ───── coordinator
//!                 schema: ddl ──────────► Transformation ─ coordinator
//! ```
//!
//! Plain requests, for one row by its key, have a way beside that (`plain.rs`).
//!
//! [`Engine`] is the door. This crate never knows sockets or frames: answers are values
//! ([`Response`]), and rows are given cell by cell to a [`RowSink`].

mod catalog;
mod conditional;
mod ddl;
mod describe;
mod engine;
mod error;
mod functions;
mod latencies;
mod memory;
mod modify;
mod plain;
mod prepare;
mod request;
mod response;
mod restrictions;
mod scope;
mod select;
mod terms;
mod timeouts;
mod virtual_tables;

pub use coordinator::{Batches, Consistency, TimeoutKind, Timeouts};
pub use ddl::create_table_from_cql;
pub use describe::table_to_cql;
pub use engine::Engine;
pub use error::{FailedReplica, FailedReplicas, FailureReason, QueryError, TombstoneFailure, WriteType};
pub use latencies::{Latencies, RequestKind};
pub use memory::{AnswerMemory, AnswerRoom, Lane, LargeAnswer, UntakenRoom};
pub use plain::{
    PLAIN_BATCH_MAX, PlainQuery, PlainRead, PlainStatement, PlainUpdate, PlainWrite, PlainWritten,
};
pub use prepare::{PreparedFigures, PreparedLimits, PreparedTexts};
pub use request::{BatchQuery, BatchStatement, BatchType, BindValue, QueryOptions, SessionState, Values};
pub use response::{
    ChangeTarget, ChangeType, ColumnSpec, PreparedInfo, Response, ResponseKind, RowSink, RowsResult,
    SchemaChange, TombstoneWarning,
};
pub use select::{PlainRow, Projection};
pub use virtual_tables::{ClusterFacts, Gathering, NoVirtualTables, VirtualKeyspaces, VirtualTables};
