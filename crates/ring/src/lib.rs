//! Who owns a token: the shards of a node.
//!
//! Replicas and strategies come with the ring of nodes; on one node the question is which shard.

mod sharding;

pub use sharding::{Sharding, ShardingError};
