//! Constants: which types their tokens fit, and their encoding.

use bytes::Bytes;
use cql::ast::{Literal, LiteralKind};
use types::{CqlType, blob, decimal, float, uuid};

use super::Assignable;
use crate::QueryError;
use crate::scope::Receiver;

/// The kind of token, as Cassandra's messages name it.
fn kind_name(kind: LiteralKind) -> &'static str {
    match kind {
        LiteralKind::String | LiteralKind::DollarString => "STRING",
        LiteralKind::Integer => "INTEGER",
        LiteralKind::Float => "FLOAT",
        LiteralKind::Boolean => "BOOLEAN",
        LiteralKind::Uuid => "UUID",
        LiteralKind::Hex => "HEX",
        LiteralKind::Duration => "DURATION",
    }
}

/// The type a constant has where nothing says otherwise; Cassandra takes a hex constant for a
/// tinyint then (its `ByteType`), kept as it is.
pub(crate) fn preferred_type(literal: &Literal) -> Option<CqlType> {
    let text = literal.text.as_str();
    Some(match literal.kind {
        LiteralKind::String | LiteralKind::DollarString => CqlType::Text,
        LiteralKind::Integer => match (text.parse::<i32>(), text.parse::<i64>()) {
            (Ok(_), _) => CqlType::Int,
            (_, Ok(_)) => CqlType::Bigint,
            _ => CqlType::Varint,
        },
        LiteralKind::Float => match text {
            "NaN" | "-NaN" | "Infinity" | "-Infinity" => CqlType::Double,
            _ => preferred_float(text),
        },
        LiteralKind::Boolean => CqlType::Boolean,
        LiteralKind::Uuid => match uuid::parse(text) {
            Ok(bytes) if bytes[6] >> 4 == 1 => CqlType::Timeuuid,
            _ => CqlType::Uuid,
        },
        LiteralKind::Hex => CqlType::Tinyint,
        LiteralKind::Duration => CqlType::Duration,
    })
}

/// A double if that holds the number exactly enough to print it the same, else a decimal.
fn preferred_float(text: &str) -> CqlType {
    let exact = text.parse::<f64>().ok().filter(|double| double.is_finite()).and_then(|double| {
        let printed = decimal::parse(&float::format_double(&double.to_be_bytes())).ok()?;
        let written = decimal::parse(text).ok()?;
        Some(decimal::compare(&printed, &written).is_eq())
    });
    if exact == Some(true) { CqlType::Double } else { CqlType::Decimal }
}

/// May a constant be given for that type?
pub(super) fn test(literal: &Literal, receiver: &CqlType) -> Assignable {
    match fits(literal.kind, receiver) {
        // Cassandra leaves types that are neither native nor collections to their own parsers.
        false if matches!(receiver, CqlType::Tuple(_)) => Assignable::Weakly,
        false => Assignable::No,
        true if preferred_type(literal).as_ref() == Some(receiver) => Assignable::Exactly,
        true => Assignable::Weakly,
    }
}

/// Can a constant of that kind be one of that native type?
fn fits(kind: LiteralKind, receiver: &CqlType) -> bool {
    match kind {
        LiteralKind::String | LiteralKind::DollarString => matches!(
            receiver,
            CqlType::Ascii
                | CqlType::Text
                | CqlType::Inet
                | CqlType::Date
                | CqlType::Time
                | CqlType::Timestamp
        ),
        LiteralKind::Integer => matches!(
            receiver,
            CqlType::Bigint
                | CqlType::Counter
                | CqlType::Date
                | CqlType::Decimal
                | CqlType::Double
                | CqlType::Duration
                | CqlType::Float
                | CqlType::Int
                | CqlType::Smallint
                | CqlType::Time
                | CqlType::Timestamp
                | CqlType::Tinyint
                | CqlType::Varint
        ),
        LiteralKind::Uuid => matches!(receiver, CqlType::Uuid | CqlType::Timeuuid),
        LiteralKind::Float => matches!(receiver, CqlType::Decimal | CqlType::Double | CqlType::Float),
        LiteralKind::Boolean => *receiver == CqlType::Boolean,
        LiteralKind::Hex => matches!(receiver, CqlType::Blob | CqlType::Tinyint),
        LiteralKind::Duration => *receiver == CqlType::Duration,
    }
}

