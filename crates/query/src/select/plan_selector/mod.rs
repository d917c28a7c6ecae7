//! From a written selector to a planned one, its type and its name in the result.

mod call;
mod composed;
mod part;

use std::cell::RefCell;
use std::collections::HashMap;

use cql::ast::{Ident, Selector as Written, Term as WrittenTerm};
use schema::{ColumnKind, Table};
use types::CqlType;

use super::rows::{Projection, SlotColumn, Source};
use super::selector::{Aggregate, Selector};
use crate::error::refuse;
use crate::functions::{self, Call};
use crate::restrictions::existing_column;
use crate::scope::{Receiver, Scope, TableNames};
use crate::{QueryError, ddl, terms};

/// Plans the selectors of one SELECT.
pub(in crate::select) struct Selectors<'t> {
    pub(in crate::select) table: &'t Table,
    pub(in crate::select) names: TableNames,
    pub(in crate::select) projection: &'t Projection,
    pub(in crate::select) aggregates: Vec<Aggregate>,
    /// Whether selectors are terms, by their addresses, so that each is looked through once however deep it is in
    /// others. They are all of one statement, which outlives this.
    are_terms: RefCell<HashMap<usize, bool>>,
}

/// Longest name of a column of the result, in bytes: as much as the protocol has room for. Each level of a selector
/// copies the names of what is in it.
const NAME_BYTES_MAX: usize = u16::MAX as usize;

/// A selector with its type and name.
pub(in crate::select) struct Planned {
    pub(in crate::select) selector: Selector,
    pub(in crate::select) cql_type: CqlType,
    pub(in crate::select) name: String,
}

/// The columns that a selector reads, by name.
pub(in crate::select) fn columns_read<'s>(selector: &'s Written, found: &mut Vec<&'s Ident>) {
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
    QueryError::invalid(stdx::brief!(
        "Cannot infer type for term {shown} in selection clause (try using a cast to force a type)"
    ))
}

impl<'t> Selectors<'t> {
    /// Nothing planned yet.
    pub(in crate::select) fn new(table: &'t Table, names: TableNames, projection: &'t Projection) -> Self {
        Selectors { table, names, projection, aggregates: Vec::new(), are_terms: RefCell::default() }
    }

    /// Is no column in it, nor anything else that is computed from rows?
    fn is_term(&self, selector: &Written) -> bool {
        let address = std::ptr::from_ref(selector).addr();
        if let Some(known) = self.are_terms.borrow().get(&address) {
            return *known;
        }
        let is_term = match selector {
            Written::Literal(_) | Written::Null | Written::Marker(_) => return true,
            Written::TypeHint(_, inner) => self.is_term(inner),
            Written::Tuple(parts) | Written::List(parts) | Written::Set(parts) => {
                parts.iter().all(|part| self.is_term(part))
            }
            Written::MapOrUser(entries) => {
                entries.iter().all(|(key, value)| self.is_term(key) && self.is_term(value))
            }
            _ => false,
        };
        self.are_terms.borrow_mut().insert(address, is_term);
        is_term
    }

    /// Where the value of a column is.
    pub(in crate::select) fn source(&self, name: &str) -> Result<(Source, CqlType), QueryError> {
        let column = existing_column(self.table, name)?;
        let source = source_of(self.projection, column.id, column.kind);
        Ok((source, column.cql_type.clone()))
    }

    /// Plans a selector; `expected` is what its user wants it to be.
    pub(in crate::select) fn plan(
        &mut self,
        selector: &Written,
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let mut planned = self.plan_unnamed(selector, expected, scope)?;
        planned.name.truncate(planned.name.floor_char_boundary(NAME_BYTES_MAX));
        Ok(planned)
    }

    fn plan_unnamed(
        &mut self,
        selector: &Written,
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        if self.is_term(selector)
            && let Some(term) = as_term(selector)
        {
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
}

/// Where a projection has the value of a column.
pub(crate) fn source_of(projection: &Projection, id: schema::ColumnId, kind: ColumnKind) -> Source {
    let slot = |columns: &[SlotColumn]| columns.partition_point(|slot| slot.id < id);
    match kind {
        ColumnKind::PartitionKey(position) => Source::PartitionKey(position.into()),
        ColumnKind::Clustering(position, _) => Source::Clustering(position.into()),
        ColumnKind::Static => Source::Static(slot(&projection.static_columns)),
        ColumnKind::Regular => Source::Regular(slot(&projection.regular_columns)),
    }
}
