//! Where a row stands in its partition: clusterings, bounds between them, and their order.
//!
//! A clustering is kept encoded: for each clustering column a CQL `[bytes]`, an `i32` big-endian
//! length (-1 for null) and the value. A table without clustering columns has the empty one.
//! A [`Bound`] is a prefix of a clustering and a side: it stands just before or just after
//! everything that starts with the prefix.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use types::CqlType;

/// An encoded clustering, or a prefix of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Clustering(Bytes);

/// Encoded bytes that are not a clustering.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("clustering of {bytes} bytes is cut off at byte {offset}")]
pub struct ClusteringError {
    /// Where the component began that does not fit.
    pub offset: usize,
    /// Length of the whole.
    pub bytes: usize,
}

/// Puts components together.
#[derive(Debug, Default)]
pub struct ClusteringBuilder(Vec<u8>);

impl ClusteringBuilder {
    /// No components yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one component; `None` is null.
    pub fn push(&mut self, value: Option<&[u8]>) -> &mut Self {
        match value {
            None => self.0.extend_from_slice(&(-1i32).to_be_bytes()),
            Some(value) => {
                let length = i32::try_from(value.len()).expect("values are bounded by the frame size");
                self.0.extend_from_slice(&length.to_be_bytes());
                self.0.extend_from_slice(value);
            }
        }
        self
    }

    /// The clustering or prefix.
    pub fn finish(self) -> Clustering {
        Clustering(self.0.into())
    }
}

impl Clustering {
    /// The clustering of a table without clustering columns, and of a static row.
    pub const EMPTY: Clustering = Clustering(Bytes::new());

    /// Checks encoded bytes that came from outside.
    ///
    /// # Errors
    /// [`ClusteringError`] when a component is cut off.
    pub fn from_encoded(encoded: Bytes) -> Result<Self, ClusteringError> {
        let mut offset = 0;
        while offset < encoded.len() {
            let error = ClusteringError { offset, bytes: encoded.len() };
            let Some(head) = encoded.get(offset..offset + 4) else { return Err(error) };
            let length = i32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            let value_bytes = usize::try_from(length).unwrap_or(0);
            if length < -1 || encoded.len() - offset - 4 < value_bytes {
                return Err(error);
            }
            offset += 4 + value_bytes;
        }
        Ok(Clustering(encoded))
    }

    /// Trusts bytes that were checked before.
    pub(crate) fn trusted(encoded: Bytes) -> Self {
        Clustering(encoded)
    }

    /// The encoded bytes.
    pub fn as_encoded(&self) -> &[u8] {
        &self.0
    }

    /// Has it no component?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Components in order; `None` is null.
    pub fn components(&self) -> Components<'_> {
        Components(&self.0)
    }
}

/// Components of an encoded clustering.
#[derive(Clone, Debug)]
pub struct Components<'a>(&'a [u8]);

impl<'a> Components<'a> {
    /// Over encoded bytes that were checked before.
    pub(crate) fn over(encoded: &'a [u8]) -> Self {
        Components(encoded)
    }
}

impl<'a> Iterator for Components<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*head);
        if length < 0 {
            self.0 = rest;
            return Some(None);
        }
        let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(Some(value))
    }
}

/// Which side of its prefix a bound is on, and whether it takes the prefix in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoundKind {
    /// Start, the prefix taken in: stands before it.
    InclusiveStart,
    /// Start, the prefix left out: stands after it.
    ExclusiveStart,
    /// End, the prefix taken in: stands after it.
    InclusiveEnd,
    /// End, the prefix left out: stands before it.
    ExclusiveEnd,
}

impl BoundKind {
    /// Does the bound stand before everything that starts with its prefix?
    pub fn is_before(self) -> bool {
        matches!(self, BoundKind::InclusiveStart | BoundKind::ExclusiveEnd)
    }

    /// Does it open a range?
    pub fn is_start(self) -> bool {
        matches!(self, BoundKind::InclusiveStart | BoundKind::ExclusiveStart)
    }

