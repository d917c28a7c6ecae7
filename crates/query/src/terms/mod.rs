//! Terms: constants checked and encoded when a statement is planned, markers filled in when it is
//! executed.

mod assign;
mod constant;
pub(crate) mod json;
mod plan;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use runtime::{Io, Runtime};
use types::{CqlType, TypeError, encoding};

use crate::error::refuse;
use crate::functions::{Environment, ScalarFunction};
use crate::request::BindValue;
use crate::{ColumnSpec, QueryError, Values};

pub(crate) use assign::{Assignable, test as test_assignment, test_type};
pub(crate) use constant::{append_fitting, plan_fitting, preferred_type};

/// A planned term.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    /// Encoded.
    Constant(Bytes),
    Null,
    Marker {
        index: usize,
        cql_type: CqlType,
    },
    List(Vec<Term>),
    /// Sorted and without doubles when bound.
    Set(CqlType, Vec<Term>),
    /// Sorted by key, the last of equal ones winning, when bound.
    Map(CqlType, Vec<(Term, Term)>),
    /// A tuple, or the fields of a user type.
    Tuple(Vec<Term>),
    Vector(CqlType, Vec<Term>),
    Function(Arc<ScalarFunction>, Vec<Term>),
    /// A column's value out of a JSON text that is bound to a marker.
    Json(Arc<JsonMarker>),
}

/// A column's value out of a JSON text.
#[derive(Clone, Debug)]
pub(crate) struct JsonMarker {
    pub(crate) index: usize,
    pub(crate) column: String,
    pub(crate) cql_type: CqlType,
    /// Is what the text does not mention left as it is?
    pub(crate) defaults_to_unset: bool,
    /// All columns of the table, to refuse others.
    pub(crate) columns: Arc<[String]>,
}

/// What a term comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Unset,
    Set(Cow<'a, [u8]>),
}

impl<'a> Value<'a> {
    /// The bytes; unset counts as null.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Set(bytes) => Some(bytes),
            Value::Null | Value::Unset => None,
        }
    }

    pub(crate) fn into_bytes(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Value::Set(bytes) => Some(bytes),
            Value::Null | Value::Unset => None,
        }
    }
}

/// Longer texts and values are looked at on another thread: shorter ones take a few milliseconds at most.
const LOOKED_AT_HERE_BYTES_MAX: usize = 64 << 10;

/// Is a text or a value so long that another thread had better look at it?
pub(crate) fn is_long(bytes: &[u8]) -> bool {
    are_long(bytes.len())
}

/// Are texts or values of so many bytes?
pub(crate) fn are_long(bytes: usize) -> bool {
    bytes > LOOKED_AT_HERE_BYTES_MAX
}

/// JSON that was bound to markers, by these.
type Documents = BTreeMap<usize, Arc<json::Members>>;

/// Bound values and the world functions see.
pub(crate) struct Bindings<'a> {
    values: Cow<'a, [BindValue]>,
    pub(crate) environment: &'a Environment<'a>,
    /// JSON that was bound to markers: each column takes its part of it.
    documents: RefCell<Documents>,
    /// What was read of it before, by [`Bindings::arrange`].
    read: RefCell<BTreeMap<usize, Result<json::Json, QueryError>>>,
}

impl<'a> Bindings<'a> {
    /// Values for markers of these specifications.
    ///
    /// # Errors
    /// There are more or fewer than markers.
    pub(crate) fn new(
        values: &'a Values,
        specs: &[ColumnSpec],
        environment: &'a Environment<'a>,
    ) -> Result<Self, MarkerCountError> {
        let values = match values {
            Values::Positional(values) => Cow::Borrowed(values.as_slice()),
            Values::Named(values) => Cow::Owned(order_by_name(values, specs)),
        };
        match values.len() == specs.len() {
            true => Ok(Bindings::over(values, environment)),
            false => Err(MarkerCountError { markers: specs.len(), values: values.len() }),
        }
    }

    /// No values: for terms without markers.
    pub(crate) fn none(environment: &'a Environment<'a>) -> Self {
        Bindings::over(Cow::Borrowed(&[]), environment)
    }

