//! From a written term to a planned one, checked against the type it is meant for.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use cql::ast::Term as Written;
use types::{CqlType, encoding};

use super::{Term, constant, test_assignment};
use crate::error::refuse;
use crate::functions;
use crate::scope::{Receiver, Scope};
use crate::{QueryError, ddl};

/// Plans a term for a receiver.
///
/// # Errors
/// It can not be of the receiver's type; the message is Cassandra's.
pub(crate) fn plan(term: &Written, receiver: &Receiver, scope: &mut Scope<'_>) -> Result<Term, QueryError> {
    match term {
        Written::Literal(literal) => constant::plan(literal, receiver, scope.now_millis).map(Term::Constant),
        Written::Null if receiver.cql_type == CqlType::Counter => {
            refuse!("Invalid null value for counter increment/decrement")
        }
        Written::Null => Ok(Term::Null),
        Written::Marker(marker) => {
            scope.markers.bind(marker, receiver);
            Ok(Term::Marker { index: marker.index as usize, cql_type: receiver.cql_type.clone() })
        }
        Written::List(elements) => plan_list(elements, receiver, scope),
        Written::Set(elements) => plan_set(elements, receiver, scope),
        Written::Map(entries) => plan_map(entries, receiver, scope),
        Written::User(fields) => plan_user(fields, receiver, scope),
        Written::Tuple(elements) => plan_tuple(term, elements, receiver, scope),
        Written::TypeHint(name, inner) => {
            let hinted = ddl::resolve_type(name, &scope.keyspace, scope.catalog)?;
            if !test_assignment(inner, &hinted, scope).is_assignable() {
                refuse!("Cannot cast value {inner} to type {hinted}");
            }
            if !test_assignment(term, &receiver.cql_type, scope).is_assignable() {
                refuse!("Cannot assign value {term} to {} of type {}", receiver.name, receiver.cql_type);
            }
            // The bytes are the same; markers are of the receiver's type, as in Cassandra.
            plan(inner, receiver, scope)
        }
        Written::Function(_) | Written::Cast(..) | Written::Binary(..) | Written::Negate(_) => {
            functions::plan_call(term, receiver, scope)
        }
    }
}

/// Folds a composed term whose parts are all constants.
fn fold(term: Term, parts_are_constant: bool) -> Result<Term, QueryError> {
    if !parts_are_constant {
        return Ok(term);
    }
    let environment = functions::Environment::none();
    let bindings = super::Bindings::none(&environment);
    Ok(match term.bind(&bindings)?.into_bytes() {
        Some(bytes) => Term::Constant(Bytes::from(bytes.into_owned())),
        None => Term::Null,
    })
}

fn plan_all(
    elements: &[Written],
    receiver: &Receiver,
    scope: &mut Scope<'_>,
) -> Result<(Vec<Term>, bool), QueryError> {
    let terms: Vec<Term> =
        elements.iter().map(|element| plan(element, receiver, scope)).collect::<Result<_, _>>()?;
    let constant = terms.iter().all(Term::is_constant);
    Ok((terms, constant))
}

fn plan_list(elements: &[Written], receiver: &Receiver, scope: &mut Scope<'_>) -> Result<Term, QueryError> {
    let (name, of) = (&receiver.name, &receiver.cql_type);
    match of {
        CqlType::List { element, .. } => {
            check_elements("list", elements, element, receiver, scope)?;
            let part = receiver.part("value", (**element).clone());
            let (terms, constant) = plan_all(elements, &part, scope)?;
            fold(Term::List(terms), constant)
        }
        CqlType::Vector { element, dimension } => {
            if elements.len() != *dimension as usize {
                refuse!(
                    "Invalid vector literal for {name} of type {of}; expected {dimension} elements, but given {}",
                    elements.len()
                );
            }
            check_elements("vector", elements, element, receiver, scope)?;
            let part = receiver.part("value", (**element).clone());
            let (terms, constant) = plan_all(elements, &part, scope)?;
            fold(Term::Vector((**element).clone(), terms), constant)
        }
        _ => refuse!("Unexpected receiver type '{of}'; only list and vector are expected"),
    }
}

fn check_elements(
    what: &str,
    elements: &[Written],
    of: &CqlType,
    receiver: &Receiver,
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    for element in elements {
        if !test_assignment(element, of, scope).is_assignable() {
            refuse!("Invalid {what} literal for {}: value {element} is not of type {of}", receiver.name);
        }
    }
    Ok(())
}

