//! Aggregates: `count`, `min`, `max`, `sum`, `avg`.

use num_bigint::BigInt;
use types::CqlType;

use super::decimal::{ArithmeticError, Decimal};
use super::number::{NUMERIC, Number};
use crate::QueryError;

/// A function of many rows.
#[derive(Clone, Debug)]
pub(crate) struct AggregateFunction {
    /// `system.max`
    pub(crate) name: String,
    /// None for `count(*)`.
    pub(crate) argument: Option<CqlType>,
    pub(crate) returns: CqlType,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    CountRows,
    Count,
    Min,
    Max,
    Sum,
    Average,
}

/// What an aggregate has seen so far.
#[derive(Clone, Debug)]
pub(crate) struct AggregateState {
    kind: Kind,
    cql_type: CqlType,
    count: i64,
    best: Option<Vec<u8>>,
    sum: Sum,
}

#[derive(Clone, Debug)]
enum Sum {
    Integer(BigInt),
    /// Kahan's sum, and the plain one for what is not finite.
    Double {
        sum: f64,
        compensation: f64,
        simple: f64,
    },
    Decimal(Decimal),
    /// A running average, rounded at every step to the scale at hand, as Cassandra's.
    DecimalAverage(Decimal),
}

/// `count(*)`
pub(crate) fn count_rows() -> AggregateFunction {
    AggregateFunction {
        name: "system.count_rows".into(),
        argument: None,
        returns: CqlType::Bigint,
        kind: Kind::CountRows,
    }
}

/// The overloads of that name for an argument of that type; `None` when there is no such aggregate.
pub(super) fn named(name: &str, argument: Option<&CqlType>) -> Option<Vec<AggregateFunction>> {
    let make = |kind, argument: CqlType, returns| AggregateFunction {
        name: format!("system.{name}"),
        argument: Some(argument),
        returns,
        kind,
    };
    Some(match name {
        "count_rows" | "countrows" => vec![count_rows()],
        "count" => vec![make(Kind::Count, CqlType::Blob, CqlType::Bigint)],
        "min" | "max" => {
            let kind = if name == "min" { Kind::Min } else { Kind::Max };
            let Some(of) = argument else { return Some(Vec::new()) };
            let of = of.freeze();
            vec![make(kind, of.clone(), of)]
        }
        "sum" | "avg" => {
            let kind = if name == "sum" { Kind::Sum } else { Kind::Average };
            NUMERIC.iter().map(|of| make(kind, of.clone(), of.clone())).collect()
        }
        _ => return None,
    })
}

impl AggregateFunction {
    pub(crate) fn signature(&self) -> String {
        super::signature(&self.name, self.argument.as_slice(), &self.returns)
    }

    /// Nothing seen yet.
    pub(crate) fn start(&self) -> AggregateState {
        let cql_type = self.argument.clone().unwrap_or(CqlType::Blob);
        let sum = match (&cql_type, self.kind) {
            (CqlType::Float | CqlType::Double, _) => Sum::Double { sum: 0.0, compensation: 0.0, simple: 0.0 },
            (CqlType::Decimal, Kind::Average) => Sum::DecimalAverage(BigInt::ZERO.into()),
            (CqlType::Decimal, _) => Sum::Decimal(BigInt::ZERO.into()),
            _ => Sum::Integer(BigInt::ZERO),
        };
        AggregateState { kind: self.kind, cql_type, count: 0, best: None, sum }
    }
}

impl AggregateState {
    /// Takes in the argument's value in one more row.
    ///
    /// # Errors
    /// A sum has too many digits.
    pub(crate) fn add(&mut self, value: Option<&[u8]>) -> Result<(), QueryError> {
        if self.kind == Kind::CountRows {
            self.count += 1;
            return Ok(());
        }
        let Some(value) = value else { return Ok(()) };
        match self.kind {
            Kind::CountRows | Kind::Count => self.count += 1,
            Kind::Min | Kind::Max => {
                let wins = |best: &Vec<u8>| {
                    let order = self.cql_type.compare(value, best);
                    if self.kind == Kind::Min { order.is_lt() } else { order.is_gt() }
                };
                if self.best.as_ref().is_none_or(wins) {
                    self.best = Some(value.to_vec());
                }
            }
            Kind::Sum | Kind::Average => {
                if let Some(number) = Number::decode(&self.cql_type, value)? {
                    self.count += 1;
                    self.sum.add(&number, self.count)?;
                }
            }
        }
        Ok(())
    }

    /// The aggregate's value over all that was seen.
    pub(crate) fn finish(&self) -> Result<Option<Vec<u8>>, QueryError> {
        Ok(match self.kind {
            Kind::CountRows | Kind::Count => Some(self.count.to_be_bytes().to_vec()),
            Kind::Min | Kind::Max => self.best.clone(),
            Kind::Sum => Some(self.sum.total().encode(&self.cql_type)?),
            Kind::Average => Some(self.sum.average(self.count).encode(&self.cql_type)?),
        })
    }
}

impl Sum {
    /// Takes in the `count`th number.
    fn add(&mut self, number: &Number, count: i64) -> Result<(), ArithmeticError> {
        match self {
            Sum::Integer(sum) => *sum += number.as_varint()?,
            Sum::Decimal(sum) => *sum = sum.plus_exactly(&number.as_operand()?)?,
            Sum::DecimalAverage(average) => {
                let difference = number.as_operand()?.plus_exactly(&average.negated())?;
                *average = average.plus_exactly(&difference.divided_by_count(count))?;
            }
            Sum::Double { sum, compensation, simple } => {
                let value = number.as_f64();
                *simple += value;
                let corrected = value - *compensation;
                let total = *sum + corrected;
                *compensation = (total - *sum) - corrected;
                *sum = total;
            }
        }
        Ok(())
    }

    fn total(&self) -> Number {
        match self {
            Sum::Integer(sum) => Number::Varint(sum.clone()),
            Sum::Decimal(decimal) | Sum::DecimalAverage(decimal) => Number::Decimal(decimal.clone()),
            Sum::Double { sum, simple, .. } => {
                Number::Double(if sum.is_nan() && simple.is_infinite() { *simple } else { *sum })
            }
        }
    }

    fn average(&self, count: i64) -> Number {
        if count == 0 {
            return match self {
                Sum::Double { .. } => Number::Double(0.0),
                _ => Number::Integer(0),
            };
        }
        match self {
            Sum::Integer(sum) => Number::Varint(sum / BigInt::from(count)),
            Sum::Decimal(_) | Sum::DecimalAverage(_) => self.total(),
            Sum::Double { .. } => Number::Double(self.total().as_f64() / count as f64),
        }
    }
}
