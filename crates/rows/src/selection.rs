//! Which part of a partition is asked for.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::{Bound, BoundKind, Clustering, ClusteringComparator};

/// A range of clusterings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where it begins; a start kind.
    pub start: Bound,
    /// Where it ends; an end kind.
    pub end: Bound,
}

impl Slice {
    /// The whole partition.
    pub const ALL: Slice = Slice { start: Bound::BOTTOM, end: Bound::TOP };

    /// Everything that starts with that prefix; one row, when it is a whole clustering.
    pub fn prefix(prefix: Clustering) -> Self {
        Slice {
            start: Bound { kind: BoundKind::InclusiveStart, prefix: prefix.clone() },
            end: Bound { kind: BoundKind::InclusiveEnd, prefix },
        }
    }

    /// Does it hold nothing?
    pub fn is_empty(&self, comparator: &ClusteringComparator) -> bool {
        comparator.compare_bounds(&self.start, &self.end) != Ordering::Less
    }

    /// Is the clustering in it?
    pub fn contains(&self, comparator: &ClusteringComparator, clustering: &Clustering) -> bool {
        comparator.compare_to_bound(clustering, &self.start).is_gt()
            && comparator.compare_to_bound(clustering, &self.end).is_lt()
    }
}

/// Slices in clustering order that do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slices(Which);

/// Most reads by key want the whole partition, and need no memory to say so.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    All,
    /// Never the one slice that is everything. There may be many: shared by whoever reads them.
    These(Arc<[Slice]>),
}

/// What [`Which::All`] stands for.
static ALL: [Slice; 1] = [Slice::ALL];

impl Slices {
    /// The whole partition.
    pub fn all() -> Self {
        Slices(Which::All)
    }

    /// No rows at all: only the partition's header is asked for.
    pub fn none() -> Self {
        Slices(Which::These(Arc::from([])))
    }

    fn these(slices: Vec<Slice>) -> Self {
        Slices(if slices == ALL { Which::All } else { Which::These(slices.into()) })
    }

    /// These slices, sorted, empty ones left out, overlapping ones joined.
    pub fn new(mut slices: Vec<Slice>, comparator: &ClusteringComparator) -> Self {
        slices.retain(|slice| !slice.is_empty(comparator));
        slices.sort_by(|a, b| comparator.compare_bounds(&a.start, &b.start));
        let mut joined: Vec<Slice> = Vec::with_capacity(slices.len());
        for slice in slices {
            match joined.last_mut() {
                Some(last) if comparator.compare_bounds(&slice.start, &last.end) != Ordering::Greater => {
                    if comparator.compare_bounds(&slice.end, &last.end) == Ordering::Greater {
                        last.end = slice.end;
                    }
                }
                _ => joined.push(slice),
            }
        }
        Self::these(joined)
    }

    /// In clustering order.
    pub fn as_slice(&self) -> &[Slice] {
        match &self.0 {
            Which::All => &ALL,
            Which::These(slices) => slices,
        }
    }

    /// Is it the whole partition?
    pub fn is_all(&self) -> bool {
        self.0 == Which::All
    }

    /// What remains after a row already returned: everything beyond it in reading direction.
    #[must_use]
    pub fn after(&self, last: &Clustering, reversed: bool, comparator: &ClusteringComparator) -> Self {
        let rest = self.as_slice().iter().cloned().map(|mut slice| {
            let (bound, kind) = match reversed {
                false => (&mut slice.start, BoundKind::ExclusiveStart),
                true => (&mut slice.end, BoundKind::ExclusiveEnd),
            };
            let cut = Bound { kind, prefix: last.clone() };
            let order = comparator.compare_bounds(&cut, bound);
            if order == if reversed { Ordering::Less } else { Ordering::Greater } {
                *bound = cut;
            }
            slice
        });
        Self::these(rest.filter(|slice| !slice.is_empty(comparator)).collect())
    }
}
