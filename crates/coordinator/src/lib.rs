//! Carries reads and writes to the replicas that own them, and answers when enough have.
//!
//! On one node the replicas are this node's shards; the consistency level is checked against that
//! one replica. One [`Coordinator`] lives on each shard, a cheap handle that is never shared.

mod error;
mod handle;

pub use error::CoordinatorError;
pub use handle::{Consistency, Coordinator};
