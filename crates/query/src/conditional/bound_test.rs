//! Tests of columns with their values, held against rows.

use cql::ast::Operator;
use rows::{ColumnData, ComplexRef};
use types::CqlType;
use types::encoding::{Fields, Parts};

use super::plan::{ColumnTest, Part, Wanted};
use crate::QueryError;
use crate::error::refuse;
use crate::request::BindValue;
use crate::restrictions::{any_element, each_of_list, symbol};
use crate::select::{RowView, Source};
use crate::terms::{Bindings, Term, Value};

/// A value; `None` is null.
type Held = Option<Vec<u8>>;

/// A test with its values.
#[derive(Debug)]
pub(crate) struct BoundTest<'p> {
    pub(super) test: &'p ColumnTest,
    place: Place,
    /// One of these is wanted.
    wanted: Vec<Held>,
}

/// Where the tested value is in that of the column.
#[derive(Debug)]
enum Place {
    Whole,
    /// In a list.
    Index(i32),
    /// In a map.
    Key(Vec<u8>),
    /// In a user type.
    Field(usize),
    /// Nowhere: the element is asked for by null.
    Null,
}

impl<'p> BoundTest<'p> {
    /// The test with these values.
    ///
    /// # Errors
    /// A value is not of its type, or unset.
    pub(crate) fn new(test: &'p ColumnTest, bindings: &Bindings<'_>) -> Result<Self, QueryError> {
        let place = match &test.part {
            Part::Whole => Place::Whole,
            Part::Field(index) => Place::Field(*index),
            Part::Element(place) => match (bind(place, bindings)?, &test.cql_type) {
                (None, _) => Place::Null,
                (Some(key), CqlType::Map { .. }) => Place::Key(key),
                (Some(index), _) => {
                    index.try_into().map_or(Place::Null, |i| Place::Index(i32::from_be_bytes(i)))
                }
            },
        };
        let wanted = match &test.wanted {
            Wanted::One(term) => vec![bind(term, bindings)?],
            // Of several values those that are unset are left out.
            Wanted::OneOf(terms) => {
                let mut wanted = Vec::with_capacity(terms.len());
                for term in terms {
                    match term.bind(bindings)? {
                        Value::Unset => {}
                        value => wanted.push(value.into_bytes().map(|bytes| bytes.into_owned())),
                    }
                }
                wanted
            }
            Wanted::OneOfMarker(index) => bind_list(*index, test.compared_type(), bindings)?,
        };
        Ok(BoundTest { test, place, wanted })
    }