    /// These values, one for each marker.
    pub(crate) fn of_markers(values: Vec<BindValue>, environment: &'a Environment<'a>) -> Self {
        Bindings::over(Cow::Owned(values), environment)
    }

    /// Has long work done with the same bindings on another thread.
    pub(crate) async fn elsewhere<T: Send + 'static>(
        &self,
        runtime: &Runtime,
        work: impl FnOnce(&Bindings<'_>) -> T + Send + 'static,
    ) -> T {
        let (values, documents) = (self.values.to_vec(), self.documents.borrow().clone());
        let (clock, random) = (Arc::clone(&runtime.clock), Arc::clone(&runtime.random));
        let working = move || {
            let environment = Environment::new(&*clock, &*random);
            let bindings = Bindings::of_markers(values, &environment);
            bindings.documents.replace(documents);
            work(&bindings)
        };
        runtime.io.run(working).await
    }

    fn over(values: Cow<'a, [BindValue]>, environment: &'a Environment<'a>) -> Self {
        Bindings { values, environment, documents: RefCell::default(), read: RefCell::default() }
    }

    /// The JSON bound to that marker, which `parse` makes of it once, or of what was read of it.
    fn document(
        &self,
        index: usize,
        parse: impl FnOnce(Option<Result<json::Json, QueryError>>) -> Result<json::Members, QueryError>,
    ) -> Result<Arc<json::Members>, QueryError> {
        if let Some(document) = self.documents.borrow().get(&index) {
            return Ok(Arc::clone(document));
        }
        let read = self.read.borrow_mut().remove(&index);
        let document = Arc::new(parse(read)?);
        self.documents.borrow_mut().insert(index, Arc::clone(&document));
        Ok(document)
    }

    /// Has long sets and maps brought in order and long JSON read on another thread: of a million elements that takes a
    /// quarter of a second. Short ones are when they are bound, and what is wrong is refused then.
    pub(crate) async fn arrange(&mut self, specs: &[ColumnSpec], io: &Io) {
        if self.values.iter().any(|value| long(value).is_some()) {
            Box::pin(self.arrange_long(specs, io)).await;
        }
    }

    async fn arrange_long(&mut self, specs: &[ColumnSpec], io: &Io) {
        for (index, spec) in specs.iter().enumerate() {
            let Some(bytes) = long(&self.values[index]).cloned() else { continue };
            if spec.cql_type.may_be_out_of_order() {
                let of = spec.cql_type.clone();
                let arranging = io.run(move || of.validate(&bytes).ok().and_then(|()| of.canonical(&bytes)));
                if let Some(arranged) = arranging.await {
                    self.values.to_mut()[index] = BindValue::Set(arranged.into());
                }
            } else if *spec.name == *json::MARKER_NAME {
                let read = json::read(bytes, io).await;
                self.read.borrow_mut().insert(index, read);
            }
        }
    }

    /// Bytes of all values.
    pub(crate) fn value_bytes(&self) -> usize {
        let bytes = |value: &BindValue| if let BindValue::Set(bytes) = value { bytes.len() + 16 } else { 8 };
        self.values.iter().map(bytes).sum()
    }

    /// The value of a marker, unchecked.
    pub(crate) fn raw(&self, index: usize) -> &BindValue {
        self.values.get(index).unwrap_or(&BindValue::Unset)
    }
}

/// The bytes of a value that is long.
fn long(value: &BindValue) -> Option<&Bytes> {
    match value {
        BindValue::Set(bytes) => Some(bytes).filter(|bytes| is_long(bytes)),
        BindValue::Null | BindValue::Unset => None,
    }
}

/// There are not as many values as markers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkerCountError {
    pub(crate) markers: usize,
    pub(crate) values: usize,
}

/// Named values in the order of their markers; of several of one name the first. As Cassandra: what no value is named
/// for is left out, and so the count differs.
fn order_by_name(values: &[(String, BindValue)], specs: &[ColumnSpec]) -> Vec<BindValue> {
    let by_name: HashMap<&str, &BindValue> =
        values.iter().rev().map(|(name, value)| (name.as_str(), value)).collect();
    specs.iter().filter_map(|spec| by_name.get(&*spec.name).map(|value| (*value).clone())).collect()
}

