//! What all nodes must agree on. On one node: the metadata log, a durable list of schema changes.
//!
//! Changes are pure [`schema::Transformation`]s; the log gives them an order, and the epoch of the
//! schema counts them. A ring will replicate the same log; nothing above this crate will notice. [`raft`] is what it
//! will be replicated by; no node uses it yet.

mod metadata_log;
pub mod raft;

pub use metadata_log::{MetadataError, MetadataLog};
