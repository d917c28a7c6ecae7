//! What rows are held against after they were read.

use rows::ColumnData;
use schema::ColumnId;
use types::CqlType;
use types::encoding::Parts;

use super::Restrictions;
use super::restriction::{Contained, Point, Restriction, Test};
use crate::QueryError;
use crate::error::refuse;
use crate::select::{RowView, Source};
use crate::terms::{Bindings, Term, Value};

/// The tests that only a filter can do, planned: which columns they look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// The columns, each once.
    pub(crate) columns: Vec<ColumnId>,
}

/// What the columns are called when too many values are asked of them.
const FILTERED: &str = "filtered columns";

/// Tests with their values.
#[derive(Debug, Default)]
pub(crate) struct RowFilter {
    tests: Vec<BoundTest>,
}

#[derive(Debug)]
struct BoundTest {
    source: Source,
    cql_type: CqlType,
    test: Compared,
}

#[derive(Debug)]
enum Compared {
    /// One of these, which are in order.
    Points(Vec<Vec<u8>>),
    Between {
        start: Option<(Vec<u8>, bool)>,
        end: Option<(Vec<u8>, bool)>,
    },
    Element(Vec<u8>),
    Key(Vec<u8>),
    Entry(Vec<u8>, Vec<u8>),
    /// Tuples of several columns, one of which must be equal.
    Tuples(Vec<(Source, CqlType)>, Vec<Point>),
}

impl Restrictions {
    /// The columns a filter looks at, if one is needed.
    pub(crate) fn filter(&self) -> Option<Filter> {
        let mut columns: Vec<ColumnId> =
            self.filtered().flat_map(|restriction| &restriction.columns).map(|column| column.id).collect();
        columns.sort();
        columns.dedup();
        (!columns.is_empty()).then_some(Filter { columns })
    }

    pub(super) fn filtered(&self) -> impl Iterator<Item = &Restriction> {
        let keys: &[Restriction] = if self.filters_partition_key { &self.partition } else { &[] };
        keys.iter().chain(self.unsliced()).chain(&self.other)
    }

    /// Whether a filter can look at these restrictions.
    ///
    /// # Errors
    /// A slice of tuples can not be filtered on.
    pub(crate) fn check_filter(&self) -> Result<(), QueryError> {
        for restriction in self.filtered().filter(|restriction| restriction.is_tuple) {
            if restriction.is_slice() {
                refuse!("Multi-column slice restrictions cannot be used for filtering.");
            }
            if restriction.is_in() {
                refuse!("Multicolumn IN filters are not supported");
            }
        }
        Ok(())
    }

    /// The filter with its values; `source` tells where a column's value is.
    ///
    /// # Errors
    /// A value is null, unset or not of its type.
    pub(crate) fn bind_filter(
        &self,
        source: impl Fn(ColumnId) -> Source,
        bindings: &Bindings<'_>,
    ) -> Result<RowFilter, QueryError> {
        let mut tests = Vec::new();
        for restriction in self.filtered() {
            let first = restriction.first();
            let mut add = |test| {
                tests.push(BoundTest { source: source(first.id), cql_type: first.cql_type.clone(), test });
            };
            match &restriction.test {
                Test::Equal(_) if restriction.is_tuple => {
                    let sources =
                        restriction.columns.iter().map(|c| (source(c.id), c.cql_type.clone())).collect();
                    add(Compared::Tuples(sources, restriction.bind_points(FILTERED, bindings)?));
                }
                Test::Equal(super::restriction::Values::Terms(terms)) => {
                    add(Compared::Points(vec![value(&terms[0], &first.name, bindings)?]));
                }
                Test::Equal(_) | Test::In(_) | Test::InMarker(_) => {
                    let points = restriction.bind_points(FILTERED, bindings)?;
                    let mut points: Vec<Vec<u8>> = points.into_iter().flatten().collect();
                    points.sort_by(|a, b| first.cql_type.compare(a, b));
                    add(Compared::Points(points));
                }
                Test::Slice { start, end } => {
                    let edge = |edge: &Option<super::restriction::Edge>| match edge {
                        Some(edge) => match &edge.values {
                            super::restriction::Values::Terms(terms) => {
                                Ok(Some((value(&terms[0], &first.name, bindings)?, edge.is_inclusive)))
                            }
                            super::restriction::Values::TupleMarker(_) => Ok(None),
                        },
                        None => Ok::<_, QueryError>(None),
                    };
                    add(Compared::Between { start: edge(start)?, end: edge(end)? });
                }
                Test::Contains(all) => {
                    for contained in all {
                        add(match contained {
                            Contained::Element(term) => {
                                Compared::Element(value(term, &first.name, bindings)?)
                            }
                            Contained::Key(term) => Compared::Key(value(term, &first.name, bindings)?),
                            Contained::Entry(key, entry) => Compared::Entry(
                                value(key, &first.name, bindings)?,
                                value(entry, &first.name, bindings)?,
                            ),
                        });
                    }
                }
            }
        }
        Ok(RowFilter { tests })
    }
}

