//! Restrictions with their values, written as CQL again: for what is said of a read that came upon many tombstones.
//!
//! As in Cassandra 5's `DataRange.toCQLString` and `RowFilter.toCQLString`. A value that can not be bound would have
//! failed the read before; it is left out.

use schema::Table;
use types::{CqlType, Token};

use super::Restrictions;
use super::partition::TokenRestriction;
use super::restriction::{Contained, Edge, Restriction, Test};
use crate::terms::{Bindings, Term, Value};

impl Restrictions {
    /// What is asked of `token(key)`: its start and its end.
    pub(crate) fn spell_tokens(
        &self,
        table: &Table,
        bindings: &Bindings<'_>,
    ) -> (Option<String>, Option<String>) {
        let clause = |operator: &str, term: &Term| {
            let Token(token) = super::partition::bind_token(term, bindings).ok()?;
            Some(format!("{} {operator} {token}", spell_token_of_key(table)))
        };
        match &self.token {
            None => (None, None),
            Some(TokenRestriction::Equal(term)) => (clause(">=", term), clause("<=", term)),
            Some(TokenRestriction::Slice { start, end }) => {
                let start = start.as_ref();
                let end = end.as_ref();
                (
                    start.and_then(|(term, is_inclusive)| clause(after(*is_inclusive), term)),
                    end.and_then(|(term, is_inclusive)| clause(before(*is_inclusive), term)),
                )
            }
        }
    }

    /// What rows are filtered by.
    pub(crate) fn spell_filter(&self, bindings: &Bindings<'_>) -> Vec<String> {
        self.filtered().flat_map(|restriction| restriction.spell(bindings)).collect()
    }
}

/// `token(a, b)`.
pub(crate) fn spell_token_of_key(table: &Table) -> String {
    let names: Vec<_> = table.partition_key().iter().map(|column| cql::maybe_quote(&column.name)).collect();
    format!("token({})", names.join(", "))
}

/// The operator of a start.
pub(crate) fn after(is_inclusive: bool) -> &'static str {
    if is_inclusive { ">=" } else { ">" }
}

/// The operator of an end.
pub(crate) fn before(is_inclusive: bool) -> &'static str {
    if is_inclusive { "<=" } else { "<" }
}

impl Restriction {
    fn spell(&self, bindings: &Bindings<'_>) -> Vec<String> {
        let first = self.first();
        let (name, of) = (cql::maybe_quote(&first.name), &first.cql_type);
        let points = || self.bind_points("", bindings).unwrap_or_default();
        match &self.test {
            Test::Equal(_) => {
                let values = points().into_iter().next().unwrap_or_default();
                let spell = |(column, value): (&super::restriction::Restricted, Vec<u8>)| {
                    let literal = column.cql_type.to_cql_literal(&value);
                    format!("{} = {literal}", cql::maybe_quote(&column.name))
                };
                self.columns.iter().zip(values).map(spell).collect()
            }
            Test::In(_) | Test::InMarker(_) => {
                let values = points().into_iter().flatten().map(|value| of.to_cql_literal(&value));
                vec![format!("{name} IN [{}]", values.collect::<Vec<_>>().join(", "))]
            }
            Test::Slice { start, end } => {
                let clause = |edge: &Option<Edge>, operator: fn(bool) -> &'static str| {
                    let edge = edge.as_ref()?;
                    let value = self.bind(&edge.values, bindings).ok()?.into_iter().next()?;
                    Some(format!("{name} {} {}", operator(edge.is_inclusive), of.to_cql_literal(&value)))
                };
                [clause(start, after), clause(end, before)].into_iter().flatten().collect()
            }
            Test::Contains(all) => all.iter().filter_map(|one| one.spell(&name, of, bindings)).collect(),
        }
    }
}

impl Contained {
    fn spell(&self, name: &str, of: &CqlType, bindings: &Bindings<'_>) -> Option<String> {
        let (key_type, element) = match of {
            CqlType::Map { key, value, .. } => (&**key, &**value),
            CqlType::Set { element, .. } | CqlType::List { element, .. } => (&**element, &**element),
            _ => return None,
        };
        let literal = |of: &CqlType, term: &Term| match term.bind(bindings) {
            Ok(Value::Set(value)) => Some(of.to_cql_literal(&value)),
            _ => None,
        };
        Some(match self {
            Contained::Element(term) => format!("{name} CONTAINS {}", literal(element, term)?),
            Contained::Key(term) => format!("{name} CONTAINS KEY {}", literal(key_type, term)?),
            Contained::Entry(key, term) => {
                format!("{name}[{}] = {}", literal(key_type, key)?, literal(element, term)?)
            }
        })
    }
}
