//! Who owns a token: which nodes of the ring, and which shard of a node.
//!
//! A [`Topology`] says which nodes there are and which tokens they have; it is what the metadata log
//! keeps. [`Sharding`] says which shard of a node has a token. Replicas of a token are still to come.

mod error;
mod grid;
mod sharding;
mod topology;

pub use error::RingError;
pub use grid::Grid;
pub use sharding::{Sharding, ShardingError};
pub use topology::{Node, NodeIndex, Topology};