    /// Does it hold for the row that the view shows? `None` when there is no row: then every value is null.
    ///
    /// # Errors
    /// Values are wanted that nothing can be compared with.
    pub(crate) fn holds(&self, row: Option<(&RowView<'_>, Source)>) -> Result<bool, QueryError> {
        let mut scratch = Vec::new();
        if let Place::Null = self.place {
            let of = if matches!(self.test.cql_type, CqlType::Map { .. }) { "map" } else { "list" };
            refuse!("Invalid null value for {of} element access");
        }
        if let Operator::Contains | Operator::ContainsKey = self.test.operator {
            return self.contains(row, &mut scratch);
        }
        let value = match row {
            Some((view, source)) => self.value(view, source, &mut scratch)?,
            None => None,
        };
        for wanted in &self.wanted {
            if self.compare(value.as_deref(), wanted.as_deref())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The value that is tested.
    ///
    /// # Errors
    /// The index of a list's element is negative.
    fn value(&self, view: &RowView<'_>, source: Source, scratch: &mut Vec<u8>) -> Result<Held, QueryError> {
        if let Place::Index(index @ i32::MIN..0) = self.place {
            refuse!("Invalid negative list index {index}");
        }
        Ok(match view.data(source) {
            Some(ColumnData::Complex(cells)) if !matches!(self.place, Place::Whole) => self.in_cells(cells),
            _ => view.value(source, scratch).and_then(|whole| self.in_value(whole)),
        })
    }

    /// The part that is tested, among the cells that a column is stored in.
    fn in_cells(&self, cells: ComplexRef<'_>) -> Held {
        let mut cells = cells.cells();
        let field = |path: &[u8]| path.try_into().map_or(usize::MAX, |path| u16::from_be_bytes(path).into());
        let cell = match &self.place {
            Place::Index(index) => cells.nth(usize::try_from(*index).ok()?),
            Place::Key(key) => cells.find(|cell| self.is_key(cell.path, key)),
            Place::Field(index) => cells.find(|cell| field(cell.path) == *index),
            Place::Whole | Place::Null => None,
        };
        cell.map(|cell| cell.value.to_vec())
    }

    /// The part that is tested, in a value that is stored as one.
    fn in_value(&self, whole: &[u8]) -> Held {
        match &self.place {
            Place::Whole => Some(whole.to_vec()),
            Place::Index(index) => parts(whole, 1).nth(usize::try_from(*index).ok()?),
            Place::Key(wanted) => {
                let mut all = parts(whole, 2);
                while let (Some(key), Some(value)) = (all.next(), all.next()) {
                    if self.is_key(&key, wanted) {
                        return Some(value);
                    }
                }
                None
            }
            Place::Field(index) => {
                Fields::new(whole).map_while(Result::ok).nth(*index).flatten().map(<[u8]>::to_vec)
            }
            Place::Null => None,
        }
    }

    fn is_key(&self, key: &[u8], wanted: &[u8]) -> bool {
        let CqlType::Map { key: of, .. } = &self.test.cql_type else { return false };
        of.compare(key, wanted).is_eq()
    }

    /// Is the value, by the operator, what is wanted? Nothing is less or greater than null.
    fn compare(&self, value: Option<&[u8]>, wanted: Option<&[u8]>) -> Result<bool, QueryError> {
        let operator = self.test.operator;
        let of = self.test.compared_type();
        // A collection that is stored cell by cell has no cells when it is empty, and so is null.
        let is_whole = matches!(self.place, Place::Whole);
        let empty = wanted.filter(|wanted| is_whole && of.is_multi_cell() && is_empty_collection(of, wanted));
        let wanted = if empty.is_some() { None } else { wanted };
        let Some(wanted) = wanted else {
            return match (operator, empty) {
                (Operator::Equal, _) => Ok(value.is_none()),
                (Operator::NotEqual, _) => Ok(value.is_some()),
                (_, None) => {
                    refuse!("Invalid comparison with null for operator \"{}\"", symbol(operator))
                }
                (_, Some(_)) => refuse!(
                    "Invalid comparison with an empty {} for operator \"{}\"",
                    kind_of(of),
                    symbol(operator)
                ),
            };
        };
        let Some(value) = value else { return Ok(operator == Operator::NotEqual) };
        let order = of.compare(value, wanted);
        Ok(match operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Contains | Operator::ContainsKey | Operator::Like => false,
        })
    }

    fn contains(
        &self,
        row: Option<(&RowView<'_>, Source)>,
        scratch: &mut Vec<u8>,
    ) -> Result<bool, QueryError> {
        let of = &self.test.cql_type;
        let looks_for_key = self.test.operator == Operator::ContainsKey;
        let Some(Some(wanted)) = self.wanted.first() else {
            refuse!("Invalid comparison with null for operator \"{}\"", symbol(self.test.operator))
        };
        let Some((view, source)) = row else { return Ok(false) };
        let element = match of {
            CqlType::Map { key, .. } if looks_for_key => key,
            CqlType::Map { value: element, .. }
            | CqlType::List { element, .. }
            | CqlType::Set { element, .. } => element,
            _ => return Ok(false),
        };
        let is_it = |key: Option<&[u8]>, value: &[u8]| {
            let held = if looks_for_key { key.unwrap_or_default() } else { value };
            element.compare(held, wanted).is_eq()
        };
        Ok(any_element(view, source, of, scratch, is_it))
    }
}

/// The value of a term that must not be unset.
fn bind(term: &Term, bindings: &Bindings<'_>) -> Result<Held, QueryError> {
    match term.bind(bindings)? {
        Value::Unset => refuse!("Invalid 'unset' value in condition"),
        value => Ok(value.into_bytes().map(|bytes| bytes.into_owned())),
    }
}

/// The values of a list that is bound as a whole.
fn bind_list(index: usize, of: &CqlType, bindings: &Bindings<'_>) -> Result<Vec<Held>, QueryError> {
    let list = match bindings.raw(index) {
        BindValue::Set(list) => list,
        BindValue::Null => refuse!("Invalid null list in IN condition"),
        BindValue::Unset => refuse!("Invalid 'unset' value in condition"),
    };
    let mut wanted = Vec::new();
    each_of_list(list, |part, _| {
        if let Some(part) = part {
            of.validate(part)?;
        }
        wanted.push(part.map(|part| of.canonical(part).unwrap_or_else(|| part.to_vec())));
        Ok(())
    })?;
    Ok(wanted)
}

/// The parts of a collection that is stored as one value.
fn parts(value: &[u8], per_entry: u64) -> impl Iterator<Item = Vec<u8>> {
    let all = Parts::new(value, per_entry).into_iter().flatten();
    all.map_while(|part| part.ok().map(|part| part.unwrap_or_default().to_vec()))
}

fn is_empty_collection(of: &CqlType, value: &[u8]) -> bool {
    let is_collection = matches!(of, CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. });
    is_collection && Parts::new(value, 1).is_ok_and(|parts| parts.left() == 0)
}

/// As Cassandra names the kind of a collection.
fn kind_of(of: &CqlType) -> &'static str {
    match of {
        CqlType::List { .. } => "list",
        CqlType::Set { .. } => "set",
        _ => "map",
    }
}
