//! Planned selectors: what is computed from a row, or from the rows of a group.

use std::borrow::Cow;
use std::sync::Arc;

use cql::ast::CellMetadata;
use rows::{CellRef, ColumnData};
use types::CqlType;
use types::encoding::{self, Fields, Parts};

use super::cells::RowView;
use super::rows::Source;
use crate::QueryError;
use crate::error::refuse;
use crate::functions::{AggregateFunction, AggregateState, ScalarFunction};
use crate::terms::{Bindings, Term, Value};

/// Something computed from a row.
#[derive(Clone, Debug)]
pub(crate) enum Selector {
    Column(Source),
    Term(Term),
    Metadata {
        what: CellMetadata,
        source: Source,
        cql_type: CqlType,
        part: Part,
    },
    Function(Arc<ScalarFunction>, Vec<Selector>),
    /// The value of the aggregate at this index.
    Aggregate(usize),
    /// A tuple, or the fields of a user type.
    Tuple(Vec<Selector>),
    List(Vec<Selector>),
    Set(CqlType, Vec<Selector>),
    Map(CqlType, Vec<(Selector, Selector)>),
    Vector(CqlType, Vec<Selector>),
    Field(Box<Selector>, usize),
    /// Of a set or map of this type.
    Element(Box<Selector>, CqlType, Term),
    Slice(Box<Selector>, CqlType, Option<Term>, Option<Term>),
}

/// Which cells of a column `writetime` and `ttl` ask about.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Whole,
    Element(Term),
    Slice(Option<Term>, Option<Term>),
    Field(u16),
}

/// An aggregate of a query, and what it aggregates.
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    pub(crate) function: Arc<AggregateFunction>,
    pub(crate) argument: Option<Selector>,
}

/// What selectors are computed from.
pub(crate) struct Evaluation<'a> {
    pub(crate) view: &'a RowView<'a>,
    pub(crate) bindings: &'a Bindings<'a>,
    /// Results of the aggregates; empty where there are none.
    pub(crate) aggregates: &'a [Option<Vec<u8>>],
    /// Seconds since 1970, for `ttl`.
    pub(crate) now: u32,
}

impl Aggregate {
    /// Takes one more row into the state.
    ///
    /// # Errors
    /// The argument can not be computed.
    pub(crate) fn add(
        &self,
        state: &mut AggregateState,
        evaluation: &Evaluation<'_>,
    ) -> Result<(), QueryError> {
        match &self.argument {
            None => state.add(None),
            Some(argument) => state.add(argument.evaluate(evaluation)?.as_deref()),
        }
    }
}

type Computed<'a> = Option<Cow<'a, [u8]>>;

