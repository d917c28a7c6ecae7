//! From a written selector to a planned one, its type and its name in the result.

use std::rc::Rc;

use cql::ast::{CellMetadata, Ident, Selector as Written, Term as WrittenTerm};
use schema::{ColumnKind, Table};
use types::CqlType;

use super::rows::{Projection, Source};
use super::selector::{Aggregate, Part, Selector};
use crate::error::refuse;
use crate::functions::{self, Argument, Call, Found};
use crate::restrictions::existing_column;
use crate::scope::{Receiver, Scope, TableNames};
use crate::{QueryError, ddl, terms};

/// Plans the selectors of one SELECT.
pub(super) struct Selectors<'t> {
    pub(super) table: &'t Table,
    pub(super) names: TableNames,
    pub(super) projection: &'t Projection,
    pub(super) aggregates: Vec<Aggregate>,
}

/// A selector with its type and name.
pub(super) struct Planned {
    pub(super) selector: Selector,
    pub(super) cql_type: CqlType,
    pub(super) name: String,
}

/// The columns that a selector reads, by name.
pub(super) fn columns_read<'s>(selector: &'s Written, found: &mut Vec<&'s Ident>) {
    match selector {
        Written::Column(name) => found.push(name),
        Written::Literal(_) | Written::Null | Written::Marker(_) | Written::CountRows => {}
        Written::Metadata(_, inner)
        | Written::Cast(inner, _)
        | Written::TypeHint(_, inner)
        | Written::Field(inner, _)
        | Written::Element(inner, _)
        | Written::Slice(inner, ..)
        | Written::Negate(inner) => columns_read(inner, found),
        Written::Function(_, parts) | Written::Tuple(parts) | Written::List(parts) | Written::Set(parts) => {
            parts.iter().for_each(|part| columns_read(part, found));
        }
        Written::MapOrUser(entries) => entries.iter().for_each(|(key, value)| {
            columns_read(key, found);
            columns_read(value, found);
        }),
        Written::Binary(left, _, right) => {
            columns_read(left, found);
            columns_read(right, found);
        }
    }
}

/// The selector as a term, if no column is in it.
fn as_term(selector: &Written) -> Option<WrittenTerm> {
    let all = |parts: &[Written]| parts.iter().map(as_term).collect::<Option<Vec<_>>>();
    Some(match selector {
        Written::Literal(literal) => WrittenTerm::Literal(literal.clone()),
        Written::Null => WrittenTerm::Null,
        Written::Marker(marker) => WrittenTerm::Marker(marker.clone()),
        Written::TypeHint(name, inner) => WrittenTerm::TypeHint(name.clone(), Box::new(as_term(inner)?)),
        Written::Tuple(parts) => WrittenTerm::Tuple(all(parts)?),
        Written::List(parts) => WrittenTerm::List(all(parts)?),
        Written::Set(parts) => WrittenTerm::Set(all(parts)?),
        Written::MapOrUser(entries) => {
            let entries = entries.iter().map(|(key, value)| Some((as_term(key)?, as_term(value)?)));
            WrittenTerm::Map(entries.collect::<Option<Vec<_>>>()?)
        }
        _ => return None,
    })
}

fn can_not_infer(selector: &Written) -> QueryError {
    let shown = if *selector == Written::Null { "NULL".to_owned() } else { selector.to_string() };
    QueryError::invalid(format!(
        "Cannot infer type for term {shown} in selection clause (try using a cast to force a type)"
    ))
}

