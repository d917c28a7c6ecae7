//! Chunks of table files in memory: which of them a shard keeps, and how long they ought to be.
//!
//! ```text
//!   a read ──► ChunkCache ──┬─ there: the chunk where it lies (CacheView), or a share of it
//!                           └─ not: the shard fetches it, keeps it, and notes what the read wanted
//!                                      │
//!   a flush or a merge ──► Reservation │ room for what it writes
//!                                      ▼
//!                            AutoChunkLength ──► the length of chunks in the next file
//! ```
//!
//! All of it belongs to one shard and is touched by one thread; nothing here reads a disk or waits.

mod chunk_cache;
mod chunk_length;

pub use chunk_cache::{CacheStats, CacheView, ChunkCache, Reservation};
pub use chunk_length::{
    AutoChunkLength, ChunkLengthStats, ColdReads, READ_AHEAD_BYTES_MAX, is_compressed_as_asked,
};
