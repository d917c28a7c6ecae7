//! `CAST(a AS type)`.

use types::{CqlType, date, timestamp, uuid};

use super::ScalarFunction;
use super::number::{NUMERIC, Number};

/// The casts to a type: `cast_as_int`, also as `castasint` (`CAST(a AS int)`).
pub(super) fn named(name: &str) -> Vec<ScalarFunction> {
    let Some(to) = name.strip_prefix("cast_as_").or_else(|| name.strip_prefix("castas")) else {
        return Vec::new();
    };
    let Some(to) = CqlType::from_native_name(to) else { return Vec::new() };
    sources(&to).into_iter().map(|from| cast(name, from, to.clone())).collect()
}

fn sources(to: &CqlType) -> Vec<CqlType> {
    match to {
        CqlType::Text | CqlType::Ascii => {
            let mut all = NUMERIC.to_vec();
            if *to == CqlType::Text {
                all.push(CqlType::Ascii);
            }
            all.extend([
                CqlType::Inet,
                CqlType::Boolean,
                CqlType::Timeuuid,
                CqlType::Timestamp,
                CqlType::Date,
                CqlType::Time,
                CqlType::Uuid,
            ]);
            all
        }
        CqlType::Date => vec![CqlType::Timeuuid, CqlType::Timestamp],
        CqlType::Timestamp => vec![CqlType::Timeuuid, CqlType::Date],
        CqlType::Counter => Vec::new(),
        _ if NUMERIC.contains(to) => NUMERIC.iter().filter(|from| *from != to).cloned().collect(),
        _ => Vec::new(),
    }
}

fn cast(name: &str, from: CqlType, to: CqlType) -> ScalarFunction {
    let (source, target) = (from.clone(), to.clone());
    ScalarFunction::native(name, vec![from], to, move |arguments, _| {
        let Some(value) = arguments[0] else { return Ok(None) };
        if value.is_empty() && source.empty_is_meaningless() {
            return Ok(None);
        }
        match target {
            CqlType::Text | CqlType::Ascii => Ok(Some(source.to_text(value).into_bytes())),
            CqlType::Date => Ok(millis_of(&source, value).map(|ms| date::from_millis(ms).to_vec())),
            CqlType::Timestamp => Ok(millis_of(&source, value).map(|ms| ms.to_be_bytes().to_vec())),
            _ => match Number::decode(&source, value)? {
                Some(number) => Ok(Some(number.encode(&target)?)),
                None => Ok(None),
            },
        }
    })
}

/// Milliseconds since 1970 of a value of a temporal type.
pub(super) fn millis_of(cql_type: &CqlType, value: &[u8]) -> Option<i64> {
    match cql_type {
        CqlType::Timestamp => timestamp::decode(value),
        CqlType::Date => date::to_millis(value),
        CqlType::Timeuuid => uuid::unix_millis(value),
        _ => None,
    }
}
