//! Who owns a token: which nodes of the ring, and which shard of a node.
//!
//! A [`Topology`] says which nodes there are and which tokens they have; it is what the metadata log
//! keeps. A [`Strategy`] says how many copies a keyspace has. A [`Placement`] is made of both and finds the
//! replicas of a token by one look into a table. [`Sharding`] says which shard of a node has a token.
//!
//! ```
//! use std::sync::Arc;
//! use ring::{Grid, Node, NodeIndex, Placement, Strategy, Topology};
//! use types::Token;
//! # fn main() -> Result<(), ring::RingError> {
//! let node = |id, slot| Node {
//!     host_id: uuid::Uuid::from_u128(id),
//!     data_center: "dc1".to_owned(),
//!     rack: "r1".to_owned(),
//!     num_tokens: 1,
//!     tokens: vec![Grid::COARSEST.last_token(slot)],
//! };
//! let ring = Topology::new(Grid::COARSEST, vec![node(1, 1_000), node(2, 2_000), node(3, 4_000)])?;
//! let placement = Placement::new(Arc::new(ring), &Strategy::Simple { factor: 2 }, NodeIndex(0));
//! // Slot 2048 begins in the middle of the ring. The third node owns it, the first one comes next.
//! assert_eq!(placement.replicas_of(Token(0)), [NodeIndex(2), NodeIndex(0)]);
//! # Ok(())
//! # }
//! ```

pub mod allocation;
mod error;
mod grid;
mod placement;
mod replicas;
mod sharding;
mod strategy;
mod topology;

pub use error::RingError;
pub use grid::Grid;
pub use placement::{GroupIndex, Placement, SetIndex, TokenRange};
pub use sharding::{Sharding, ShardingError};
pub use strategy::Strategy;
pub use topology::{Node, NodeIndex, Topology};