fn plan_set(elements: &[Written], receiver: &Receiver, scope: &mut Scope<'_>) -> Result<Term, QueryError> {
    match &receiver.cql_type {
        CqlType::Map { .. } if elements.is_empty() => {
            Ok(Term::Constant(encoding::collection(0, std::iter::empty()).into()))
        }
        CqlType::Set { element, .. } => {
            check_elements("set", elements, element, receiver, scope)?;
            let part = receiver.part("value", (**element).clone());
            let (terms, constant) = plan_all(elements, &part, scope)?;
            fold(Term::Set((**element).clone(), terms), constant)
        }
        of => refuse!("Invalid set literal for {} of type {of}", receiver.name),
    }
}

fn plan_map(
    entries: &[(Written, Written)],
    receiver: &Receiver,
    scope: &mut Scope<'_>,
) -> Result<Term, QueryError> {
    let CqlType::Map { key, value, .. } = &receiver.cql_type else {
        refuse!("Invalid map literal for {} of type {}", receiver.name, receiver.cql_type)
    };
    let (key_part, value_part) =
        (receiver.part("key", (**key).clone()), receiver.part("value", (**value).clone()));
    for (k, v) in entries {
        if !test_assignment(k, key, scope).is_assignable() {
            refuse!("Invalid map literal for {}: key {k} is not of type {key}", receiver.name);
        }
        if !test_assignment(v, value, scope).is_assignable() {
            refuse!("Invalid map literal for {}: value {v} is not of type {value}", receiver.name);
        }
    }
    let mut terms = Vec::with_capacity(entries.len());
    for (k, v) in entries {
        terms.push((plan(k, &key_part, scope)?, plan(v, &value_part, scope)?));
    }
    let constant = terms.iter().all(|(k, v)| k.is_constant() && v.is_constant());
    fold(Term::Map((**key).clone(), terms), constant)
}

fn plan_user(
    fields: &[(cql::ast::Ident, Written)],
    receiver: &Receiver,
    scope: &mut Scope<'_>,
) -> Result<Term, QueryError> {
    let CqlType::UserDefined { definition, .. } = &receiver.cql_type else {
        refuse!("Invalid user type literal for {} of type {}", receiver.name, receiver.cql_type)
    };
    let known: HashSet<&str> = definition.fields.iter().map(|(name, _)| name.as_str()).collect();
    if let Some((unknown, _)) = fields.iter().find(|(name, _)| !known.contains(name.as_str())) {
        refuse!(
            "Unknown field '{}' in value of user defined type {}",
            unknown.as_str(),
            types::quote_if_needed(&definition.name)
        );
    }
    // Of a field that is given several times the last value counts.
    let given: HashMap<&str, &Written> = fields.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let mut terms = Vec::with_capacity(definition.fields.len());
    for (name, of) in &definition.fields {
        let Some(value) = given.get(name.as_str()) else {
            terms.push(Term::Null);
            continue;
        };
        if !test_assignment(value, of, scope).is_assignable() {
            refuse!("Invalid user type literal for {}: field {name} is not of type {of}", receiver.name);
        }
        let part = receiver.named(&format!("{}.{name}", receiver.name), of.clone());
        terms.push(plan(value, &part, scope)?);
    }
    let constant = terms.iter().all(Term::is_constant);
    fold(Term::Tuple(terms), constant)
}

fn plan_tuple(
    term: &Written,
    elements: &[Written],
    receiver: &Receiver,
    scope: &mut Scope<'_>,
) -> Result<Term, QueryError> {
    let (name, of) = (&receiver.name, &receiver.cql_type);
    let CqlType::Tuple(types) = of else {
        if let [single] = elements {
            return plan(single, receiver, scope);
        }
        let _ = term;
        refuse!("Invalid tuple type literal for {name} of type {of}");
    };
    if elements.len() > types.len() {
        refuse!(
            "Invalid tuple literal for {name}: too many elements. Type {of} expects {} but got {}",
            types.len(),
            elements.len()
        );
    }
    for (index, (element, part)) in elements.iter().zip(types.iter()).enumerate() {
        if !test_assignment(element, part, scope).is_assignable() {
            refuse!("Invalid tuple literal for {name}: component {index} is not of type {part}");
        }
    }
    let mut terms = Vec::with_capacity(elements.len());
    for (index, (element, part)) in elements.iter().zip(types.iter()).enumerate() {
        let part = receiver.named(&format!("{name}[{index}]"), part.clone());
        terms.push(plan(element, &part, scope)?);
    }
    let constant = terms.iter().all(Term::is_constant);
    fold(Term::Tuple(terms), constant)
}
