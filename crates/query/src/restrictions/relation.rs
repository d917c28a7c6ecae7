//! From a relation of a WHERE clause to a restriction.

use cql::ast::{InValues, Marker, Operator, Relation, Term as Written};
use schema::{Column, ColumnKind, Table};
use types::CqlType;

use super::restriction::{Contained, Edge, Restricted, Restriction, Test, Values};
use crate::QueryError;
use crate::error::refuse;
use crate::scope::{Receiver, Scope, TableNames};
use crate::terms::{self, Term};

/// Plans relations of one table.
pub(super) struct Relations<'t> {
    pub(super) table: &'t Table,
    pub(super) names: TableNames,
}

/// The column of a table.
///
/// # Errors
/// There is none of that name.
pub(crate) fn existing_column<'t>(table: &'t Table, name: &str) -> Result<&'t Column, QueryError> {
    let missing = || {
        QueryError::invalid(stdx::brief!(
            "Undefined column name {} in table {}.{}",
            types::quote_if_needed(name),
            table.keyspace(),
            table.name()
        ))
    };
    table.column(name).ok_or_else(missing)
}

pub(super) fn restricted(column: &Column) -> Restricted {
    let position = match column.kind {
        ColumnKind::PartitionKey(position) | ColumnKind::Clustering(position, _) => usize::from(position),
        ColumnKind::Static | ColumnKind::Regular => 0,
    };
    Restricted {
        id: column.id,
        position,
        name: column.name.as_str().into(),
        cql_type: column.cql_type.clone(),
    }
}

/// The operator as messages show it.
pub(crate) fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Equal => "=",
        Operator::NotEqual => "!=",
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
        Operator::Contains => "CONTAINS",
        Operator::ContainsKey => "CONTAINS KEY",
        Operator::Like => "LIKE",
    }
}

/// The slice that an inequality asks for.
fn slice(operator: Operator, values: Values) -> Option<Test> {
    let is_inclusive = matches!(operator, Operator::LessOrEqual | Operator::GreaterOrEqual);
    let edge = Some(Edge { values, is_inclusive });
    match operator {
        Operator::Less | Operator::LessOrEqual => Some(Test::Slice { start: None, end: edge }),
        Operator::Greater | Operator::GreaterOrEqual => Some(Test::Slice { start: edge, end: None }),
        _ => None,
    }
}