impl Selector {
    /// The value in a row; `None` is null.
    ///
    /// # Errors
    /// A bound value is wrong, or a function fails.
    pub(crate) fn evaluate<'a>(&'a self, evaluation: &'a Evaluation<'a>) -> Result<Computed<'a>, QueryError> {
        Ok(match self {
            Selector::Column(source) => evaluation.view.owned_value(*source),
            Selector::Term(term) => match term.bind(evaluation.bindings)? {
                Value::Unset => refuse!("Invalid unset value for argument in the selection clause"),
                value => value.into_bytes(),
            },
            Selector::Metadata { what, source, cql_type, part } => {
                metadata(*what, evaluation, *source, cql_type, part)?.map(Cow::Owned)
            }
            Selector::Function(function, arguments) => {
                let values: Vec<Computed<'_>> = arguments
                    .iter()
                    .map(|argument| argument.evaluate(evaluation))
                    .collect::<Result<_, _>>()?;
                let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
                function.call(&values, evaluation.bindings.environment)?.map(Cow::Owned)
            }
            Selector::Aggregate(index) => {
                evaluation.aggregates.get(*index).and_then(Option::as_deref).map(Cow::Borrowed)
            }
            Selector::Tuple(parts) => {
                let values = evaluate_all(parts, evaluation)?;
                Some(Cow::Owned(encoding::tuple(values.iter().map(Option::as_deref))))
            }
            Selector::List(parts) => {
                let values = evaluate_all(parts, evaluation)?;
                Some(Cow::Owned(encoding::collection(values.len(), values.iter().map(Option::as_deref))))
            }
            Selector::Set(of, parts) => {
                let mut values: Vec<_> = evaluate_all(parts, evaluation)?.into_iter().flatten().collect();
                values.sort_by(|a, b| of.compare(a, b));
                values.dedup_by(|a, b| of.compare(a, b).is_eq());
                let parts = values.iter().map(|value| Some(&**value));
                Some(Cow::Owned(encoding::collection(values.len(), parts)))
            }
            Selector::Map(of, entries) => {
                let mut values = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    if let (Some(key), Some(value)) = (key.evaluate(evaluation)?, value.evaluate(evaluation)?)
                    {
                        values.push((key, value));
                    }
                }
                values.reverse();
                values.sort_by(|(a, _), (b, _)| of.compare(a, b));
                values.dedup_by(|(a, _), (b, _)| of.compare(a, b).is_eq());
                let parts = values.iter().flat_map(|(key, value)| [Some(&**key), Some(&**value)]);
                Some(Cow::Owned(encoding::collection(values.len(), parts)))
            }
            Selector::Vector(of, parts) => {
                let values: Option<Vec<_>> = evaluate_all(parts, evaluation)?.into_iter().collect();
                values.map(|values| Cow::Owned(encoding::vector(of, values.iter().map(|value| &**value))))
            }
            Selector::Field(inner, index) => {
                let Some(value) = inner.evaluate(evaluation)? else { return Ok(None) };
                let field = Fields::new(&value).map_while(Result::ok).nth(*index).flatten();
                field.map(|field| Cow::Owned(field.to_vec()))
            }
            Selector::Element(inner, of, key) => {
                let key = bind_key(key, evaluation)?;
                let Some(value) = inner.evaluate(evaluation)? else { return Ok(None) };
                find_element(of, &value, &key).map(|found| Cow::Owned(found.to_vec()))
            }
            Selector::Slice(inner, of, from, to) => {
                let (from, to) = (bind_edge(from, evaluation)?, bind_edge(to, evaluation)?);
                let Some(value) = inner.evaluate(evaluation)? else { return Ok(None) };
                slice_of(of, &value, from.as_deref(), to.as_deref()).map(Cow::Owned)
            }
        })
    }
}

fn evaluate_all<'a>(
    parts: &'a [Selector],
    evaluation: &'a Evaluation<'a>,
) -> Result<Vec<Computed<'a>>, QueryError> {
    parts.iter().map(|part| part.evaluate(evaluation)).collect()
}

fn bind_key<'a>(term: &'a Term, evaluation: &'a Evaluation<'_>) -> Result<Cow<'a, [u8]>, QueryError> {
    match term.bind(evaluation.bindings)? {
        Value::Set(key) => Ok(key),
        Value::Null => refuse!("Invalid null value for element selection"),
        Value::Unset => refuse!("Invalid unset value for element selection"),
    }
}

fn bind_edge<'a>(
    term: &'a Option<Term>,
    evaluation: &'a Evaluation<'_>,
) -> Result<Option<Cow<'a, [u8]>>, QueryError> {
    let Some(term) = term else { return Ok(None) };
    match term.bind(evaluation.bindings)? {
        Value::Set(edge) => Ok(Some(edge)),
        Value::Null => refuse!("Invalid null value for slice selection"),
        Value::Unset => Ok(None),
    }
}

/// The type by which entries are found: elements of a set, keys of a map.
fn key_type(of: &CqlType) -> Option<&CqlType> {
    match of {
        CqlType::Set { element, .. } => Some(element),
        CqlType::Map { key, .. } => Some(key),
        _ => None,
    }
}

fn find_element<'a>(of: &CqlType, value: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let by = key_type(of)?;
    let is_map = matches!(of, CqlType::Map { .. });
    let mut parts = Parts::new(value, if is_map { 2 } else { 1 }).ok()?;
    while let Some(Ok(Some(key))) = parts.next() {
        let held = if is_map { parts.next()?.ok()?? } else { key };
        if by.compare(key, wanted).is_eq() {
            return Some(held);
        }
    }
    None
}

