//! One node, put together from the floors below: directory, metadata, shards, an engine on each,
//! system keyspaces. No listener and no frames: who calls decides how statements come in.
//!
//! ```text
//!   server ───── connections ──┐
//!                              ├──► Seat { engine, coordinator } on each shard's thread
//!   embedded ─── its callers ──┘        │
//!                                   query, coordinator, storage
//! ```
//!
//! | a reader asks | place |
//! |---|---|
//! | how does a node start and stop? | `node.rs` |
//! | how does it take part in a ring? | `ring.rs` |
//! | what does a node know of its ring that is stopped? | `stopped.rs` |
//! | what do drivers and people find in `system`? | `system/` |
//! | what do all shards together know? | `stats.rs`, `compactions.rs` |
//! | what has how much of the memory? | `memory.rs` |

mod clients;
mod cluster_name;
mod compactions;
mod error;
mod latencies;
mod memory;
mod node;
mod options;
mod ring;
mod stats;
mod stopped;
mod system;

pub use clients::{ClientFacts, Clients, NoClients};
pub use compactions::NodeCompactions;
pub use error::AssemblyError;
pub use latencies::NodeLatencies;
pub use memory::{ClientMemory, MemoryUse};
pub use node::{AssembledNode, Seat, start, start_local};
pub use options::{AnswerOptions, NodeOptions, PreparedOptions};
pub use ring::{RingLimits, RingOptions, RingTls};
pub use stats::NodeStats;
pub use stopped::StoppedNode;
pub use system::{NodeView, PARTITIONER, Placed, RELEASE_VERSION, base_schema, schema_versions};