impl Relations<'_> {
    /// Plans any relation but one of the token.
    pub(super) fn plan(&self, relation: &Relation, scope: &mut Scope<'_>) -> Result<Restriction, QueryError> {
        match relation {
            Relation::Column { column, operator, value } => {
                self.plan_single(relation, column, *operator, value, scope)
            }
            Relation::In { column, values } => self.plan_in(column, values, scope),
            Relation::MapEntry { column, key, operator, value } => {
                self.plan_entry(column, key, *operator, value, scope)
            }
            Relation::Tuple { columns, operator, value } => {
                self.plan_tuple(relation, columns, *operator, value, scope)
            }
            Relation::TupleIn { columns, values } => self.plan_tuple_in(relation, columns, values, scope),
            Relation::IsNotNull { .. } => refuse!("Unsupported restriction: {relation}"),
            Relation::CustomIndex { .. } => {
                Err(QueryError::unsupported("Searching custom indexes with expr()"))
            }
            Relation::Token { .. } => refuse!("Unsupported restriction: {relation}"),
        }
    }

    fn plan_single(
        &self,
        relation: &Relation,
        name: &str,
        operator: Operator,
        value: &Written,
        scope: &mut Scope<'_>,
    ) -> Result<Restriction, QueryError> {
        if operator == Operator::NotEqual {
            refuse!("Unsupported \"!=\" relation: {relation}");
        }
        let column = existing_column(self.table, name)?;
        if is_slice(operator) {
            let on_durations = || "Slice restrictions are not supported on duration columns".into();
            check_duration_slice(&column.cql_type, "restrictions", on_durations)?;
        }
        let part = part_compared(column, symbol(operator), operator)?;
        let receiver = match (part, operator) {
            (None, _) => Receiver::column(&self.names, column),
            (Some(of), Operator::ContainsKey) => Receiver::column(&self.names, column).part("key", of),
            (Some(of), _) => Receiver::column(&self.names, column).part("value", of),
        };
        let term = terms::plan(value, &receiver, scope)?;
        let test = match operator {
            Operator::Contains => Test::Contains(vec![Contained::Element(term)]),
            Operator::ContainsKey => Test::Contains(vec![Contained::Key(term)]),
            Operator::Equal => Test::Equal(Values::Terms(vec![term])),
            Operator::Like => refuse!(
                "LIKE restriction is only supported on properly indexed columns. {relation} is not valid."
            ),
            _ => match slice(operator, Values::Terms(vec![term])) {
                Some(test) => test,
                None => refuse!("Unsupported restriction: {relation}"),
            },
        };
        Ok(Restriction { columns: vec![restricted(column)], is_tuple: false, test })
    }

    fn plan_in(
        &self,
        name: &str,
        values: &InValues,
        scope: &mut Scope<'_>,
    ) -> Result<Restriction, QueryError> {
        let column = existing_column(self.table, name)?;
        part_compared(column, "IN", Operator::Equal)?;
        let receiver = Receiver::column(&self.names, column);
        let test = match values {
            InValues::Marker(marker) => {
                let list = CqlType::List { element: column.cql_type.freeze().into(), frozen: true };
                self.bind_in(marker, receiver.part("in", list), scope)
            }
            InValues::Terms(terms) => {
                let mut planned = Vec::with_capacity(terms.len());
                for term in terms {
                    planned.push(Values::Terms(vec![terms::plan(term, &receiver, scope)?]));
                }
                in_test(planned)
            }
        };
        Ok(Restriction { columns: vec![restricted(column)], is_tuple: false, test })
    }

    fn bind_in(&self, marker: &Marker, receiver: Receiver, scope: &mut Scope<'_>) -> Test {
        scope.markers.bind(marker, &receiver);
        Test::InMarker(marker.index as usize)
    }

    fn plan_entry(
        &self,
        name: &str,
        key: &Written,
        operator: Operator,
        value: &Written,
        scope: &mut Scope<'_>,
    ) -> Result<Restriction, QueryError> {
        let column = existing_column(self.table, name)?;
        let CqlType::Map { key: key_type, value: value_type, frozen } = &column.cql_type else {
            if matches!(column.cql_type, CqlType::List { .. }) {
                refuse!("Indexes on list entries ({name}[index] = value) are not currently supported.");
            }
            refuse!("Column {name} cannot be used as a map");
        };
        if *frozen {
            refuse!("Map-entry equality predicates on frozen map column {name} are not supported");
        }
        if operator != Operator::Equal {
            refuse!("Only EQ relations are supported on map entries");
        }
        let receiver = Receiver::column(&self.names, column);
        let key = terms::plan(key, &receiver.part("key", (**key_type).clone()), scope)?;
        let value = terms::plan(value, &receiver.part("value", (**value_type).clone()), scope)?;
        let test = Test::Contains(vec![Contained::Entry(key, value)]);
        Ok(Restriction { columns: vec![restricted(column)], is_tuple: false, test })
    }

    fn tuple_columns(
        &self,
        relation: &Relation,
        names: &[cql::ast::Ident],
    ) -> Result<Vec<&Column>, QueryError> {
        let mut columns: Vec<&Column> = Vec::with_capacity(names.len());
        for name in names {
            let column = existing_column(self.table, name)?;
            let ColumnKind::Clustering(position, _) = column.kind else {
                refuse!(
                    "Multi-column relations can only be applied to clustering columns but was applied to: {}",
                    column.name
                );
            };
            if columns.iter().any(|other| other.id == column.id) {
                refuse!("Column \"{}\" appeared twice in a relation: {relation}", column.name);
            }
            if let Some(ColumnKind::Clustering(previous, _)) = columns.last().map(|last| last.kind)
                && position != previous + 1
            {
                refuse!(
                    "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {relation}"
                );
            }
            columns.push(column);
        }
        Ok(columns)
    }

    fn tuple_values(
        &self,
        columns: &[&Column],
        value: &Written,
        scope: &mut Scope<'_>,
    ) -> Result<Values, QueryError> {
        match value {
            Written::Tuple(elements) => {
                if elements.len() != columns.len() {
                    refuse!(
                        "Expected {} elements in value tuple, but got {}: {value}",
                        columns.len(),
                        elements.len()
                    );
                }
                let mut planned = Vec::with_capacity(elements.len());
                for (element, column) in elements.iter().zip(columns) {
                    planned.push(terms::plan(element, &Receiver::column(&self.names, column), scope)?);
                }
                Ok(Values::Terms(planned))
            }
            Written::Marker(marker) => {
                let receiver =
                    Receiver::new(&self.names, &format!("({})", joined(columns)), tuple_type(columns));
                scope.markers.bind(marker, &receiver);
                Ok(Values::TupleMarker(marker.index as usize))
            }
            other => match columns {
                [single] => {
                    let term: Term = terms::plan(other, &Receiver::column(&self.names, single), scope)?;
                    Ok(Values::Terms(vec![term]))
                }
                _ => refuse!("Expected {} elements in value tuple, but got 1: {value}", columns.len()),
            },
        }
    }

    fn plan_tuple(
        &self,
        relation: &Relation,
        names: &[cql::ast::Ident],
        operator: Operator,
        value: &Written,
        scope: &mut Scope<'_>,
    ) -> Result<Restriction, QueryError> {
        if operator == Operator::NotEqual {
            refuse!("Unsupported \"!=\" relation: {relation}");
        }
        let columns = self.tuple_columns(relation, names)?;
        let values = self.tuple_values(&columns, value, scope)?;
        let test = match operator {
            Operator::Equal => Test::Equal(values),
            _ => match slice(operator, values) {
                Some(test) => test,
                None => refuse!("{} cannot be used for multi-column relations", symbol(operator)),
            },
        };
        let columns = columns.into_iter().map(restricted).collect();
        Ok(Restriction { columns, is_tuple: true, test })
    }

    fn plan_tuple_in(
        &self,
        relation: &Relation,
        names: &[cql::ast::Ident],
        values: &InValues,
        scope: &mut Scope<'_>,
    ) -> Result<Restriction, QueryError> {
        let columns = self.tuple_columns(relation, names)?;
        let test = match values {
            InValues::Marker(marker) => {
                let list = CqlType::List { element: tuple_type(&columns).into(), frozen: true };
                let receiver = Receiver::new(&self.names, &format!("in({})", joined(&columns)), list);
                self.bind_in(marker, receiver, scope)
            }
            InValues::Terms(terms) => {
                let mut planned = Vec::with_capacity(terms.len());
                for term in terms {
                    planned.push(self.tuple_values(&columns, term, scope)?);
                }
                in_test(planned)
            }
        };
        let columns = columns.into_iter().map(restricted).collect();
        Ok(Restriction { columns, is_tuple: true, test })
    }
}