impl Selectors<'_> {
    /// Where the value of a column is.
    pub(super) fn source(&self, name: &str) -> Result<(Source, CqlType), QueryError> {
        let column = existing_column(self.table, name)?;
        let source = source_of(self.projection, column.id, column.kind);
        Ok((source, column.cql_type.clone()))
    }

    /// Plans a selector; `expected` is what its user wants it to be.
    pub(super) fn plan(
        &mut self,
        selector: &Written,
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        if let Some(term) = as_term(selector) {
            return self.plan_term(selector, &term, expected, scope);
        }
        match selector {
            Written::Column(name) => {
                let (source, cql_type) = self.source(name)?;
                Ok(Planned { selector: Selector::Column(source), cql_type, name: name.as_str().to_owned() })
            }
            Written::CountRows => Ok(self.count_rows()),
            Written::Metadata(what, inner) => self.plan_metadata(*what, inner, scope),
            Written::Cast(inner, to) => {
                let planned = self.plan_call(Call::Cast(*to), &[&**inner], expected, scope)?;
                let to = if to.name() == "varchar" { "text" } else { to.name() };
                match planned {
                    Some((planned, arguments)) => {
                        Ok(Planned { name: format!("cast({} as {to})", arguments[0]), ..planned })
                    }
                    // A cast to the type it has already.
                    None => self.plan(inner, Some(&ddl::native_type_named(to)), scope),
                }
            }
            Written::Function(name, arguments) => self.plan_function(name, arguments, expected, scope),
            Written::Binary(left, operator, right) => {
                let call = Call::Operator(*operator);
                match self.plan_call(call, &[&**left, &**right], expected, scope)? {
                    Some((planned, names)) => {
                        let symbol = functions::symbol(*operator);
                        Ok(Planned { name: format!("{} {symbol} {}", names[0], names[1]), ..planned })
                    }
                    None => Err(can_not_infer(selector)),
                }
            }
            Written::Negate(inner) => match self.plan_call(Call::Negation, &[&**inner], expected, scope)? {
                Some((planned, names)) => Ok(Planned { name: format!("-{}", names[0]), ..planned }),
                None => Err(can_not_infer(selector)),
            },
            Written::TypeHint(name, inner) => {
                let hinted = ddl::resolve_type(name, &scope.keyspace, scope.catalog)?;
                let planned = self.plan(inner, Some(&hinted), scope)?;
                if !terms::test_type(&planned.cql_type, &hinted).is_assignable() {
                    let shown = format!("({name}){}", planned.name);
                    refuse!("Cannot assign value {shown} to {shown} of type {hinted}");
                }
                Ok(Planned { cql_type: hinted, name: format!("({name}){}", planned.name), ..planned })
            }
            Written::Field(inner, field) => self.plan_field(inner, field, scope),
            Written::Element(inner, key) => self.plan_element(inner, key, scope),
            Written::Slice(inner, from, to) => self.plan_slice(inner, from.as_deref(), to.as_deref(), scope),
            Written::Tuple(parts) => self.plan_tuple(parts, expected, scope),
            Written::List(parts) => self.plan_list(selector, parts, expected, scope),
            Written::Set(parts) => self.plan_set(selector, parts, expected, scope),
            Written::MapOrUser(entries) => self.plan_map(selector, entries, expected, scope),
            Written::Literal(_) | Written::Null | Written::Marker(_) => Err(can_not_infer(selector)),
        }
    }

    fn plan_term(
        &mut self,
        written: &Written,
        term: &WrittenTerm,
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let cql_type = match (term, expected) {
            (WrittenTerm::TypeHint(name, _), _) => ddl::resolve_type(name, &scope.keyspace, scope.catalog)?,
            (_, Some(expected)) => expected.clone(),
            (_, None) => return Err(can_not_infer(written)),
        };
        let receiver = Receiver::new(&self.names, "[selection]", cql_type.clone());
        let planned = terms::plan(term, &receiver, scope)?;
        Ok(Planned { selector: Selector::Term(planned), cql_type, name: written.to_string() })
    }

    fn count_rows(&mut self) -> Planned {
        let function = Rc::new(functions::count_rows());
        let cql_type = function.returns.clone();
        let selector = self.add_aggregate(Aggregate { function, argument: None });
        Planned { selector, cql_type, name: "count".to_owned() }
    }

    fn add_aggregate(&mut self, aggregate: Aggregate) -> Selector {
        self.aggregates.push(aggregate);
        Selector::Aggregate(self.aggregates.len() - 1)
    }

    fn plan_function(
        &mut self,
        name: &cql::ast::QualifiedName,
        arguments: &[Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        if &*name.name == "count"
            && let [Written::Literal(_)] = arguments
        {
            return Ok(self.count_rows());
        }
        let is_native = name.keyspace.as_deref().is_none_or(|keyspace| keyspace == "system");
        let arguments: Vec<&Written> = arguments.iter().collect();
        let planned = match is_native {
            true => self.plan_call(Call::Named(&name.name), &arguments, expected, scope)?,
            false => None,
        };
        match planned {
            Some((planned, _)) => Ok(planned),
            None => refuse!("Unknown function '{}'", functions::qualified(name)),
        }
    }

    /// Plans a call; also the names of its arguments.
    fn plan_call(
        &mut self,
        call: Call<'_>,
        arguments: &[&Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Option<(Planned, Vec<String>)>, QueryError> {
        let as_terms: Vec<Option<WrittenTerm>> = arguments.iter().map(|argument| as_term(argument)).collect();
        let mut planned: Vec<Option<Planned>> = Vec::with_capacity(arguments.len());
        for (argument, term) in arguments.iter().zip(&as_terms) {
            planned.push(match term {
                Some(_) => None,
                None => Some(self.plan(argument, None, scope)?),
            });
        }
        let tested: Vec<Argument<'_>> = as_terms
            .iter()
            .zip(&planned)
            .map(|(term, planned)| match (term, planned) {
                (Some(term), _) => Argument::Term(term),
                (None, Some(planned)) => Argument::Typed(planned.cql_type.clone(), planned.name.clone()),
                (None, None) => Argument::Typed(CqlType::Blob, String::new()),
            })
            .collect();
        if let (Call::Cast(to), [Argument::Typed(given, _)]) = (call, tested.as_slice())
            && *given == ddl::native_type_named(to.name())
        {
            return Ok(None);
        }
        let table = Some((self.table.keyspace(), self.table.name()));
        let Some(found) = functions::find(call, &tested, expected, table, scope)? else {
            if let (Call::Cast(to), Some(argument)) = (call, tested.first()) {
                refuse!("{argument} cannot be cast to {}", to.name());
            }
            return Ok(None);
        };
        let mut selectors = Vec::with_capacity(arguments.len());
        let mut names = Vec::with_capacity(arguments.len());
        for ((argument, of), done) in arguments.iter().zip(found.arguments()).zip(planned) {
            let part = match done {
                Some(done) => done,
                None => self.plan(argument, Some(of), scope)?,
            };
            names.push(part.name);
            selectors.push(part.selector);
        }
        let name = format!("{}({})", found.name(), names.join(", "));
        let cql_type = found.returns().clone();
        let selector = match found {
            Found::Scalar(function) => Selector::Function(function, selectors),
            Found::Aggregate(function) => {
                if selectors.iter().any(has_aggregate) {
                    refuse!("aggregate functions cannot be used as arguments of aggregate functions");
                }
                self.add_aggregate(Aggregate { function, argument: selectors.pop() })
            }
        };
        Ok(Some((Planned { selector, cql_type, name }, names)))
    }

    fn plan_metadata(
        &mut self,
        what: CellMetadata,
        inner: &Written,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let label = match what {
            CellMetadata::WriteTime => "writetime",
            CellMetadata::MaxWriteTime => "maxwritetime",
            CellMetadata::TimeToLive => "ttl",
        };
        let one = if what == CellMetadata::TimeToLive { CqlType::Int } else { CqlType::Bigint };
        let (column, part, whole_name) = match inner {
            Written::Column(name) => (name, Part::Whole, None),
            Written::Element(column, key) => match &**column {
                Written::Column(name) => {
                    let of = self.source(name)?.1;
                    let part = Part::Element(self.plan_key(name, &of, "Element", key, scope)?);
                    (name, part, Some(inner.to_string()))
                }
                _ => refuse!("{label} can only be asked of columns and their parts, not of {inner}"),
            },
            Written::Slice(column, from, to) => match &**column {
                Written::Column(name) => {
                    let of = self.source(name)?.1;
                    let mut edge = |edge: &Option<Box<WrittenTerm>>| {
                        edge.as_ref().map(|key| self.plan_key(name, &of, "Slice", key, scope)).transpose()
                    };
                    (name, Part::Slice(edge(from)?, edge(to)?), Some(inner.to_string()))
                }
                _ => refuse!("{label} can only be asked of columns and their parts, not of {inner}"),
            },
            Written::Field(column, field) => match &**column {
                Written::Column(name) => {
                    let of = self.source(name)?.1;
                    let (index, _) = field_of(&of, name, field)?;
                    (name, Part::Field(u16::try_from(index).unwrap_or(u16::MAX)), Some(inner.to_string()))
                }
                _ => refuse!("{label} can only be asked of columns and their parts, not of {inner}"),
            },
            _ => refuse!("{label} can only be asked of columns and their parts, not of {inner}"),
        };
        let found = existing_column(self.table, column)?;
        if found.is_primary_key() {
            refuse!("Cannot use selection function {label} on PRIMARY KEY part {}", found.name);
        }
        let source = source_of(self.projection, found.id, found.kind);
        let several = found.cql_type.is_multi_cell()
            && matches!(part, Part::Whole | Part::Slice(..))
            && what != CellMetadata::MaxWriteTime;
        let cql_type = if several { CqlType::List { element: one.into(), frozen: false } } else { one };
        let name = format!("{label}({})", whole_name.as_deref().unwrap_or(column.as_str()));
        let of = found.cql_type.clone();
        Ok(Planned { selector: Selector::Metadata { what, source, cql_type: of, part }, cql_type, name })
    }

    /// The key of an element or the edge of a slice.
    fn plan_key(
        &mut self,
        selected: &str,
        of: &CqlType,
        what: &str,
        key: &WrittenTerm,
        scope: &mut Scope<'_>,
    ) -> Result<terms::Term, QueryError> {
        let (part, by) = match of {
            CqlType::Map { key, .. } => ("key", key),
            CqlType::Set { element, .. } => ("value", element),
            CqlType::List { .. } => {
                refuse!("{what} selection is only allowed on sets and maps, but {selected} is a list")
            }
            // The two sentences differ in Cassandra too.
            _ if what == "Slice" => {
                refuse!("Invalid slice selection: {selected} of type {of} is not a collection")
            }
            _ => refuse!("Invalid element selection: {selected} is of type {of} is not a collection"),
        };
        let receiver = Receiver::new(&self.names, selected, of.clone()).part(part, (**by).clone());
        terms::plan(key, &receiver, scope)
    }

    fn plan_element(
        &mut self,
        inner: &Written,
        key: &WrittenTerm,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let planned = self.plan(inner, None, scope)?;
        let of = planned.cql_type;
        let key_term = self.plan_key(&planned.name, &of, "Element", key, scope)?;
        let cql_type = match &of {
            CqlType::Map { value, .. } => (**value).clone(),
            CqlType::Set { element, .. } => (**element).clone(),
            other => other.clone(),
        };
        let name = format!("{}[{key}]", planned.name);
        Ok(Planned { selector: Selector::Element(Box::new(planned.selector), of, key_term), cql_type, name })
    }

    fn plan_slice(
        &mut self,
        inner: &Written,
        from: Option<&WrittenTerm>,
        to: Option<&WrittenTerm>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let planned = self.plan(inner, None, scope)?;
        let of = planned.cql_type;
        let mut edge = |edge: Option<&WrittenTerm>| {
            edge.map(|key| self.plan_key(&planned.name, &of, "Slice", key, scope)).transpose()
        };
        let (from_term, to_term) = (edge(from)?, edge(to)?);
        let shown = |edge: Option<&WrittenTerm>| edge.map(ToString::to_string).unwrap_or_default();
        let name = format!("{}[{}..{}]", planned.name, shown(from), shown(to));
        let selector = Selector::Slice(Box::new(planned.selector), of.clone(), from_term, to_term);
        Ok(Planned { selector, cql_type: of, name })
    }

    fn plan_field(
        &mut self,
        inner: &Written,
        field: &Ident,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let planned = self.plan(inner, None, scope)?;
        let (index, cql_type) = field_of(&planned.cql_type, &planned.name, field)?;
        let name = format!("{}.{}", planned.name, field.as_str());
        Ok(Planned { selector: Selector::Field(Box::new(planned.selector), index), cql_type, name })
    }

    fn plan_tuple(
        &mut self,
        parts: &[Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        if let [single] = parts
            && !matches!(expected, Some(CqlType::Tuple(_)))
        {
            let planned = self.plan(single, expected, scope)?;
            return Ok(Planned { name: format!("({})", planned.name), ..planned });
        }
        let types = match expected {
            Some(CqlType::Tuple(types)) => types.to_vec(),
            _ => Vec::new(),
        };
        let mut planned = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            planned.push(self.plan(part, types.get(index), scope)?);
        }
        let cql_type = CqlType::Tuple(planned.iter().map(|part| part.cql_type.freeze()).collect());
        let name = format!("({})", join(&planned));
        let selector = Selector::Tuple(planned.into_iter().map(|part| part.selector).collect());
        Ok(Planned { selector, cql_type, name })
    }

    /// Plans parts that must all be of one type; that type.
    fn plan_parts(
        &mut self,
        whole: &Written,
        parts: &[Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<(Vec<Planned>, CqlType), QueryError> {
        let mut of = expected.cloned();
        if of.is_none()
            && let Some(part) = parts.iter().find(|part| as_term(part).is_none())
        {
            of = Some(self.plan(part, None, scope)?.cql_type);
        }
        let Some(of) = of else { return Err(can_not_infer(whole)) };
        let planned: Vec<Planned> =
            parts.iter().map(|part| self.plan(part, Some(&of), scope)).collect::<Result<_, _>>()?;
        Ok((planned, of))
    }

    fn plan_list(
        &mut self,
        whole: &Written,
        parts: &[Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let wanted = match expected {
            Some(CqlType::List { element, .. } | CqlType::Vector { element, .. }) => Some(&**element),
            _ => None,
        };
        let (planned, of) = self.plan_parts(whole, parts, wanted, scope)?;
        let name = format!("[{}]", join(&planned));
        let selectors: Vec<Selector> = planned.into_iter().map(|part| part.selector).collect();
        Ok(match expected {
            Some(vector @ CqlType::Vector { .. }) => {
                Planned { selector: Selector::Vector(of, selectors), cql_type: vector.clone(), name }
            }
            _ => {
                let cql_type = CqlType::List { element: of.into(), frozen: false };
                Planned { selector: Selector::List(selectors), cql_type, name }
            }
        })
    }

    fn plan_set(
        &mut self,
        whole: &Written,
        parts: &[Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let wanted = match expected {
            Some(CqlType::Set { element, .. }) => Some(&**element),
            _ => None,
        };
        let (planned, of) = self.plan_parts(whole, parts, wanted, scope)?;
        let name = format!("{{{}}}", join(&planned));
        let selectors = planned.into_iter().map(|part| part.selector).collect();
        let cql_type = CqlType::Set { element: of.clone().into(), frozen: false };
        Ok(Planned { selector: Selector::Set(of, selectors), cql_type, name })
    }

    fn plan_map(
        &mut self,
        whole: &Written,
        entries: &[(Written, Written)],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        if let Some(CqlType::UserDefined { definition, .. }) = expected {
            let mut fields = Vec::with_capacity(definition.fields.len());
            for (field, of) in &definition.fields {
                let given =
                    entries.iter().find(|(key, _)| matches!(key, Written::Column(name) if **name == **field));
                fields.push(match given {
                    Some((_, value)) => self.plan(value, Some(of), scope)?.selector,
                    None => Selector::Term(terms::Term::Null),
                });
            }
            let cql_type = CqlType::UserDefined { definition: definition.clone(), frozen: true };
            return Ok(Planned { selector: Selector::Tuple(fields), cql_type, name: whole.to_string() });
        }
        let Some(CqlType::Map { key, value, .. }) = expected else { return Err(can_not_infer(whole)) };
        let mut planned = Vec::with_capacity(entries.len());
        let mut names = Vec::with_capacity(entries.len());
        for (k, v) in entries {
            let (k, v) = (self.plan(k, Some(key), scope)?, self.plan(v, Some(value), scope)?);
            names.push(format!("{}: {}", k.name, v.name));
            planned.push((k.selector, v.selector));
        }
        let cql_type = CqlType::Map { key: key.clone(), value: value.clone(), frozen: false };
        let name = format!("{{{}}}", names.join(", "));
        Ok(Planned { selector: Selector::Map((**key).clone(), planned), cql_type, name })
    }
}

fn join(parts: &[Planned]) -> String {
    parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn has_aggregate(selector: &Selector) -> bool {
    match selector {
        Selector::Aggregate(_) => true,
        Selector::Function(_, parts) | Selector::Tuple(parts) | Selector::List(parts) => {
            parts.iter().any(has_aggregate)
        }
        Selector::Field(inner, _) | Selector::Element(inner, ..) | Selector::Slice(inner, ..) => {
            has_aggregate(inner)
        }
        _ => false,
    }
}

fn field_of(of: &CqlType, selected: &str, field: &str) -> Result<(usize, CqlType), QueryError> {
    let CqlType::UserDefined { definition, .. } = of else {
        refuse!("Invalid field selection: {selected} of type {of} is not a user type");
    };
    match definition.fields.iter().position(|(name, _)| name == field) {
        Some(index) => Ok((index, definition.fields[index].1.clone())),
        None => refuse!("{selected} of type {of} has no field {field}"),
    }
}

/// Where a projection has the value of a column.
pub(super) fn source_of(projection: &Projection, id: schema::ColumnId, kind: ColumnKind) -> Source {
    let slot = |columns: &[super::rows::SlotColumn]| columns.partition_point(|slot| slot.id < id);
    match kind {
        ColumnKind::PartitionKey(position) => Source::PartitionKey(position.into()),
        ColumnKind::Clustering(position, _) => Source::Clustering(position.into()),
        ColumnKind::Static => Source::Static(slot(&projection.static_columns)),
        ColumnKind::Regular => Source::Regular(slot(&projection.regular_columns)),
    }
}
