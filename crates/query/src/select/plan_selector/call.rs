//! Calls in a selection: of scalar functions, and of aggregates.

use std::sync::Arc;

use cql::ast::{Selector as Written, Term as WrittenTerm};
use types::CqlType;

use super::{Planned, Selectors, as_term};
use crate::error::refuse;
use crate::functions::{self, Argument, Call, Found};
use crate::scope::Scope;
use crate::select::selector::{Aggregate, Selector};
use crate::{QueryError, ddl};

impl Selectors<'_> {
    pub(super) fn count_rows(&mut self) -> Planned {
        let function = Arc::new(functions::count_rows());
        let cql_type = function.returns.clone();
        let selector = self.add_aggregate(Aggregate { function, argument: None });
        Planned { selector, cql_type, name: "count".to_owned() }
    }

    pub(super) fn add_aggregate(&mut self, aggregate: Aggregate) -> Selector {
        self.aggregates.push(aggregate);
        Selector::Aggregate(self.aggregates.len() - 1)
    }

    pub(super) fn plan_function(
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
    pub(super) fn plan_call(
        &mut self,
        call: Call<'_>,
        arguments: &[&Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Option<(Planned, Vec<String>)>, QueryError> {
        let term = |argument: &&Written| if self.is_term(argument) { as_term(argument) } else { None };
        let as_terms: Vec<Option<WrittenTerm>> = arguments.iter().map(term).collect();
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