fn value(term: &Term, name: &str, bindings: &Bindings<'_>) -> Result<Vec<u8>, QueryError> {
    match term.bind(bindings)? {
        Value::Set(bytes) => Ok(bytes.into_owned()),
        Value::Null => refuse!("Unsupported null value for column {name}"),
        Value::Unset => refuse!("Unsupported unset value for column {name}"),
    }
}

impl RowFilter {
    /// Does the row pass all tests? A null passes none.
    pub(crate) fn passes(&self, view: &RowView<'_>, scratch: &mut Vec<u8>) -> bool {
        self.tests.iter().all(|test| test.passes(view, scratch))
    }
}

impl BoundTest {
    fn passes(&self, view: &RowView<'_>, scratch: &mut Vec<u8>) -> bool {
        let of = &self.cql_type;
        match &self.test {
            Compared::Points(points) => {
                let Some(value) = view.value(self.source, scratch) else { return false };
                points.binary_search_by(|point| of.compare(point, value)).is_ok()
            }
            Compared::Between { start, end } => {
                let Some(value) = view.value(self.source, scratch) else { return false };
                let above = |(edge, is_inclusive): &(Vec<u8>, bool)| {
                    let order = of.compare(value, edge);
                    order.is_gt() || (*is_inclusive && order.is_eq())
                };
                let below = |(edge, is_inclusive): &(Vec<u8>, bool)| {
                    let order = of.compare(value, edge);
                    order.is_lt() || (*is_inclusive && order.is_eq())
                };
                start.as_ref().is_none_or(above) && end.as_ref().is_none_or(below)
            }
            Compared::Tuples(sources, tuples) => tuples.iter().any(|tuple| {
                sources.iter().zip(tuple).all(|((source, of), wanted)| {
                    view.value(*source, scratch).is_some_and(|value| of.compare(value, wanted).is_eq())
                })
            }),
            Compared::Element(_) | Compared::Key(_) | Compared::Entry(..) => self.contains(view, scratch),
        }
    }

    fn contains(&self, view: &RowView<'_>, scratch: &mut Vec<u8>) -> bool {
        any_element(view, self.source, &self.cql_type, scratch, |key, value| self.holds(key, value))
    }

    /// Is this the element looked for? `key` is given for maps.
    fn holds(&self, key: Option<&[u8]>, value: &[u8]) -> bool {
        let equal = |of: &CqlType, a: &[u8], b: &[u8]| of.compare(a, b).is_eq();
        match (&self.cql_type, &self.test) {
            (CqlType::List { element, .. } | CqlType::Set { element, .. }, Compared::Element(wanted)) => {
                equal(element, value, wanted)
            }
            (CqlType::Map { value: of, .. }, Compared::Element(wanted)) => equal(of, value, wanted),
            (CqlType::Map { key: of, .. }, Compared::Key(wanted)) => {
                key.is_some_and(|key| equal(of, key, wanted))
            }
            (CqlType::Map { key: key_type, value: value_type, .. }, Compared::Entry(wanted, held)) => {
                key.is_some_and(|key| equal(key_type, key, wanted)) && equal(value_type, value, held)
            }
            _ => false,
        }
    }
}

/// Is there an element of a collection that passes? It is given with its key, if it is a map's.
pub(crate) fn any_element(
    view: &RowView<'_>,
    source: Source,
    of: &CqlType,
    scratch: &mut Vec<u8>,
    passes: impl Fn(Option<&[u8]>, &[u8]) -> bool,
) -> bool {
    if let Some(ColumnData::Complex(complex)) = view.data(source) {
        let mut entries = complex.cells().map(|cell| (cell.path, cell.value));
        return match of {
            // The path of a list's cell is a time, of a set's the element.
            CqlType::Set { .. } => entries.any(|(path, _)| passes(None, path)),
            CqlType::List { .. } => entries.any(|(_, value)| passes(None, value)),
            _ => entries.any(|(path, value)| passes(Some(path), value)),
        };
    }
    let Some(value) = view.value(source, scratch) else { return false };
    let is_map = matches!(of, CqlType::Map { .. });
    let Ok(mut parts) = Parts::new(value, if is_map { 2 } else { 1 }) else { return false };
    while let Some(Ok(Some(part))) = parts.next() {
        let found = match is_map {
            false => passes(None, part),
            true => match parts.next() {
                Some(Ok(Some(value))) => passes(Some(part), value),
                _ => false,
            },
        };
        if found {
            return true;
        }
    }
    false
}
