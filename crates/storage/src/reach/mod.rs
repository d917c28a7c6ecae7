//! How a request gets to a shard: by a plain call on its own thread, by a visit while that sleeps, by an errand else.
//!
//! ```text
//!   from another shard           from anywhere
//!     ShardHandle                  Shards
//!      │      │                      │
//!      │      └─ on, ask ─► outbox ──┴─► mailbox ─► serve ─► errands in turns ─► answers
//!      │
//!      └─ read, write … ─► the owner sleeps? visit: its work is done here, through its door
//! ```
//!
//! | a reader asks | file |
//! |---|---|
//! | how does a read or a write come to the shard that owns it? | `requests.rs` |
//! | what is sent to a shard, and how does its result come back? | `errand.rs` |
//! | how does one shard send to the others? | `handle.rs` |
//! | how does anybody else? | `shards.rs` |
//! | how does a shard take what comes? | `life.rs` |
//!
//! Mailboxes and doors are of `runtime`; what a visitor may do is in `shard/visit.rs`.

pub(crate) mod errand;
mod handle;
mod life;
mod requests;
mod shards;

pub use handle::ShardHandle;
pub(crate) use life::live;
pub use shards::Shards;
