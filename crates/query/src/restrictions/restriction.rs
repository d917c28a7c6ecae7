//! One restriction: what is asked of one column, or of several clustering columns together.

use std::sync::Arc;

use schema::ColumnId;
use types::CqlType;
use types::encoding::{Fields, Parts};

use super::product::{COMBINATIONS_MAX, too_many};
use crate::QueryError;
use crate::error::refuse;
use crate::request::BindValue;
use crate::terms::{Bindings, Term, Value};

/// A column that is restricted, with what is needed of it when values are bound.
#[derive(Clone, Debug)]
pub(crate) struct Restricted {
    pub(crate) id: ColumnId,
    /// Its place in the partition key or the clustering; 0 for other columns.
    pub(crate) position: usize,
    pub(crate) name: Arc<str>,
    pub(crate) cql_type: CqlType,
}

/// What is asked of some columns.
#[derive(Clone, Debug)]
pub(crate) struct Restriction {
    /// At least one; several only of a tuple relation on clustering columns, then in a row.
    pub(crate) columns: Vec<Restricted>,
    /// Was it written as a tuple?
    pub(crate) is_tuple: bool,
    pub(crate) test: Test,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Equal(Values),
    In(Vec<Values>),
    /// One marker for the whole list.
    InMarker(usize),
    Slice {
        start: Option<Edge>,
        end: Option<Edge>,
    },
    Contains(Vec<Contained>),
}

/// One end of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) values: Values,
    pub(crate) is_inclusive: bool,
}

/// What a collection must contain.
#[derive(Clone, Debug)]
pub(crate) enum Contained {
    Element(Term),
    Key(Term),
    Entry(Term, Term),
}

/// Values for the columns of a restriction.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    /// One for each column.
    Terms(Vec<Term>),
    /// A marker for a tuple of all.
    TupleMarker(usize),
}

/// Bound values of a tuple; nulls and unset ones are refused before.
pub(crate) type Point = Vec<Vec<u8>>;

impl Restriction {
    pub(crate) fn first(&self) -> &Restricted {
        &self.columns[0]
    }

    pub(crate) fn last_position(&self) -> usize {
        self.columns.last().map_or(0, |column| column.position)
    }

    pub(crate) fn is_slice(&self) -> bool {
        matches!(self.test, Test::Slice { .. })
    }

    pub(crate) fn is_contains(&self) -> bool {
        matches!(self.test, Test::Contains(_))
    }

    pub(crate) fn is_equal(&self) -> bool {
        matches!(self.test, Test::Equal(_))
    }

    pub(crate) fn is_in(&self) -> bool {
        matches!(self.test, Test::In(_) | Test::InMarker(_))
    }

    /// The values of an equality or IN on columns that are called `what`.
    ///
    /// # Errors
    /// A value is null, unset or not of its type, or there are too many.
    pub(crate) fn bind_points(&self, what: &str, bindings: &Bindings<'_>) -> Result<Vec<Point>, QueryError> {
        match &self.test {
            Test::Equal(values) => Ok(vec![self.bind(values, bindings)?]),
            Test::In(list) if list.len() > COMBINATIONS_MAX => Err(too_many(what, list.len())),
            Test::In(list) => list.iter().map(|values| self.bind(values, bindings)).collect(),
            Test::InMarker(index) => self.bind_in_marker(*index, what, bindings),
            Test::Slice { .. } | Test::Contains(_) => Ok(Vec::new()),
        }
    }

    /// The values at one place.
    ///
    /// # Errors
    /// A value is null, unset or not of its type.
    pub(crate) fn bind(&self, values: &Values, bindings: &Bindings<'_>) -> Result<Point, QueryError> {
        match values {
            Values::Terms(terms) => terms
                .iter()
                .zip(&self.columns)
                .map(|(term, column)| bind_one(term, column, bindings))
                .collect(),
            Values::TupleMarker(index) => match bindings.raw(*index) {
                BindValue::Set(bytes) => self.split_tuple(bytes),
                BindValue::Null => {
                    refuse!("Invalid null value in condition for columns: {}", self.name_list())
                }
                BindValue::Unset => refuse!("Invalid unset value for tuple {}", self.tuple_name()),
            },
        }
    }

