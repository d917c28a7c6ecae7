//! Keyspaces, tables, columns and options: the schema as an immutable value with an epoch.
//!
//! A [`Schema`] is never changed in place: a [`Transformation`] applied to one gives the next,
//! with the epoch one higher. Readers hold an `Arc<Schema>` and swap it when a newer one is
//! published, so a request sees one schema from its first step to its last.
//!
//! Two kinds of names live side by side. People and table files name a column by its *name*;
//! mutations in the commit log name it by its [`ColumnId`], which is never used again in the
//! same table, so that a replayed write can not land in a later column of the same name.

mod changes;
mod column;
mod keyspace;
mod options;
mod serde_type;
mod table;
mod transformation;
mod user_type;
mod value;

pub use changes::Changes;
pub use column::{ClusteringOrder, Column, ColumnId, ColumnKind};
pub use keyspace::{Keyspace, Replication};
pub use options::{
    Caching, ChunkLength, CompactionOptions, CompressionOptions, Fraction, Prefetch, SpeculativeRetry,
    TableOptions,
};
pub use table::{DroppedColumn, Table, TableBuilder, TableError, TableId};
pub use transformation::{SchemaError, Transformation};
pub use value::{Home, Schema};
