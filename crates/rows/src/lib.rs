//! Rows, tombstones and how they merge: the heart of the data model, pure and without I/O.
//!
//! ```text
//!   Mutation ──────────────► commit log, memtable        (encoded once, when bound)
//!      │ partition key, partition deletion, static row, rows, range tombstones
//!      ▼
//!   Row = clustering + liveness + deletion + cells       (one run of bytes: row.rs)
//!      │
//!   Unfiltered = Row | Marker (an edge of a range tombstone)
//!      │  sorted by clustering within a partition
//!      ▼
//!   merge: newest timestamp wins, tombstones hide what they cover, ties as in Cassandra
//! ```
//!
//! A [`Row`] is kept encoded from the moment a statement is bound until its cells are copied to a
//! client: views ([`CellRef`], [`ColumnRef`]) read it in place, [`RowBuilder`] writes a new one.
//! Merging is commutative, associative and idempotent; `tests/properties` holds it to that.

mod cell;
mod cell_merge;
mod clustering;
mod counter;
mod cursor;
mod deletion;
mod encoding_stats;
mod key;
mod live;
mod liveness;
mod merge_cursor;
mod merge_row;
mod mutation;
mod place;
mod range_tombstones;
mod ring_range;
mod row;
mod selection;
mod shared;
mod unfiltered;
mod versions;

pub use cell::CellRef;
pub use cell_merge::CellMerge;
pub use clustering::{
    Bound, BoundKind, Clustering, ClusteringBuilder, ClusteringComparator, ClusteringError,
};
pub use counter::{CounterId, Increments, added_up, context, counted, counter_value, only_adds};
pub use cursor::{Step, UnfilteredCursor};
pub use deletion::{DeletionTime, NO_DELETION_TIME};
pub use encoding_stats::{EncodingStats, EncodingStatsCollector};
pub use key::PartitionKey;
pub use live::{LiveRows, purge_row};
pub use liveness::Liveness;
pub use merge_cursor::{MergeCursor, MergeLack};
pub use merge_row::{merge_row, merge_rows, merge_to_keep};
pub use mutation::{Mutation, MutationBuilder, MutationError, MutationMemory};
pub use place::{RowInPlace, RowValues, ValuesInPlace};
pub use range_tombstones::{RangeTombstone, RangeTombstones};
pub use ring_range::{RingPlace, RingRange};
pub use row::{
    ColumnData, ColumnRef, Columns, ComplexRef, GATHERED_ROW_BYTES_MAX, LARGE_ROW_BYTES, Row, RowBuilder,
    RowError, Shown,
};
pub use selection::{Slice, Slices};
pub use shared::room_for;
pub use unfiltered::{Marker, PartitionHeader, Unfiltered};
pub use versions::RowVersions;
