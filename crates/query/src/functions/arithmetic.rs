//! `+ - * / %` and negation, between numbers of any two types, and times moved by durations.

use bigdecimal::BigDecimal;
use cql::ast::ArithmeticOperator;
use num_bigint::BigInt;
use num_traits::Zero;
use types::CqlType;

use super::ScalarFunction;
use super::cast::{NUMERIC, Number};
use crate::QueryError;

/// The symbol.
pub(crate) fn symbol(operator: ArithmeticOperator) -> char {
    match operator {
        ArithmeticOperator::Add => '+',
        ArithmeticOperator::Subtract => '-',
        ArithmeticOperator::Multiply => '*',
        ArithmeticOperator::Divide => '/',
        ArithmeticOperator::Modulo => '%',
    }
}

/// All overloads of an operator.
pub(super) fn overloads(operator: ArithmeticOperator) -> Vec<ScalarFunction> {
    let mut all = Vec::with_capacity(100);
    for left in NUMERIC {
        for right in NUMERIC {
            all.push(numeric(operator, left.clone(), right.clone()));
        }
    }
    if operator == ArithmeticOperator::Add {
        for (left, right) in [
            (CqlType::Text, CqlType::Text),
            (CqlType::Ascii, CqlType::Ascii),
            (CqlType::Ascii, CqlType::Text),
            (CqlType::Text, CqlType::Ascii),
        ] {
            all.push(concatenation(left, right));
        }
    }
    all
}

/// Negation of every numeric type.
pub(super) fn negations() -> Vec<ScalarFunction> {
    let negation = |of: &CqlType| {
        let source = of.clone();
        ScalarFunction::native("_negate", vec![of.clone()], of.clone(), move |arguments, _| {
            let number = arguments[0].and_then(|value| Number::decode(&source, value));
            number.map(|number| negate(&number).encode(&source)).transpose()
        })
    };
    NUMERIC.iter().map(negation).collect()
}

fn negate(number: &Number) -> Number {
    match number {
        Number::Integer(value) => Number::Integer(value.wrapping_neg()),
        Number::Float(value) => Number::Float(-value),
        Number::Double(value) => Number::Double(-value),
        Number::Decimal(value) => Number::Decimal(-value),
        Number::Varint(value) => Number::Varint(-value),
    }
}

/// The type of the result: as `OperationFcts.returnType` widens.
fn result_type(left: &CqlType, right: &CqlType) -> CqlType {
    let is_floating = |of: &CqlType| matches!(of, CqlType::Float | CqlType::Double | CqlType::Decimal);
    let bytes = |of: &CqlType| match of {
        CqlType::Tinyint => 1,
        CqlType::Smallint => 2,
        CqlType::Int | CqlType::Float => 4,
        CqlType::Bigint | CqlType::Double | CqlType::Counter => 8,
        _ => 9,
    };
    let widest = bytes(left).max(bytes(right));
    if is_floating(left) || is_floating(right) {
        match widest {
            9 => CqlType::Decimal,
            8 => CqlType::Double,
            _ => CqlType::Float,
        }
    } else {
        match widest {
            9 => CqlType::Varint,
            8 => CqlType::Bigint,
            4 => CqlType::Int,
            2 => CqlType::Smallint,
            _ => CqlType::Tinyint,
        }
    }
}

fn numeric(operator: ArithmeticOperator, left: CqlType, right: CqlType) -> ScalarFunction {
    let result = result_type(&left, &right);
    let (left_type, right_type, target) = (left.clone(), right.clone(), result.clone());
    ScalarFunction::native(function_name(operator), vec![left, right], result, move |arguments, _| {
        let (Some(a), Some(b)) = (arguments[0], arguments[1]) else { return Ok(None) };
        let (Some(a), Some(b)) = (Number::decode(&left_type, a), Number::decode(&right_type, b)) else {
            return Ok(None);
        };
        let operation = Operation { operator, left: &left_type, right: &right_type, result: &target };
        compute(operation, &a, &b)?.encode(&target).map(Some)
    })
}

