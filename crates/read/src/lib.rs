//! What is read of a table, and what becomes of the rows that are found.
//!
//! A [`ReadCommand`] says which rows are wanted. Whoever has them gives them, merged but not filtered, to a
//! [`RowConsumer`], which says when it is full and makes an answer of them:
//!
//! ```text
//!                              ┌─► LivePage        live rows for a client           ReadPage
//!   rows, edges of ranges ─────┼─► UnfilteredRows  all, for another replica         UnfilteredPage ─► merge_answers
//!   of one partition           └─► Digester        their hash, to be compared       PageDigest
//!   after the other
//! ```
//!
//! Pure values: what is here knows neither files nor shards, and waits for nothing.

mod command;
mod consumer;
mod digest;
mod error;
mod extent;
mod given;
mod live_page;
mod merge;
mod page;
mod repair;
mod shown;
mod tombstones;
mod unfiltered_page;

pub use command::{ReadColumns, ReadCommand, ReadLimits, ReadPosition, ReadTarget};
pub use consumer::{Begun, Place, Room, RowConsumer, RowView, Seen};
pub use digest::{Digester, PageDigest, plain_row_hash};
pub use error::{ReadError, TooManyTombstones};
pub use given::Given;
pub use live_page::{LeftPage, LivePage, LiveView};
pub use merge::merge_answers;
pub use page::{PartitionRows, ReadPage, RowList};
pub use repair::missing;
pub use shown::live_rows;
pub use tombstones::{PartitionTombstones, TombstoneThresholds};
pub use unfiltered_page::{UnfilteredPage, UnfilteredPageCursor, UnfilteredPartition, UnfilteredRows};