    /// Is the edge of a slice of one column bound to null? Cassandra takes that, unlike in a tuple
    /// or an equality.
    pub(crate) fn binds_null(&self, edge: &Edge, bindings: &Bindings<'_>) -> Result<bool, QueryError> {
        match &edge.values {
            Values::Terms(terms) if !self.is_tuple => Ok(terms[0].bind(bindings)? == Value::Null),
            _ => Ok(false),
        }
    }

    fn bind_in_marker(
        &self,
        index: usize,
        what: &str,
        bindings: &Bindings<'_>,
    ) -> Result<Vec<Point>, QueryError> {
        let name = &self.first().name;
        let list = match bindings.raw(index) {
            BindValue::Set(list) => list,
            BindValue::Null if self.is_tuple => refuse!("Invalid null value for IN restriction"),
            BindValue::Null => refuse!("Invalid null value for column {name}"),
            BindValue::Unset => refuse!("Invalid unset value for column {name}"),
        };
        let mut points = Vec::new();
        each_of_list(list, |part, left| {
            let Some(part) = part else { refuse!("Invalid null value in condition for column {name}") };
            let means_null = |of: &CqlType| part.is_empty() && of.empty_is_meaningless();
            if !self.is_tuple && means_null(&self.first().cql_type) {
                refuse!("Invalid null value in condition for column {name}");
            }
            if self.is_tuple {
                points.push(self.split_tuple(part)?);
            } else {
                self.first().cql_type.validate(part)?;
                points.push(vec![part.to_vec()]);
            }
            if points.len() > COMBINATIONS_MAX {
                return Err(too_many(what, points.len() + usize::try_from(left).unwrap_or(0)));
            }
            Ok(())
        })?;
        Ok(points)
    }

    fn split_tuple(&self, tuple: &[u8]) -> Result<Point, QueryError> {
        let mut bound = Vec::with_capacity(self.columns.len());
        let mut fields = Fields::new(tuple);
        for column in &self.columns {
            match fields.next() {
                Some(Ok(Some(value))) => {
                    column.cql_type.validate(value)?;
                    bound.push(value.to_vec());
                }
                Some(Ok(None)) | None => {
                    refuse!("Invalid null value in condition for column {}", column.name)
                }
                Some(Err(_)) => refuse!("Not enough bytes to read {}th component", bound.len()),
            }
        }
        if !fields.rest().is_empty() {
            refuse!(
                "Tuple value contained too many fields (expected {}, got {})",
                self.columns.len(),
                self.columns.len() + fields.count()
            );
        }
        Ok(bound)
    }

    /// `a, b`
    pub(crate) fn names(&self) -> String {
        self.columns.iter().map(|column| &*column.name).collect::<Vec<_>>().join(", ")
    }

    fn name_list(&self) -> String {
        format!("[{}]", self.names())
    }

    fn tuple_name(&self) -> String {
        format!("({})", self.columns.iter().map(|column| &*column.name).collect::<Vec<_>>().join(","))
    }
}

fn bind_one(term: &Term, column: &Restricted, bindings: &Bindings<'_>) -> Result<Vec<u8>, QueryError> {
    match term.bind(bindings)? {
        Value::Set(bytes) => Ok(bytes.into_owned()),
        Value::Null => refuse!("Invalid null value in condition for column {}", column.name),
        Value::Unset => refuse!("Invalid unset value for column {}", column.name),
    }
}

/// Gives `take` each element of a list that is bound as a whole, and how many come behind it.
///
/// # Errors
/// Those of `take`, or the bytes are not those of a list.
pub(crate) fn each_of_list(
    list: &[u8],
    mut take: impl FnMut(Option<&[u8]>, u64) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let short = |_| QueryError::invalid("Not enough bytes to read a list");
    let mut parts = Parts::new(list, 1).map_err(short)?;
    while let Some(part) = parts.next() {
        take(part.map_err(short)?, parts.left())?;
    }
    if !parts.rest().is_empty() {
        refuse!("Unexpected extraneous bytes after list value");
    }
    Ok(())
}
