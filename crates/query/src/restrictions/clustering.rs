//! From restrictions of clustering columns to slices of a partition.

use std::cmp::Ordering;
use std::sync::Arc;

use rows::{Bound, BoundKind, Clustering, ClusteringBuilder, ClusteringComparator, Slice, Slices};
use runtime::{Io, Piece};
use types::CqlType;

use super::Restrictions;
use super::product::Product;
use super::restriction::{Edge, Point, Restriction, Test, Values};
use crate::QueryError;
use crate::error::refuse;
use crate::terms::{Bindings, Value};

/// The rows asked for.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    /// Everything between bounds.
    Slices(Slices),
    /// Whole clusterings, in clustering order.
    Named(Vec<Clustering>),
}

impl Rows {
    /// How many rows or slices.
    pub(crate) fn count(&self) -> usize {
        match self {
            Rows::Slices(slices) => slices.as_slice().len(),
            Rows::Named(names) => names.len(),
        }
    }

    pub(crate) fn into_slices(self, comparator: &ClusteringComparator) -> Slices {
        match self {
            Rows::Slices(slices) => slices,
            Rows::Named(names) => Slices::new(names.into_iter().map(Slice::prefix).collect(), comparator),
        }
    }
}

impl Restrictions {
    /// Is there a restriction that slices can not express?
    pub(super) fn filters_clustering(&self) -> bool {
        self.sliced().len() < self.clustering.len()
    }

    /// The restrictions that slices express: in the order of the columns, without holes, a slice last.
    fn sliced(&self) -> &[Restriction] {
        let mut position = 0;
        for (index, restriction) in self.clustering.iter().enumerate() {
            if restriction.is_contains() || restriction.first().position != position {
                return &self.clustering[..index];
            }
            if restriction.is_slice() {
                return &self.clustering[..=index];
            }
            position = restriction.last_position() + 1;
        }
        &self.clustering
    }

    /// The restrictions that only a filter can hold rows against.
    pub(super) fn unsliced(&self) -> &[Restriction] {
        &self.clustering[self.sliced().len()..]
    }

    /// The rows asked for.
    ///
    /// # Errors
    /// A value is null, unset or not of its type.
    pub(crate) async fn bind_rows(
        &self,
        comparator: &ClusteringComparator,
        bindings: &Bindings<'_>,
        io: &Io,
    ) -> Result<Rows, QueryError> {
        if self.clustering.is_empty() {
            return Ok(match self.clustering_count {
                0 => Rows::Named(vec![Clustering::EMPTY]),
                _ => Rows::Slices(Slices::all()),
            });
        }
        if let Some(clustering) = self.bind_one_row(bindings)? {
            return Ok(Rows::Named(vec![clustering]));
        }
        // Boxed, so that the many of one row need no room for it.
        Box::pin(self.bind_product_of_rows(comparator, bindings, io)).await
    }

    async fn bind_product_of_rows(
        &self,
        comparator: &ClusteringComparator,
        bindings: &Bindings<'_>,
        io: &Io,
    ) -> Result<Rows, QueryError> {
        let mut product = Product::new("clustering key");
        let mut slice = None;
        for restriction in self.sliced() {
            if restriction.is_slice() {
                slice = Some(restriction);
                break;
            }
            let (types, first) = (Arc::clone(comparator.types()), restriction.first().position);
            let arrange = move |points: &mut Vec<Point>| {
                let types = types.get(first..).unwrap_or_default();
                points.sort_by(|a, b| compare(types, a, b));
                points.dedup_by(|a, b| compare(types, a, b).is_eq());
            };
            product.push(restriction, bindings, io, arrange).await?;
        }
        match slice {
            Some(restriction) => {
                let mut slices = Vec::new();
                let mut piece = Piece::of_turn();
                for prefix in product.iter() {
                    slices.extend(slices_within(&prefix, restriction, comparator, bindings)?);
                    piece.give_way().await;
                }
                Ok(Rows::Slices(Slices::new(slices, comparator)))
            }
            None => {
                let (names_rows, comparator) = (self.names_rows(), comparator.clone());
                let make = move |product: &Product| {
                    let clusterings = product.iter().map(|values| encode(&values));
                    if names_rows {
                        Rows::Named(clusterings.collect())
                    } else {
                        Rows::Slices(Slices::new(clusterings.map(Slice::prefix).collect(), &comparator))
                    }
                };
                Ok(product.make(io, make).await)
            }
        }
    }
}

