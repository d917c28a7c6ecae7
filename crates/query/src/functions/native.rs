//! The scalar functions that have fixed arguments: time, identifiers, blobs, tokens, JSON.

use schema::Table;
use types::{CqlType, Token, blob, date, encoding, uuid};

use super::ScalarFunction;
use super::cast::millis_of;
use super::decimal::ArithmeticError;
use super::number::{self, NUMERIC, Number};
use crate::QueryError;

/// The types `…AsBlob` and `blobAs…` know.
const BLOB_TYPES: &[CqlType] = &[
    CqlType::Ascii,
    CqlType::Bigint,
    CqlType::Boolean,
    CqlType::Counter,
    CqlType::Date,
    CqlType::Decimal,
    CqlType::Double,
    CqlType::Duration,
    CqlType::Float,
    CqlType::Inet,
    CqlType::Int,
    CqlType::Smallint,
    CqlType::Text,
    CqlType::Time,
    CqlType::Timestamp,
    CqlType::Timeuuid,
    CqlType::Tinyint,
    CqlType::Uuid,
    CqlType::Varint,
];

/// The functions of that (folded) name.
pub(super) fn named(name: &str) -> Vec<ScalarFunction> {
    match name {
        "now" | "currenttimeuuid" | "current_timeuuid" => {
            vec![ScalarFunction::native(name, vec![], CqlType::Timeuuid, |_, environment| {
                Ok(Some(environment.time_uuid().to_vec()))
            })]
        }
        "currenttimestamp" | "current_timestamp" => {
            vec![ScalarFunction::native(name, vec![], CqlType::Timestamp, |_, environment| {
                Ok(Some(environment.now_millis().to_be_bytes().to_vec()))
            })]
        }
        "currentdate" | "current_date" => {
            vec![ScalarFunction::native(name, vec![], CqlType::Date, |_, environment| {
                Ok(Some(date::from_millis(environment.now_millis()).to_vec()))
            })]
        }
        "currenttime" | "current_time" => {
            vec![ScalarFunction::native(name, vec![], CqlType::Time, |_, environment| {
                let nanoseconds = environment.now_millis().rem_euclid(86_400_000) * 1_000_000;
                Ok(Some(nanoseconds.to_be_bytes().to_vec()))
            })]
        }
        "uuid" => vec![ScalarFunction::native(name, vec![], CqlType::Uuid, |_, environment| {
            Ok(Some(environment.random_uuid().to_vec()))
        })],
        "mintimeuuid" | "min_timeuuid" => {
            vec![of_millis(name, CqlType::Timestamp, CqlType::Timeuuid, |ms| {
                uuid::min_at_millis(ms).to_vec()
            })]
        }
        "maxtimeuuid" | "max_timeuuid" => {
            vec![of_millis(name, CqlType::Timestamp, CqlType::Timeuuid, |ms| {
                uuid::max_at_millis(ms).to_vec()
            })]
        }
        "todate" | "to_date" => [CqlType::Timeuuid, CqlType::Timestamp]
            .into_iter()
            .map(|from| of_millis(name, from, CqlType::Date, |ms| date::from_millis(ms).to_vec()))
            .collect(),
        "totimestamp" | "to_timestamp" => [CqlType::Timeuuid, CqlType::Date]
            .into_iter()
            .map(|from| of_millis(name, from, CqlType::Timestamp, |ms| ms.to_be_bytes().to_vec()))
            .collect(),
        "tounixtimestamp" | "to_unix_timestamp" => [CqlType::Timeuuid, CqlType::Timestamp, CqlType::Date]
            .into_iter()
            .map(|from| of_millis(name, from, CqlType::Bigint, |ms| ms.to_be_bytes().to_vec()))
            .collect(),
        "abs" | "round" | "exp" | "log" | "log10" => NUMERIC.iter().filter_map(|of| math(name, of)).collect(),
        _ => blob_conversion(name).into_iter().collect(),
    }
}

