//! Values that are made of nothing else, fitted to types.

use types::CqlType;

use super::generator::Generator;
use super::maker::{Clock, Fraction, Maker, Width};
use super::span::{Literal, Span};
use crate::generator::Discrete;

/// Bytes or elements of a value, at most.
const SIZE_MAX: i64 = 1 << 24;

/// What makes a value on its own, without regard to partition and row.
pub(super) fn simple(name: &str, generator: &Generator, cql_type: &CqlType) -> Result<Option<Maker>, String> {
    Ok(match (generator, cql_type) {
        (Generator::Double { from, to, mean, deviation }, CqlType::Double | CqlType::Float) => {
            let of = fraction(*from, *to, *mean, *deviation).map_err(|why| format!("'{name}' {why}"))?;
            Some(Maker::Fraction { of, is_float: *cql_type == CqlType::Float })
        }
        (Generator::Boolean { chance }, CqlType::Boolean) => {
            if !(0.0..=1.0).contains(chance) {
                return Err(format!("'{name}' has the chance {chance}, which is not from 0 to 1"));
            }
            Some(Maker::Boolean(*chance))
        }
        (Generator::Constant { value }, _) => fixed(value, cql_type).map(Maker::Fixed),
        (Generator::Choice { of, weights }, _) => {
            let choice = choice(name, of.len(), weights.as_deref())?;
            let values = of.iter().map(|value| fixed(value, cql_type)).collect::<Option<Vec<_>>>();
            values.map(|values| Maker::Choice(values, choice))
        }
        (Generator::Uuid { of: None }, CqlType::Uuid) => Some(Maker::Uuid(None)),
        _ => None,
    })
}

/// What makes a time.
pub(super) fn time(generator: &Generator, cql_type: &CqlType) -> Option<Maker> {
    let clock = match cql_type {
        CqlType::Timestamp => Clock::Millis,
        CqlType::Bigint => Clock::Micros,
        CqlType::Timeuuid => Clock::Uuid,
        _ => return None,
    };
    match generator {
        Generator::Now { offset_ms } => Some(Maker::Now(*offset_ms, clock)),
        Generator::Time { start_ms, step_ms } => {
            Some(Maker::Time { start_ms: *start_ms, step_ms: *step_ms, clock })
        }
        _ => None,
    }
}

/// Can a number be written in so many bytes?
pub(super) fn has_room(width: Width, number: i64) -> bool {
    match width {
        Width::Bytes(bytes @ ..8) => {
            let bound = 1i64 << (8 * bytes - 1);
            (-bound..bound).contains(&number)
        }
        _ => true,
    }
}

/// How whole numbers of a type are written, if it has any.
pub(super) fn width(cql_type: &CqlType) -> Option<Width> {
    Some(match cql_type {
        CqlType::Tinyint => Width::Bytes(1),
        CqlType::Smallint => Width::Bytes(2),
        CqlType::Int => Width::Bytes(4),
        CqlType::Bigint | CqlType::Counter => Width::Bytes(8),
        CqlType::Varint => Width::Varint,
        _ => return None,
    })
}

/// Names and types of fields.
pub(super) fn fields(cql_type: &CqlType) -> Vec<(String, &CqlType)> {
    match cql_type {
        CqlType::UserDefined { definition, .. } => {
            definition.fields.iter().map(|(name, cql_type)| (name.clone(), cql_type)).collect()
        }
        CqlType::Tuple(types) => types.iter().enumerate().map(|(at, one)| (at.to_string(), one)).collect(),
        _ => Vec::new(),
    }
}

/// A literal in the bytes of a type, if it is one of it.
fn fixed(value: &Literal, cql_type: &CqlType) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match (value, cql_type) {
        (Literal::Whole(number), CqlType::Timestamp) => out.extend_from_slice(&number.to_be_bytes()),
        (Literal::Whole(number), _) if width(cql_type).is_some() => {
            let width = width(cql_type).filter(|width| has_room(*width, *number))?;
            width.write(*number, &mut out);
        }
        (Literal::Whole(_) | Literal::Fraction(_), CqlType::Double | CqlType::Float) => {
            let number = match value {
                Literal::Whole(number) => *number as f64,
                Literal::Fraction(number) => *number,
                _ => return None,
            };
            match cql_type {
                CqlType::Float => out.extend_from_slice(&(number as f32).to_be_bytes()),
                _ => out.extend_from_slice(&number.to_be_bytes()),
            }
        }
        (Literal::Truth(truth), CqlType::Boolean) => out.push(u8::from(*truth)),
        (Literal::Text(text), CqlType::Text | CqlType::Blob) => out.extend_from_slice(text.as_bytes()),
        (Literal::Text(text), CqlType::Ascii) if text.is_ascii() => out.extend_from_slice(text.as_bytes()),
        (Literal::Text(text), CqlType::Uuid) => out.extend_from_slice(&types::uuid::parse(text).ok()?),
        _ => return None,
    }
    Some(out)
}

/// A size that a value can have.
pub(super) fn sized(name: &str, span: Span) -> Result<Span, String> {
    let is_size = span.from >= 0 && span.to <= SIZE_MAX;
    if is_size { Ok(span) } else { Err(format!("'{name}' has a size below 0 or above {SIZE_MAX}")) }
}

fn fraction(
    from: Option<f64>,
    to: Option<f64>,
    mean: Option<f64>,
    deviation: Option<f64>,
) -> Result<Fraction, &'static str> {
    match (from, to, mean, deviation) {
        (Some(from), Some(to), None, None) if from <= to => Ok(Fraction::Even { from, to }),
        (None, None, Some(mean), Some(deviation)) if deviation >= 0.0 => {
            Ok(Fraction::Normal { mean, deviation })
        }
        _ => Err("has either from and to, the lower one first, or mean and deviation"),
    }
}

fn choice(name: &str, count: usize, weights: Option<&[f64]>) -> Result<Discrete<usize>, String> {
    let even = vec![1.0; count];
    let weights = weights.unwrap_or(&even);
    let are_weights = weights.iter().all(|weight| *weight >= 0.0 && weight.is_finite());
    if weights.len() != count || !are_weights || weights.iter().sum::<f64>() <= 0.0 {
        return Err(format!("'{name}' has {count} values, and needs as many weights, one of them above 0"));
    }
    Ok(Discrete::new(&weights.iter().copied().enumerate().collect::<Vec<_>>()))
}
