//! What all nodes must agree on. On one node: the metadata log, a durable list of schema changes.
//!
//! Changes are pure [`schema::Transformation`]s; the log gives them an order, and the epoch of the
//! schema counts them. A ring will replicate the same log; nothing above this crate will notice.

mod metadata_log;

pub use metadata_log::{MetadataError, MetadataLog};