    /// The bound at the same place that ends what this starts, or starts what this ends.
    pub fn inverted(self) -> Self {
        match self {
            BoundKind::InclusiveStart => BoundKind::ExclusiveEnd,
            BoundKind::ExclusiveStart => BoundKind::InclusiveEnd,
            BoundKind::InclusiveEnd => BoundKind::ExclusiveStart,
            BoundKind::ExclusiveEnd => BoundKind::InclusiveStart,
        }
    }
}

/// A place between clusterings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// Side and inclusion.
    pub kind: BoundKind,
    /// Leading components.
    pub prefix: Clustering,
}

impl Bound {
    /// Before everything in the partition.
    pub const BOTTOM: Bound = Bound { kind: BoundKind::InclusiveStart, prefix: Clustering::EMPTY };
    /// After everything in the partition.
    pub const TOP: Bound = Bound { kind: BoundKind::InclusiveEnd, prefix: Clustering::EMPTY };
}

/// Orders the clusterings and bounds of one table.
#[derive(Clone, Debug)]
pub struct ClusteringComparator {
    types: Arc<[(CqlType, bool)]>,
}

impl ClusteringComparator {
    /// For a table's clustering types ([`schema::Table::clustering_types`]).
    pub fn new(types: Arc<[(CqlType, bool)]>) -> Self {
        ClusteringComparator { types }
    }

    /// Type of each clustering column and whether it is reversed.
    pub fn types(&self) -> &Arc<[(CqlType, bool)]> {
        &self.types
    }

    /// Order of two whole clusterings.
    pub fn compare(&self, left: &Clustering, right: &Clustering) -> Ordering {
        self.compare_components(left.components(), right.components()).0
    }

    /// Order of two encoded clusterings.
    pub fn compare_encoded(&self, left: &[u8], right: &[u8]) -> Ordering {
        self.compare_components(Components::over(left), Components::over(right)).0
    }

    /// Where a clustering stands to a bound: never equal.
    pub fn compare_to_bound(&self, clustering: &Clustering, bound: &Bound) -> Ordering {
        let (order, _) = self.compare_components(clustering.components(), bound.prefix.components());
        let side = if bound.kind.is_before() { Ordering::Greater } else { Ordering::Less };
        order.then(side)
    }

    /// Where an encoded clustering stands to a bound: never equal.
    pub fn compare_encoded_to_bound(&self, clustering: &[u8], bound: &Bound) -> Ordering {
        let side = if bound.kind.is_before() { Ordering::Greater } else { Ordering::Less };
        self.compare_encoded(clustering, bound.prefix.as_encoded()).then(side)
    }

    /// Order of two bounds; equal when they are the same place.
    pub fn compare_bounds(&self, left: &Bound, right: &Bound) -> Ordering {
        let (order, shorter) = self.compare_components(left.prefix.components(), right.prefix.components());
        let side = |bound: &Bound| if bound.kind.is_before() { Ordering::Less } else { Ordering::Greater };
        order.then(match shorter {
            Ordering::Less => side(left),
            Ordering::Greater => side(right).reverse(),
            Ordering::Equal => side(left).cmp(&side(right)),
        })
    }

    /// Order over the common components, and which of the two has fewer.
    fn compare_components(
        &self,
        mut left: Components<'_>,
        mut right: Components<'_>,
    ) -> (Ordering, Ordering) {
        for (cql_type, reversed) in self.types.iter() {
            let (a, b) = match (left.next(), right.next()) {
                (Some(a), Some(b)) => (a, b),
                (a, b) => return (Ordering::Equal, a.is_some().cmp(&b.is_some())),
            };
            let order = match (a, b) {
                // Null sorts first, whatever the direction, as in Cassandra's ClusteringComparator.
                (None, _) | (_, None) => a.is_some().cmp(&b.is_some()),
                (Some(a), Some(b)) if *reversed => cql_type.compare(b, a),
                (Some(a), Some(b)) => cql_type.compare(a, b),
            };
            if order.is_ne() {
                return (order, Ordering::Equal);
            }
        }
        (Ordering::Equal, Ordering::Equal)
    }
}