/// The constant as a value of the receiver's type.
///
/// # Errors
/// It is of the wrong kind, or its text is no value of the type.
pub(super) fn plan(literal: &Literal, receiver: &Receiver, now_millis: i64) -> Result<Bytes, QueryError> {
    if test(literal, &receiver.cql_type) == Assignable::No {
        let shown = receiver.cql_type.to_string();
        return Err(QueryError::invalid(stdx::brief!(
            "Invalid {} constant ({}) for \"{}\" of type {shown}",
            kind_name(literal.kind),
            literal.text,
            receiver.name,
        )));
    }
    encode(literal, &receiver.cql_type, now_millis)
}

/// The constant as a value of that type; `None` when it is of the wrong kind.
pub(crate) fn plan_fitting(
    literal: &Literal,
    cql_type: &CqlType,
    now_millis: i64,
) -> Option<Result<Bytes, QueryError>> {
    is_fitting(literal, cql_type).then(|| encode(literal, cql_type, now_millis))
}

/// The same behind other values.
pub(crate) fn append_fitting(
    literal: &Literal,
    cql_type: &CqlType,
    now_millis: i64,
    out: &mut Vec<u8>,
) -> Option<Result<(), QueryError>> {
    is_fitting(literal, cql_type).then(|| {
        let value = Encoded::of(literal, cql_type, now_millis)?;
        out.extend_from_slice(value.as_bytes());
        Ok(())
    })
}

fn is_fitting(literal: &Literal, cql_type: &CqlType) -> bool {
    fits(literal.kind, cql_type) || matches!(cql_type, CqlType::Tuple(_))
}

/// The constant as a value of a type it fits.
///
/// # Errors
/// Its text is no value of the type.
fn encode(literal: &Literal, cql_type: &CqlType, now_millis: i64) -> Result<Bytes, QueryError> {
    Ok(match Encoded::of(literal, cql_type, now_millis)? {
        Encoded::Other(value) => value.into(),
        usual => Bytes::copy_from_slice(usual.as_bytes()),
    })
}

/// A constant's value, the usual ones without memory of their own.
enum Encoded<'a> {
    Text(&'a str),
    Int([u8; 4]),
    Bigint([u8; 8]),
    Other(Vec<u8>),
}

impl<'a> Encoded<'a> {
    /// That of a constant for a type it fits.
    ///
    /// # Errors
    /// Its text is no value of the type.
    fn of(literal: &'a Literal, cql_type: &CqlType, now_millis: i64) -> Result<Encoded<'a>, QueryError> {
        let text = literal.text.as_str();
        if literal.kind == LiteralKind::Hex {
            let digits = text.get(2..).unwrap_or_default();
            return Ok(Encoded::Other(blob::parse(digits)?));
        }
        Ok(match cql_type {
            CqlType::Text => Encoded::Text(text),
            CqlType::Int if let Ok(number) = text.parse::<i32>() => Encoded::Int(number.to_be_bytes()),
            CqlType::Bigint | CqlType::Counter if let Ok(number) = text.parse::<i64>() => {
                Encoded::Bigint(number.to_be_bytes())
            }
            CqlType::Counter => Encoded::Other(CqlType::Bigint.from_text(text, now_millis)?),
            _ => Encoded::Other(cql_type.from_text(text, now_millis)?),
        })
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Encoded::Text(text) => text.as_bytes(),
            Encoded::Int(bytes) => bytes,
            Encoded::Bigint(bytes) => bytes,
            Encoded::Other(bytes) => bytes,
        }
    }
}
