//! Functions of whole collections.

use types::CqlType;
use types::encoding::{self, Parts};

use super::{ScalarFunction, aggregate};

/// What kind of argument the function of that name wants, if there is one.
pub(super) fn wanted_argument(name: &str) -> Option<&'static str> {
    Some(match name {
        "map_keys" | "map_values" => "a map",
        "collection_count" => "a collection",
        "collection_min" | "collection_max" => "a set or list",
        "collection_sum" | "collection_avg" => "a numeric set or list",
        _ => return None,
    })
}

/// The function of that name for an argument of that type.
pub(super) fn named(name: &str, argument: &CqlType) -> Option<ScalarFunction> {
    let whole = argument.freeze();
    match (name, argument) {
        ("map_keys", CqlType::Map { key, .. }) => {
            let returns = CqlType::Set { element: key.clone(), frozen: true };
            Some(ScalarFunction::native(name, vec![whole], returns, |arguments, _| {
                Ok(arguments[0].map(|value| every_second(value, 0)))
            }))
        }
        ("map_values", CqlType::Map { value, .. }) => {
            let returns = CqlType::List { element: value.clone(), frozen: true };
            Some(ScalarFunction::native(name, vec![whole], returns, |arguments, _| {
                Ok(arguments[0].map(|value| every_second(value, 1)))
            }))
        }
        ("collection_count", CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. }) => {
            Some(ScalarFunction::native(name, vec![whole], CqlType::Int, |arguments, _| {
                let count = |value: &[u8]| value.get(..4).map_or_else(|| vec![0; 4], <[u8]>::to_vec);
                Ok(arguments[0].map(count))
            }))
        }
        (
            "collection_min" | "collection_max",
            CqlType::List { element, .. } | CqlType::Set { element, .. },
        ) => {
            let (of, wants_max) = (element.clone(), name == "collection_max");
            Some(ScalarFunction::native(name, vec![whole], (**element).clone(), move |arguments, _| {
                let Some(value) = arguments[0] else { return Ok(None) };
                let parts = Parts::new(value, 1).into_iter().flatten().map_while(Result::ok).flatten();
                let best = match wants_max {
                    true => parts.max_by(|a, b| of.compare(a, b)),
                    false => parts.min_by(|a, b| of.compare(a, b)),
                };
                Ok(best.map(<[u8]>::to_vec))
            }))
        }
        (
            "collection_sum" | "collection_avg",
            CqlType::List { element, .. } | CqlType::Set { element, .. },
        ) => {
            let aggregate = name.strip_prefix("collection_").unwrap_or(name);
            let overloads = aggregate::named(aggregate, Some(element))?;
            let function = overloads.into_iter().find(|f| f.argument.as_ref() == Some(&**element))?;
            let returns = function.returns.clone();
            Some(ScalarFunction::native(name, vec![whole], returns, move |arguments, _| {
                let Some(value) = arguments[0] else { return Ok(None) };
                let mut state = function.start();
                for part in Parts::new(value, 1).into_iter().flatten().map_while(Result::ok) {
                    state.add(part)?;
                }
                state.finish()
            }))
        }
        _ => None,
    }
}

fn every_second(map: &[u8], first: usize) -> Vec<u8> {
    let parts = Parts::new(map, 2).into_iter().flatten().map_while(Result::ok);
    let kept: Vec<Option<&[u8]>> = parts.skip(first).step_by(2).collect();
    encoding::collection(kept.len(), kept)
}