/// An IN of one value is an equality.
fn in_test(mut values: Vec<Values>) -> Test {
    match values.len() {
        1 => Test::Equal(values.remove(0)),
        _ => Test::In(values),
    }
}

fn joined(columns: &[&Column]) -> String {
    columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(",")
}

fn tuple_type(columns: &[&Column]) -> CqlType {
    CqlType::Tuple(columns.iter().map(|column| column.cql_type.freeze()).collect())
}

/// The part of a collection that CONTAINS compares; `None` when the whole value is compared.
fn part_compared(column: &Column, shown: &str, operator: Operator) -> Result<Option<CqlType>, QueryError> {
    let (name, of) = (&column.name, &column.cql_type);
    if let Some(part) = contained_type(column, operator)? {
        return Ok(Some(part));
    }
    match of {
        CqlType::UserDefined { frozen: false, .. } => {
            refuse!("Non-frozen UDT column '{name}' ({of}) cannot be restricted by any relation")
        }
        _ if of.is_multi_cell() => {
            refuse!("Collection column '{name}' ({of}) cannot be restricted by a '{shown}' relation")
        }
        _ => Ok(None),
    }
}

/// The type of what CONTAINS or CONTAINS KEY looks for in a column; `None` of other comparisons.
///
/// # Errors
/// The column has no such parts.
pub(crate) fn contained_type(column: &Column, operator: Operator) -> Result<Option<CqlType>, QueryError> {
    let (name, of) = (&column.name, &column.cql_type);
    match operator {
        Operator::ContainsKey => match of {
            CqlType::Map { key, .. } => Ok(Some((**key).clone())),
            _ => refuse!("Cannot use CONTAINS KEY on non-map column {name}"),
        },
        Operator::Contains => match of {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => Ok(Some((**element).clone())),
            CqlType::Map { value, .. } => Ok(Some((**value).clone())),
            _ => refuse!("Cannot use CONTAINS on non-collection column {name}"),
        },
        _ => Ok(None),
    }
}

/// Does it ask for what lies on one side of a value?
pub(crate) fn is_slice(operator: Operator) -> bool {
    matches!(operator, Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual)
}

/// Durations have no order: `what` is what would need one, and `on_durations` what is told of a duration by itself.
///
/// # Errors
/// There are durations in values of that type.
pub(crate) fn check_duration_slice(
    of: &CqlType,
    what: &str,
    on_durations: impl FnOnce() -> String,
) -> Result<(), QueryError> {
    if !references_duration(of) {
        return Ok(());
    }
    match of {
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => {
            refuse!("Slice {what} are not supported on collections containing durations")
        }
        CqlType::Tuple(_) => refuse!("Slice {what} are not supported on tuples containing durations"),
        CqlType::UserDefined { .. } => {
            refuse!("Slice {what} are not supported on UDTs containing durations")
        }
        _ => Err(QueryError::invalid(on_durations())),
    }
}

fn references_duration(of: &CqlType) -> bool {
    match of {
        CqlType::Duration => true,
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            references_duration(element)
        }
        CqlType::Map { key, value, .. } => references_duration(key) || references_duration(value),
        CqlType::Tuple(types) => types.iter().any(references_duration),
        CqlType::UserDefined { definition, .. } => {
            definition.fields.iter().any(|(_, of)| references_duration(of))
        }
        _ => false,
    }
}