impl From<TypeError> for QueryError {
    fn from(error: TypeError) -> Self {
        QueryError::invalid(error.to_string())
    }
}

impl Term {
    /// The value under these bindings, checked to be of its type.
    ///
    /// # Errors
    /// A bound value is not of its type, or a null or unset one stands where it must not.
    pub(crate) fn bind<'a>(&'a self, bindings: &'a Bindings<'_>) -> Result<Value<'a>, QueryError> {
        match self {
            Term::Constant(bytes) => Ok(Value::Set(Cow::Borrowed(bytes))),
            Term::Null => Ok(Value::Null),
            Term::Marker { index, cql_type } => match bindings.raw(*index) {
                BindValue::Null => Ok(Value::Null),
                BindValue::Unset => Ok(Value::Unset),
                BindValue::Set(bytes) => {
                    cql_type.validate(bytes)?;
                    let canonical = cql_type.canonical(bytes);
                    Ok(Value::Set(canonical.map_or(Cow::Borrowed(&**bytes), Cow::Owned)))
                }
            },
            Term::List(elements) => bind_list(elements, bindings),
            Term::Set(of, elements) => bind_set(of, elements, bindings),
            Term::Map(of, entries) => bind_map(of, entries, bindings),
            Term::Tuple(fields) => bind_tuple(fields, bindings),
            Term::Vector(of, elements) => bind_vector(of, elements, bindings),
            Term::Json(marker) => json::bind(marker, bindings),
            Term::Function(function, arguments) => {
                let mut bound = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    bound.push(match argument.bind(bindings)? {
                        Value::Unset => refuse!(
                            "Invalid unset value for argument in call to function {}",
                            function.bare_name()
                        ),
                        value => value.into_bytes(),
                    });
                }
                let arguments: Vec<Option<&[u8]>> = bound.iter().map(Option::as_deref).collect();
                let result = function.call(&arguments, bindings.environment)?;
                Ok(result.map_or(Value::Null, |bytes| Value::Set(Cow::Owned(bytes))))
            }
        }
    }

    /// As [`Term::bind`], as a handle that shares the memory of the frame or the plan where it can:
    /// for values that do not outlive the request.
    ///
    /// # Errors
    /// As [`Term::bind`]; `None` is null or unset.
    pub(crate) fn bind_shared(&self, bindings: &Bindings<'_>) -> Result<Option<Bytes>, QueryError> {
        match self {
            Term::Constant(bytes) => Ok(Some(bytes.clone())),
            Term::Marker { index, cql_type } => match bindings.raw(*index) {
                BindValue::Set(bytes) => {
                    cql_type.validate(bytes)?;
                    Ok(Some(cql_type.canonical(bytes).map_or_else(|| bytes.clone(), Bytes::from)))
                }
                BindValue::Null | BindValue::Unset => Ok(None),
            },
            other => Ok(other.bind(bindings)?.into_bytes().map(|bytes| bytes.into_owned().into())),
        }
    }

    /// Of a marker whose value is stored as it is sent, once it is [valid](CqlType::validate): which one, and its type.
    pub(crate) fn plain_marker(&self) -> Option<(usize, &CqlType)> {
        match self {
            Term::Marker { index, cql_type } if !cql_type.may_be_out_of_order() => Some((*index, cql_type)),
            _ => None,
        }
    }

    /// Is its value stored as it is written or sent?
    pub(crate) fn is_plain(&self) -> bool {
        self.is_constant() || self.plain_marker().is_some()
    }

    /// How much there is to bind beside what markers are bound to, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        const TERM_BYTES: usize = 16;
        let all = |terms: &[Term]| terms.iter().map(Term::bytes).sum::<usize>();
        TERM_BYTES
            + match self {
                Term::Constant(bytes) => bytes.len(),
                Term::Null | Term::Marker { .. } | Term::Json(_) => 0,
                Term::List(terms) | Term::Tuple(terms) => all(terms),
                Term::Set(_, terms) | Term::Vector(_, terms) | Term::Function(_, terms) => all(terms),
                Term::Map(_, entries) => entries.iter().map(|(key, value)| key.bytes() + value.bytes()).sum(),
            }
    }

    /// Is its value known without bindings?
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Term::Constant(_) | Term::Null)
    }
}

