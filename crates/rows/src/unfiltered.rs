//! What a partition is made of when read in order: a header, then rows and markers.

use std::cmp::Ordering;

use crate::{Bound, BoundKind, Clustering, ClusteringComparator, DeletionTime, PartitionKey, Row};

/// The start of a partition in a stream of partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionHeader {
    /// Its key.
    pub key: PartitionKey,
    /// Its deletion, or [`DeletionTime::LIVE`].
    pub deletion: DeletionTime,
    /// Its static row.
    pub static_row: Option<Row>,
}

/// A row, or an edge of a range tombstone: not yet filtered to what is live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfiltered {
    /// A row.
    Row(Row),
    /// An edge of a range tombstone.
    Marker(Marker),
}

impl Unfiltered {
    /// Where it stands to another item of its partition, in clustering order.
    pub fn place_to(&self, other: &Unfiltered, comparator: &ClusteringComparator) -> Ordering {
        match (self, other) {
            (Unfiltered::Row(a), Unfiltered::Row(b)) => {
                comparator.compare_encoded(a.encoded_clustering(), b.encoded_clustering())
            }
            (Unfiltered::Row(a), Unfiltered::Marker(b)) => {
                comparator.compare_to_bound(&a.clustering(), &b.start_bound())
            }
            (Unfiltered::Marker(a), Unfiltered::Row(b)) => {
                comparator.compare_to_bound(&b.clustering(), &a.start_bound()).reverse()
            }
            (Unfiltered::Marker(a), Unfiltered::Marker(b)) => {
                comparator.compare_bounds(&a.start_bound(), &b.start_bound())
            }
        }
    }
}

/// A place between rows where the range deletion in force changes.
///
/// ```text
///        left deletion        |        right deletion
///   …rows before the place…   |   …rows after the place…      clustering order →
/// ```
///
/// Told by sides and not by "opens" and "closes", so that it reads the same in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Leading components of the place.
    pub prefix: Clustering,
    /// Is the place just before everything with that prefix (and not just after)?
    pub is_before: bool,
    /// In force just before the place; live when none.
    pub left: DeletionTime,
    /// In force just after the place; live when none.
    pub right: DeletionTime,
}

impl Marker {
    /// The edge at a bound: a start opens `deletion`, an end closes it.
    pub fn at(bound: &Bound, deletion: DeletionTime) -> Self {
        let (left, right) = if bound.kind.is_start() {
            (DeletionTime::LIVE, deletion)
        } else {
            (deletion, DeletionTime::LIVE)
        };
        Marker { prefix: bound.prefix.clone(), is_before: bound.kind.is_before(), left, right }
    }

    /// The place as a start bound.
    pub fn start_bound(&self) -> Bound {
        let kind = if self.is_before { BoundKind::InclusiveStart } else { BoundKind::ExclusiveStart };
        Bound { kind, prefix: self.prefix.clone() }
    }

    /// The place as an end bound.
    pub fn end_bound(&self) -> Bound {
        let kind = if self.is_before { BoundKind::ExclusiveEnd } else { BoundKind::InclusiveEnd };
        Bound { kind, prefix: self.prefix.clone() }
    }

    /// The deletion entered when reading past the place in that direction.
    pub fn entered(&self, reversed: bool) -> DeletionTime {
        if reversed { self.left } else { self.right }
    }
}