fn of_millis(name: &str, from: CqlType, to: CqlType, convert: fn(i64) -> Vec<u8>) -> ScalarFunction {
    let source = from.clone();
    ScalarFunction::native(name, vec![from], to, move |arguments, _| {
        Ok(arguments[0].and_then(|value| millis_of(&source, value)).map(convert))
    })
}

/// `abs`, `round`, `exp`, `log` and `log10`; the last three not of decimals and varints yet, which
/// have more digits than a double.
fn math(name: &str, of: &CqlType) -> Option<ScalarFunction> {
    let is_exact = matches!(of, CqlType::Decimal | CqlType::Varint);
    Some(match name {
        "abs" => of_number(name, of, |number| Ok(number::abs(number))),
        "round" => of_number(name, of, number::round),
        _ if is_exact => return None,
        "exp" => of_number(name, of, |number| Ok(Number::Double(number.as_f64().exp()))),
        "log" => of_number(name, of, |number| Ok(Number::Double(number.as_f64().ln()))),
        _ => of_number(name, of, |number| Ok(Number::Double(number.as_f64().log10()))),
    })
}

/// A function from numbers of a type to numbers of that type.
pub(super) fn of_number(
    name: &str,
    of: &CqlType,
    compute: fn(Number) -> Result<Number, ArithmeticError>,
) -> ScalarFunction {
    let source = of.clone();
    ScalarFunction::native(name, vec![of.clone()], of.clone(), move |arguments, _| {
        let Some(value) = arguments[0] else { return Ok(None) };
        let Some(number) = Number::decode(&source, value)? else { return Ok(None) };
        Ok(Some(compute(number)?.encode(&source)?))
    })
}

fn blob_conversion(name: &str) -> Option<ScalarFunction> {
    if let Some(of) = name.strip_prefix("blob_as_").or_else(|| name.strip_prefix("blobas")) {
        let to = blob_type(of)?;
        let (target, full_name) = (to.clone(), format!("system.{name}"));
        return Some(ScalarFunction::native(name, vec![CqlType::Blob], to, move |arguments, _| {
            if let Some(value) = arguments[0]
                && target.validate(value).is_err()
            {
                return Err(QueryError::invalid(stdx::brief!(
                    "In call to function {full_name}, value 0x{} is not a valid binary representation for type {target}",
                    blob::format(value)
                )));
            }
            Ok(arguments[0].map(<[u8]>::to_vec))
        }));
    }
    let of = name.strip_suffix("_as_blob").or_else(|| name.strip_suffix("asblob"))?;
    let from = blob_type(of)?;
    Some(ScalarFunction::native(name, vec![from], CqlType::Blob, |arguments, _| {
        Ok(arguments[0].map(<[u8]>::to_vec))
    }))
}

fn blob_type(name: &str) -> Option<CqlType> {
    let named = CqlType::from_native_name(name)?;
    BLOB_TYPES.contains(&named).then_some(named)
}

/// `token` of a table's partition key.
pub(super) fn token(table: &Table) -> ScalarFunction {
    let arguments = table.partition_key().iter().map(|column| column.cql_type.clone()).collect();
    ScalarFunction::native("token", arguments, CqlType::Bigint, |arguments, _| {
        let Some(parts) = arguments.iter().copied().collect::<Option<Vec<&[u8]>>>() else {
            return Ok(None);
        };
        let key = encoding::partition_key(parts.into_iter())?;
        Ok(Some(Token::of(&key).0.to_be_bytes().to_vec()))
    })
}

/// `toJson` of a type.
pub(super) fn to_json(name: &str, of: CqlType) -> ScalarFunction {
    let source = of.clone();
    ScalarFunction::native(name, vec![of], CqlType::Text, move |arguments, _| {
        Ok(Some(source.to_json(arguments[0]).into_bytes()))
    })
}