impl Restrictions {
    /// The hot path: one row, every clustering column equal to one term.
    fn bind_one_row(&self, bindings: &Bindings<'_>) -> Result<Option<Clustering>, QueryError> {
        let is_term = |restriction: &Restriction| {
            matches!(restriction.test, Test::Equal(Values::Terms(_))) && !restriction.is_tuple
        };
        if self.clustering.len() != self.clustering_count || !self.clustering.iter().all(is_term) {
            return Ok(None);
        }
        let mut builder = ClusteringBuilder::new();
        for restriction in &self.clustering {
            let Test::Equal(Values::Terms(terms)) = &restriction.test else { return Ok(None) };
            let name = &restriction.first().name;
            match terms[0].bind(bindings)? {
                Value::Set(value) => builder.push(Some(&value)),
                Value::Null => refuse!("Invalid null value in condition for column {name}"),
                Value::Unset => refuse!("Invalid unset value for column {name}"),
            };
        }
        Ok(Some(builder.finish()))
    }
}

/// The order of values of clustering columns of these types, from the first on.
fn compare(types: &[(CqlType, bool)], a: &Point, b: &Point) -> Ordering {
    let orders = a.iter().zip(b).zip(types).map(|((a, b), (of, is_reversed))| {
        let order = of.compare(a, b);
        if *is_reversed { order.reverse() } else { order }
    });
    orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn encode(values: &[&[u8]]) -> Clustering {
    let mut builder = ClusteringBuilder::new();
    for value in values {
        builder.push(Some(value));
    }
    builder.finish()
}

/// Slices of the rows that begin with the prefix and lie between the edges of the restriction.
fn slices_within(
    prefix: &[&[u8]],
    restriction: &Restriction,
    comparator: &ClusteringComparator,
    bindings: &Bindings<'_>,
) -> Result<Vec<Slice>, QueryError> {
    let Test::Slice { start, end } = &restriction.test else { return Ok(Vec::new()) };
    let lower = match start {
        Some(edge) => beyond(prefix, restriction, edge, true, comparator, bindings)?,
        None => vec![Slice::prefix(encode(prefix))],
    };
    let upper = match end {
        Some(edge) => beyond(prefix, restriction, edge, false, comparator, bindings)?,
        None => vec![Slice::prefix(encode(prefix))],
    };
    let both = lower.iter().flat_map(|a| upper.iter().map(|b| intersect(a, b, comparator)));
    Ok(both.filter(|slice| !slice.is_empty(comparator)).collect())
}

fn intersect(a: &Slice, b: &Slice, comparator: &ClusteringComparator) -> Slice {
    let later = |x: &Bound, y: &Bound| comparator.compare_bounds(x, y) == Ordering::Greater;
    Slice {
        start: if later(&a.start, &b.start) { a.start.clone() } else { b.start.clone() },
        end: if later(&a.end, &b.end) { b.end.clone() } else { a.end.clone() },
    }
}

/// The rows above (or below) a tuple, as one slice for each of its components:
///
/// ```text
///   (a, b) > (1, 2)   =   a > 1   or   a = 1 and b > 2
/// ```
///
/// so that columns sorted in different directions need no care of their own.
fn beyond(
    prefix: &[&[u8]],
    restriction: &Restriction,
    edge: &Edge,
    above: bool,
    comparator: &ClusteringComparator,
    bindings: &Bindings<'_>,
) -> Result<Vec<Slice>, QueryError> {
    if restriction.binds_null(edge, bindings)? {
        // Null comes first and no row has it: everything is above, nothing below.
        return Ok(if above { vec![Slice::prefix(encode(prefix))] } else { Vec::new() });
    }
    let values = restriction.bind(&edge.values, bindings)?;
    let mut slices = Vec::with_capacity(values.len());
    for index in 0..values.len() {
        let is_last = index + 1 == values.len();
        let with = |count: usize| -> Vec<&[u8]> {
            prefix.iter().copied().chain(values[..count].iter().map(Vec::as_slice)).collect()
        };
        let (outer, inner) = (with(index), with(index + 1));
        let is_reversed = comparator.types().get(outer.len()).is_some_and(|(_, reversed)| *reversed);
        let is_inclusive = is_last && edge.is_inclusive;
        let whole = encode(&outer);
        // Above a value in a reversed column is before it in clustering order.
        slices.push(if above != is_reversed {
            let kind = if is_inclusive { BoundKind::InclusiveStart } else { BoundKind::ExclusiveStart };
            Slice {
                start: Bound { kind, prefix: encode(&inner) },
                end: Bound { kind: BoundKind::InclusiveEnd, prefix: whole },
            }
        } else {
            let kind = if is_inclusive { BoundKind::InclusiveEnd } else { BoundKind::ExclusiveEnd };
            Slice {
                start: Bound { kind: BoundKind::InclusiveStart, prefix: whole },
                end: Bound { kind, prefix: encode(&inner) },
            }
        });
    }
    Ok(slices)
}