/// The entries between two keys, both included; none of them is null.
fn slice_of(of: &CqlType, value: &[u8], from: Option<&[u8]>, to: Option<&[u8]>) -> Option<Vec<u8>> {
    let by = key_type(of)?;
    let is_map = matches!(of, CqlType::Map { .. });
    let mut parts = Parts::new(value, if is_map { 2 } else { 1 }).ok()?;
    let (mut kept, mut count) = (Vec::new(), 0);
    while let Some(Ok(Some(key))) = parts.next() {
        let held = if is_map { Some(parts.next()?.ok()??) } else { None };
        let inside = from.is_none_or(|from| by.compare(key, from).is_ge())
            && to.is_none_or(|to| by.compare(key, to).is_le());
        if inside {
            count += 1;
            kept.push(Some(key));
            kept.extend(held.map(Some));
        }
    }
    Some(encoding::collection(count, kept))
}

/// `writetime`, `maxwritetime` and `ttl`.
fn metadata(
    what: CellMetadata,
    evaluation: &Evaluation<'_>,
    source: Source,
    of: &CqlType,
    part: &Part,
) -> Result<Option<Vec<u8>>, QueryError> {
    let cells: Vec<CellRef<'_>> = match evaluation.view.data(source) {
        None => return Ok(None),
        Some(ColumnData::Simple(cell)) => {
            return Ok(match part {
                Part::Element(key) => {
                    let key = bind_key(key, evaluation)?;
                    find_element(of, cell.value, &key).and_then(|_| one(what, &cell, evaluation.now))
                }
                _ => one(what, &cell, evaluation.now),
            });
        }
        // A counter shows one time: that of its last share.
        Some(ColumnData::Complex(shares)) if *of == CqlType::Counter => {
            let last = shares.cells().max_by_key(|share| share.timestamp);
            return Ok(last.and_then(|share| one(what, &share, evaluation.now)));
        }
        Some(ColumnData::Complex(complex)) => complex.cells().collect(),
    };
    let compare = |path: &[u8], key: &[u8]| match key_type(of) {
        Some(by) => by.compare(path, key),
        None => path.cmp(key),
    };
    let kept: Vec<CellRef<'_>> = match part {
        Part::Whole => cells,
        Part::Field(index) => {
            let found = cells.iter().find(|cell| cell.path == index.to_be_bytes());
            return Ok(found.and_then(|cell| one(what, cell, evaluation.now)));
        }
        Part::Element(key) => {
            let key = bind_key(key, evaluation)?;
            let found = cells.iter().find(|cell| compare(cell.path, &key).is_eq());
            return Ok(found.and_then(|cell| one(what, cell, evaluation.now)));
        }
        Part::Slice(from, to) => {
            let (from, to) = (bind_edge(from, evaluation)?, bind_edge(to, evaluation)?);
            let inside = |cell: &CellRef<'_>| {
                from.as_deref().is_none_or(|from| compare(cell.path, from).is_ge())
                    && to.as_deref().is_none_or(|to| compare(cell.path, to).is_le())
            };
            cells.into_iter().filter(inside).collect()
        }
    };
    if what == CellMetadata::MaxWriteTime {
        return Ok(kept.iter().map(|cell| cell.timestamp).max().map(|max| max.to_be_bytes().to_vec()));
    }
    if let (CqlType::UserDefined { definition, .. }, Part::Whole) = (of, part) {
        let of_field = |index: usize| {
            let path = u16::try_from(index).unwrap_or(u16::MAX).to_be_bytes();
            kept.iter().find(|cell| cell.path == path).and_then(|cell| one(what, cell, evaluation.now))
        };
        let values: Vec<Option<Vec<u8>>> = (0..definition.fields.len()).map(of_field).collect();
        let parts = values.iter().map(Option::as_deref);
        return Ok((!kept.is_empty()).then(|| encoding::collection(values.len(), parts)));
    }
    let values: Vec<Option<Vec<u8>>> = kept.iter().map(|cell| one(what, cell, evaluation.now)).collect();
    let list = encoding::collection(values.len(), values.iter().map(Option::as_deref));
    Ok((!values.is_empty()).then_some(list))
}

fn one(what: CellMetadata, cell: &CellRef<'_>, now: u32) -> Option<Vec<u8>> {
    match what {
        CellMetadata::WriteTime | CellMetadata::MaxWriteTime => Some(cell.timestamp.to_be_bytes().to_vec()),
        CellMetadata::TimeToLive if cell.is_expiring() => {
            let left = cell.local_deletion_time.saturating_sub(now);
            Some(i32::try_from(left).unwrap_or(i32::MAX).to_be_bytes().to_vec())
        }
        CellMetadata::TimeToLive => None,
    }
}
