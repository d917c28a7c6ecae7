//! The plan of an IF: which columns it tests, and what they are held against.

use cql::ast::{self, ColumnPart, ConditionTest, InValues, Operator};
use schema::{Column, ColumnId, Table};
use types::CqlType;

use crate::QueryError;
use crate::error::refuse;
use crate::restrictions::{check_duration_slice, contained_type, existing_column, is_slice, symbol};
use crate::scope::{Receiver, Scope, TableNames};
use crate::terms::{self, Term};

/// The IF of a modification.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// `IF NOT EXISTS`
    NotExists,
    /// `IF EXISTS`
    Exists,
    /// Tests of columns.
    Columns(ColumnTests),
}

/// Tests of columns, all of which must hold; at least one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnTests {
    pub(crate) regulars: Vec<ColumnTest>,
    pub(crate) statics: Vec<ColumnTest>,
}

/// A test of one column.
#[derive(Clone, Debug)]
pub(crate) struct ColumnTest {
    pub(crate) column: ColumnId,
    /// The type of the column.
    pub(crate) cql_type: CqlType,
    pub(crate) part: Part,
    /// Of several wanted values it is `=`.
    pub(crate) operator: Operator,
    pub(crate) wanted: Wanted,
}

/// What of the column is tested.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Whole,
    /// A list's element by its index, or a map's value by its key.
    Element(Term),
    /// A user type's field.
    Field(usize),
}

/// What it is held against.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    One(Term),
    /// One of these.
    OneOf(Vec<Term>),
    /// One of the list that this marker is bound to.
    OneOfMarker(usize),
}

impl Condition {
    /// Does it test regular columns? `IF [NOT] EXISTS` tests none: it is about what the statement changes.
    pub(crate) fn tests_regulars(&self) -> bool {
        matches!(self, Condition::Columns(tests) if !tests.regulars.is_empty())
    }
}

impl ColumnTest {
    /// The type of what is compared.
    pub(crate) fn compared_type(&self) -> &CqlType {
        match (&self.part, &self.cql_type) {
            (Part::Element(_), CqlType::List { element: of, .. } | CqlType::Map { value: of, .. }) => of,
            (Part::Field(index), CqlType::UserDefined { definition, .. }) => &definition.fields[*index].1,
            _ => &self.cql_type,
        }
    }
}

/// Plans an IF, if there is one.
///
/// # Errors
/// In Cassandra's words and order.
pub(crate) fn plan_condition(
    condition: &ast::Condition,
    has_timestamp: bool,
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Option<Condition>, QueryError> {
    let tests = match condition {
        ast::Condition::None => return Ok(None),
        ast::Condition::Exists => return Ok(Some(Condition::Exists)),
        ast::Condition::Columns(tests) => tests,
    };
    if has_timestamp {
        refuse!("Cannot provide custom timestamp for conditional updates");
    }
    let mut planned = ColumnTests::default();
    for test in tests {
        let column = existing_column(table, &test.column)?;
        let of_column = plan_test(test, column, table, scope)?;
        if column.is_primary_key() {
            refuse!("PRIMARY KEY column '{}' cannot have IF conditions", column.name);
        }
        let of_kind = if column.is_static() { &mut planned.statics } else { &mut planned.regulars };
        of_kind.push(of_column);
    }
    Ok(Some(Condition::Columns(planned)))
}

fn plan_test(
    test: &ast::ColumnCondition,
    column: &Column,
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<ColumnTest, QueryError> {
    if column.cql_type == CqlType::Counter {
        refuse!("Conditions on counters are not supported");
    }
    let whole = Receiver::column(&TableNames::of(table), column);
    // A marker here does not bind the column itself.
    let whole = Receiver { column: None, ..whole };
    let (part, receiver) = match &test.part {
        ColumnPart::Whole => (Part::Whole, whole),
        ColumnPart::Element(place) => plan_element(place, column, &whole, scope)?,
        ColumnPart::Field(field) => plan_field(field, column, &whole)?,
    };
    let (operator, wanted) = match &test.test {
        ConditionTest::Compare(operator, value) => {
            check_operator(*operator, &receiver.cql_type)?;
            let receiver = match contained_type(column, *operator)? {
                Some(of) if *operator == Operator::ContainsKey => receiver.part("key", of),
                Some(of) => receiver.part("value", of),
                None => receiver,
            };
            (*operator, Wanted::One(terms::plan(value, &receiver, scope)?))
        }
        ConditionTest::In(InValues::Terms(values)) => {
            let values = values.iter().map(|value| terms::plan(value, &receiver, scope));
            (Operator::Equal, Wanted::OneOf(values.collect::<Result<_, _>>()?))
        }
        ConditionTest::In(InValues::Marker(marker)) => {
            let list = CqlType::List { element: receiver.cql_type.freeze().into(), frozen: true };
            scope.markers.bind(marker, &receiver.part("in", list));
            (Operator::Equal, Wanted::OneOfMarker(marker.index as usize))
        }
    };
    Ok(ColumnTest { column: column.id, cql_type: column.cql_type.clone(), part, operator, wanted })
}

/// An element of a list or a map.
fn plan_element(
    place: &ast::Term,
    column: &Column,
    whole: &Receiver,
    scope: &mut Scope<'_>,
) -> Result<(Part, Receiver), QueryError> {
    let (key, value) = match &column.cql_type {
        CqlType::List { element, .. } => (whole.part("idx", CqlType::Int), element),
        CqlType::Map { key, value, .. } => (whole.part("key", (**key).clone()), value),
        CqlType::Set { .. } => refuse!("Invalid element access syntax for set column {}", column.name),
        _ => refuse!("Invalid element access syntax for non-collection column {}", column.name),
    };
    let place = terms::plan(place, &key, scope)?;
    Ok((Part::Element(place), whole.part("value", (**value).clone())))
}

/// A field of a user type.
fn plan_field(field: &ast::Ident, column: &Column, whole: &Receiver) -> Result<(Part, Receiver), QueryError> {
    let CqlType::UserDefined { definition, .. } = &column.cql_type else {
        refuse!("Invalid field access syntax for non-UDT column {}", column.name);
    };
    let Some(index) = definition.fields.iter().position(|(name, _)| *name == **field) else {
        refuse!("Unknown field {} for column {}", field.as_str(), column.name);
    };
    let receiver =
        whole.named(&format!("{}.{}", column.name, field.as_str()), definition.fields[index].1.clone());
    Ok((Part::Field(index), receiver))
}

/// Can values of that type be compared so?
fn check_operator(operator: Operator, compared: &CqlType) -> Result<(), QueryError> {
    if is_slice(operator) {
        let on_durations =
            || format!("Slice conditions ( {} ) are not supported on durations", symbol(operator));
        check_duration_slice(compared, "conditions", on_durations)?;
    }
    match operator {
        Operator::Like => Err(QueryError::unsupported("LIKE in a condition")),
        _ => Ok(()),
    }
}
