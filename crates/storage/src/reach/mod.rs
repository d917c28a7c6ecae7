//! How a request gets to a shard: where it is sent from anywhere ([`Shards`]), from the thread of another shard
//! ([`ShardHandle`]), and how the shard takes it.

mod handle;
mod life;
mod shards;

pub use handle::ShardHandle;
pub(crate) use life::live;
pub use shards::Shards;
