//! May a term be given where a value of some type is expected?

use std::collections::HashMap;

use cql::ast::Term as Written;
use types::CqlType;

use super::constant;
use crate::functions;
use crate::scope::Scope;

/// How well a term fits a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assignable {
    /// It is of that very type.
    Exactly,
    /// It can be taken for one.
    Weakly,
    /// It can not.
    No,
}

impl Assignable {
    pub(crate) fn is_assignable(self) -> bool {
        self != Assignable::No
    }

    /// All of them: none must fail, and all be exact to be exact.
    pub(crate) fn all(tests: impl IntoIterator<Item = Assignable>) -> Assignable {
        let mut result = Assignable::Exactly;
        for test in tests {
            match test {
                Assignable::No => return Assignable::No,
                Assignable::Weakly => result = Assignable::Weakly,
                Assignable::Exactly => {}
            }
        }
        result
    }
}

/// A type itself, without regard to its being frozen.
pub(crate) fn same_type(a: &CqlType, b: &CqlType) -> bool {
    a == b || a.freeze() == b.freeze()
}

/// May bytes of type `given` be read as `receiver`?
pub(crate) fn is_value_compatible(receiver: &CqlType, given: &CqlType) -> bool {
    if same_type(receiver, given) {
        return true;
    }
    match (receiver, given) {
        (CqlType::Blob, _) => true,
        (CqlType::Text, CqlType::Ascii)
        | (CqlType::Varint, CqlType::Int | CqlType::Bigint | CqlType::Timestamp)
        | (CqlType::Uuid, CqlType::Timeuuid)
        | (CqlType::Bigint, CqlType::Timestamp)
        | (CqlType::Timestamp | CqlType::Time, CqlType::Bigint)
        | (CqlType::Date, CqlType::Int) => true,
        (CqlType::List { element: a, .. }, CqlType::List { element: b, .. })
        | (CqlType::Set { element: a, .. }, CqlType::Set { element: b, .. }) => is_value_compatible(a, b),
        (CqlType::Map { key: a, value: x, .. }, CqlType::Map { key: b, value: y, .. }) => {
            is_value_compatible(a, b) && is_value_compatible(x, y)
        }
        (CqlType::Tuple(a), CqlType::Tuple(b)) => {
            a.len() >= b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_value_compatible(a, b))
        }
        _ => false,
    }
}

/// How well a value of a known type fits.
pub(crate) fn test_type(given: &CqlType, receiver: &CqlType) -> Assignable {
    if same_type(given, receiver) {
        Assignable::Exactly
    } else if is_value_compatible(receiver, given) {
        Assignable::Weakly
    } else {
        Assignable::No
    }
}

/// How well a term fits.
pub(crate) fn test(term: &Written, receiver: &CqlType, scope: &Scope<'_>) -> Assignable {
    let all = |elements: &[Written], of: &CqlType| {
        if elements.is_empty() {
            return Assignable::Weakly;
        }
        Assignable::all(elements.iter().map(|element| test(element, of, scope)))
    };
    match term {
        Written::Literal(literal) => constant::test(literal, receiver),
        Written::Null if *receiver == CqlType::Counter => Assignable::No,
        Written::Null | Written::Marker(_) => Assignable::Weakly,
        Written::List(elements) => match receiver {
            CqlType::List { element, .. } => all(elements, element),
            CqlType::Vector { element, dimension } if elements.len() == *dimension as usize => {
                all(elements, element)
            }
            _ => Assignable::No,
        },
        Written::Set(elements) => match receiver {
            CqlType::Set { element, .. } => all(elements, element),
            CqlType::Map { .. } if elements.is_empty() => Assignable::Weakly,
            _ => Assignable::No,
        },
        Written::Map(entries) => match receiver {
            CqlType::Map { key, value, .. } => Assignable::all(
                entries.iter().flat_map(|(k, v)| [test(k, key, scope), test(v, value, scope)]),
            ),
            _ => Assignable::No,
        },
        Written::User(fields) => match receiver {
            CqlType::UserDefined { definition, .. } => {
                let types: HashMap<&str, &CqlType> =
                    definition.fields.iter().map(|(name, of)| (name.as_str(), of)).collect();
                let fits = fields.iter().all(|(name, value)| {
                    types.get(name.as_str()).is_some_and(|of| test(value, of, scope).is_assignable())
                });
                if fits { Assignable::Weakly } else { Assignable::No }
            }
            _ => Assignable::No,
        },
        Written::Tuple(elements) => match receiver {
            CqlType::Tuple(types) if elements.len() <= types.len() => {
                let fits =
                    elements.iter().zip(types.iter()).all(|(term, of)| test(term, of, scope).is_assignable());
                if fits { Assignable::Weakly } else { Assignable::No }
            }
            CqlType::Tuple(_) => Assignable::No,
            _ => match elements.as_slice() {
                [single] => test(single, receiver, scope),
                _ => Assignable::No,
            },
        },
        Written::TypeHint(name, _) => match crate::ddl::resolve_type(name, &scope.keyspace, scope.catalog) {
            Ok(hinted) => test_type(&hinted, receiver),
            Err(_) => Assignable::No,
        },
        Written::Function(_) | Written::Cast(..) | Written::Binary(..) | Written::Negate(_) => {
            match functions::call_type(term, Some(receiver), scope) {
                Some(returned) => test_type(&returned, receiver),
                // A better message comes when the call itself is planned.
                None => Assignable::Weakly,
            }
        }
    }
}
