//! What is read of a table, and what becomes of the rows that are found.
//!
//! A [`ReadCommand`] says which rows are wanted. Whoever has them answers with a [`ReadPage`]: live rows up to a limit,
//! and the [`ReadPosition`] at which the next page begins. Pure values: what is here knows neither files nor shards.

mod command;
mod page;
mod tombstones;

pub use command::{ReadColumns, ReadCommand, ReadLimits, ReadPosition, ReadTarget};
pub use page::{PartitionRows, ReadPage, RowList};
pub use tombstones::{PartitionTombstones, TombstoneThresholds};
