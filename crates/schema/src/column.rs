//! A column of a table: its name for people, its id for bytes.

use serde::{Deserialize, Serialize};
use types::CqlType;

/// Number of a column within its table; given once, never reused, not even after `DROP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ColumnId(pub u16);

/// Direction of a clustering column (`CLUSTERING ORDER BY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusteringOrder {
    /// Ascending, the default.
    Asc,
    /// Descending: stored and compared in reverse.
    Desc,
}

/// What part a column plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Component of the partition key, at this place (from 0).
    PartitionKey(u16),
    /// Component of the clustering key, at this place (from 0), in this order.
    Clustering(u16, ClusteringOrder),
    /// One value per partition.
    Static,
    /// One value per row.
    Regular,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Column {
    /// Its number in mutations.
    pub id: ColumnId,
    /// Its name, unquoted.
    pub name: String,
    /// Its part in the key, or none.
    pub kind: ColumnKind,
    /// Its type, without regard to clustering order.
    #[serde(with = "crate::serde_type")]
    pub cql_type: CqlType,
}

impl Column {
    /// Is it part of the partition key or of the clustering key?
    pub fn is_primary_key(&self) -> bool {
        matches!(self.kind, ColumnKind::PartitionKey(_) | ColumnKind::Clustering(..))
    }

    /// Is it one value per partition?
    pub fn is_static(&self) -> bool {
        self.kind == ColumnKind::Static
    }
}
