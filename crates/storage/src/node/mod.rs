//! A node's shards: how they are started and stopped.
//!
//! ```text
//!   Directory::open ──► recover ──► Recovered::start ──► one thread each, body(ShardHandle) on it
//!       lock, facts      memtables, files                  │
//!                                                           └─ mailbox: work from other shards
//! ```
//!
//! The *body* is what the floors above put on a shard's thread: sessions, coordinator, console.

mod directory;
mod recovered;
mod running;

pub(crate) use directory::take_directory;
pub use directory::{Directory, lock_directory};
pub use recovered::Recovered;
pub use running::{LocalShards, RunningShards};