const NULL_IN_COLLECTION: &str = "null is not supported inside collections";

/// The values of all elements; `None` when one of them is unset, which leaves the whole unset.
fn bind_elements<'a>(
    elements: &'a [Term],
    bindings: &'a Bindings<'_>,
    null_refused: &str,
) -> Result<Option<Vec<Cow<'a, [u8]>>>, QueryError> {
    let mut values = Vec::with_capacity(elements.len());
    for element in elements {
        match element.bind(bindings)? {
            Value::Null => refuse!("{null_refused}"),
            Value::Unset => return Ok(None),
            Value::Set(value) => values.push(value),
        }
    }
    Ok(Some(values))
}

fn bind_list<'a>(elements: &'a [Term], bindings: &'a Bindings<'_>) -> Result<Value<'a>, QueryError> {
    let Some(values) = bind_elements(elements, bindings, NULL_IN_COLLECTION)? else {
        return Ok(Value::Unset);
    };
    Ok(Value::Set(Cow::Owned(encoding::collection(values.len(), values.iter().map(|v| Some(&**v))))))
}

fn bind_set<'a>(
    of: &CqlType,
    elements: &'a [Term],
    bindings: &'a Bindings<'_>,
) -> Result<Value<'a>, QueryError> {
    let Some(mut values) = bind_elements(elements, bindings, NULL_IN_COLLECTION)? else {
        return Ok(Value::Unset);
    };
    values.sort_by(|a, b| of.compare(a, b));
    values.dedup_by(|a, b| of.compare(a, b).is_eq());
    Ok(Value::Set(Cow::Owned(encoding::collection(values.len(), values.iter().map(|v| Some(&**v))))))
}

fn bind_map<'a>(
    of: &CqlType,
    entries: &'a [(Term, Term)],
    bindings: &'a Bindings<'_>,
) -> Result<Value<'a>, QueryError> {
    let mut values = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let key = match key.bind(bindings)? {
            Value::Null => refuse!("{NULL_IN_COLLECTION}"),
            Value::Unset => refuse!("unset value is not supported for map keys"),
            Value::Set(key) => key,
        };
        match value.bind(bindings)? {
            Value::Null => refuse!("{NULL_IN_COLLECTION}"),
            Value::Unset => return Ok(Value::Unset),
            Value::Set(value) => values.push((key, value)),
        }
    }
    values.reverse();
    values.sort_by(|(a, _), (b, _)| of.compare(a, b));
    values.dedup_by(|(a, _), (b, _)| of.compare(a, b).is_eq());
    let parts = values.iter().flat_map(|(key, value)| [Some(&**key), Some(&**value)]);
    Ok(Value::Set(Cow::Owned(encoding::collection(values.len(), parts))))
}

fn bind_tuple<'a>(fields: &'a [Term], bindings: &'a Bindings<'_>) -> Result<Value<'a>, QueryError> {
    let mut out = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        match field.bind(bindings)? {
            Value::Unset => refuse!("Invalid unset value for tuple field number {index}"),
            value => encoding::write_bytes(value.bytes(), &mut out),
        }
    }
    Ok(Value::Set(Cow::Owned(out)))
}

fn bind_vector<'a>(
    of: &CqlType,
    elements: &'a [Term],
    bindings: &'a Bindings<'_>,
) -> Result<Value<'a>, QueryError> {
    let Some(values) = bind_elements(elements, bindings, "null is not supported inside vectors")? else {
        return Ok(Value::Unset);
    };
    Ok(Value::Set(Cow::Owned(encoding::vector(of, values.iter().map(|v| &**v)))))
}

pub(crate) use plan::plan;
