//! The server: wires a node together and answers the world.
//!
//! It has no rules of its own. A driver's bytes arrive at a `connection`, `protocol` cuts them into
//! requests, `query` carries them out, and the answers of all requests found in one read go out in
//! one write. Every shard has its own listener and its own sessions; nothing of a request is shared
//! between threads unless the key belongs to another shard.
//!
//! | a reader asks | place |
//! |---|---|
//! | how does a node start and stop? | `node.rs` |
//! | who accepts connections? | `listener.rs` |
//! | how is a request answered? | `connection/` |
//! | what if there are too many of them? | `budget.rs` |
//! | what do drivers find in `system`? | crate `assembly` |
//! | what does nodetool talk to? | `management/` |

mod budget;
mod clients;
mod connection;
mod convert;
mod entrance;
mod error;
mod events;
mod listener;
mod long_turns;
mod management;
mod node;
mod options;
mod slow_queries;
mod trace_chance;
mod ways;

pub use assembly::{RingLimits, RingOptions};
pub use error::ServerError;
pub use management::ManagementToken;
pub use node::{LocalServer, Server};
pub use options::{Limits, ServerOptions};
pub use ways::{RequestWays, WayCount};