pub(super) fn function_name(operator: ArithmeticOperator) -> &'static str {
    match operator {
        ArithmeticOperator::Add => "_add",
        ArithmeticOperator::Subtract => "_substract",
        ArithmeticOperator::Multiply => "_multiply",
        ArithmeticOperator::Divide => "_divide",
        ArithmeticOperator::Modulo => "_modulo",
    }
}

/// What an operator works on.
#[derive(Clone, Copy)]
struct Operation<'a> {
    operator: ArithmeticOperator,
    left: &'a CqlType,
    right: &'a CqlType,
    result: &'a CqlType,
}

impl Operation<'_> {
    fn by_zero(&self) -> QueryError {
        let (left, right) = (self.left.to_string(), self.right.to_string());
        QueryError::FunctionFailure {
            message: format!("the operation '{left} {} {right}' failed: / by zero", symbol(self.operator)),
            keyspace: "system".into(),
            function: function_name(self.operator).into(),
            argument_types: vec![left, right],
        }
    }
}

fn compute(operation: Operation<'_>, a: &Number, b: &Number) -> Result<Number, QueryError> {
    let Operation { operator, result: target, .. } = operation;
    use ArithmeticOperator::{Add, Divide, Modulo, Multiply, Subtract};
    Ok(match target {
        CqlType::Float | CqlType::Double => {
            let (a, b) = (a.as_f64(), b.as_f64());
            let result = match operator {
                Add => a + b,
                Subtract => a - b,
                Multiply => a * b,
                Divide => a / b,
                Modulo => a % b,
            };
            if *target == CqlType::Float { Number::Float(result as f32) } else { Number::Double(result) }
        }
        CqlType::Decimal => {
            let no_number = || QueryError::invalid("Infinite or NaN can not be converted to a decimal");
            let (a, b) = (a.as_decimal().ok_or_else(no_number)?, b.as_decimal().ok_or_else(no_number)?);
            if matches!(operator, Divide | Modulo) && b.is_zero() {
                return Err(operation.by_zero());
            }
            Number::Decimal(match operator {
                Add => a + b,
                Subtract => a - b,
                Multiply => a * b,
                Divide => divide_decimals(&a, &b),
                Modulo => a % b,
            })
        }
        CqlType::Varint => {
            let (a, b) = (a.as_varint(), b.as_varint());
            if matches!(operator, Divide | Modulo) && b == BigInt::zero() {
                return Err(operation.by_zero());
            }
            Number::Varint(match operator {
                Add => a + b,
                Subtract => a - b,
                Multiply => a * b,
                Divide => a / b,
                Modulo => a % b,
            })
        }
        _ => {
            let (a, b) = (a.as_i64(), b.as_i64());
            if matches!(operator, Divide | Modulo) && b == 0 {
                return Err(operation.by_zero());
            }
            Number::Integer(match operator {
                Add => a.wrapping_add(b),
                Subtract => a.wrapping_sub(b),
                Multiply => a.wrapping_mul(b),
                Divide => a.wrapping_div(b),
                Modulo => a.wrapping_rem(b),
            })
        }
    })
}

/// 32 to 10,000 digits, as Cassandra's `DecimalType.divide`; trailing zeros are dropped.
fn divide_decimals(a: &BigDecimal, b: &BigDecimal) -> BigDecimal {
    (a / b).with_prec(32).normalized()
}

fn concatenation(left: CqlType, right: CqlType) -> ScalarFunction {
    let result =
        if left == CqlType::Ascii && right == CqlType::Ascii { CqlType::Ascii } else { CqlType::Text };
    ScalarFunction::native("_add", vec![left, right], result, |arguments, _| {
        let (Some(a), Some(b)) = (arguments[0], arguments[1]) else { return Ok(None) };
        Ok(Some([a, b].concat()))
    })
}
