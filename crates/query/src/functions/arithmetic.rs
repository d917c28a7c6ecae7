//! `+ - * / %` and negation, between numbers of any two types, and times moved by durations.

use cql::ast::ArithmeticOperator;
use num_bigint::BigInt;
use num_traits::Zero;
use types::CqlType;

use super::decimal::{ArithmeticError, Decimal};
use super::number::{NUMERIC, Number, negate};
use super::{ScalarFunction, native};
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

/// All overloads of an operator, those of wide types first: of several that fit, these lose nothing.
pub(super) fn overloads(operator: ArithmeticOperator) -> Vec<ScalarFunction> {
    let mut all = Vec::with_capacity(100);
    for left in NUMERIC.iter().rev() {
        for right in NUMERIC.iter().rev() {
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

/// Adding two numbers or texts of one type; `None` of other types.
pub(crate) fn addition(of: &CqlType) -> Option<ScalarFunction> {
    match of {
        CqlType::Text | CqlType::Ascii => Some(concatenation(of.clone(), of.clone())),
        CqlType::Counter => None,
        _ => NUMERIC.contains(of).then(|| numeric(ArithmeticOperator::Add, of.clone(), of.clone())),
    }
}

/// Negation of every numeric type.
pub(super) fn negations() -> Vec<ScalarFunction> {
    let negation = |of: &CqlType| native::of_number("_negate", of, |number| Ok(negate(number)));
    NUMERIC.iter().map(negation).collect()
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
        let computed = || {
            let (Some(a), Some(b)) = (Number::decode(&left_type, a)?, Number::decode(&right_type, b)?) else {
                return Ok(None);
            };
            compute(operator, &a, &b, &target)?.encode(&target).map(Some)
        };
        computed().map_err(|error| failure(operator, [&left_type, &right_type], &error))
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

/// As Cassandra tells its clients that an operation failed.
fn failure(operator: ArithmeticOperator, operands: [&CqlType; 2], error: &ArithmeticError) -> QueryError {
    let [left, right] = operands.map(ToString::to_string);
    QueryError::FunctionFailure {
        message: format!("the operation '{left} {} {right}' failed: {error}", symbol(operator)),
        keyspace: "system".into(),
        function: function_name(operator).into(),
        argument_types: vec![left, right],
    }
}

/// What comes out, in the type that it is to have.
fn compute(
    operator: ArithmeticOperator,
    a: &Number,
    b: &Number,
    target: &CqlType,
) -> Result<Number, ArithmeticError> {
    Ok(match target {
        CqlType::Float => Number::Float(of_doubles(operator, a.as_f64(), b.as_f64()) as f32),
        CqlType::Double => Number::Double(of_doubles(operator, a.as_f64(), b.as_f64())),
        CqlType::Decimal => Number::Decimal(of_decimals(operator, &a.as_operand()?, &b.as_operand()?)?),
        CqlType::Varint => Number::Varint(of_varints(operator, a.as_varint()?, b.as_varint()?)?),
        _ => Number::Integer(of_integers(operator, a.as_i64()?, b.as_i64()?)?),
    })
}

fn of_doubles(operator: ArithmeticOperator, a: f64, b: f64) -> f64 {
    match operator {
        ArithmeticOperator::Add => a + b,
        ArithmeticOperator::Subtract => a - b,
        ArithmeticOperator::Multiply => a * b,
        ArithmeticOperator::Divide => a / b,
        ArithmeticOperator::Modulo => a % b,
    }
}

fn of_decimals(operator: ArithmeticOperator, a: &Decimal, b: &Decimal) -> Result<Decimal, ArithmeticError> {
    match operator {
        ArithmeticOperator::Add => a.plus(b),
        ArithmeticOperator::Subtract => a.plus(&b.negated()),
        ArithmeticOperator::Multiply => a.times(b),
        ArithmeticOperator::Divide => a.divided_by(b),
        ArithmeticOperator::Modulo => a.modulo(b),
    }
}

fn of_varints(operator: ArithmeticOperator, a: BigInt, b: BigInt) -> Result<BigInt, ArithmeticError> {
    Ok(match operator {
        ArithmeticOperator::Divide | ArithmeticOperator::Modulo if b.is_zero() => {
            return Err(ArithmeticError::BigIntegerByZero);
        }
        ArithmeticOperator::Add => a + b,
        ArithmeticOperator::Subtract => a - b,
        ArithmeticOperator::Multiply => a * b,
        ArithmeticOperator::Divide => a / b,
        ArithmeticOperator::Modulo => a % b,
    })
}

fn of_integers(operator: ArithmeticOperator, a: i64, b: i64) -> Result<i64, ArithmeticError> {
    Ok(match operator {
        ArithmeticOperator::Divide | ArithmeticOperator::Modulo if b == 0 => {
            return Err(ArithmeticError::IntegerByZero);
        }
        ArithmeticOperator::Add => a.wrapping_add(b),
        ArithmeticOperator::Subtract => a.wrapping_sub(b),
        ArithmeticOperator::Multiply => a.wrapping_mul(b),
        ArithmeticOperator::Divide => a.wrapping_div(b),
        ArithmeticOperator::Modulo => a.wrapping_rem(b),
    })
}

fn concatenation(left: CqlType, right: CqlType) -> ScalarFunction {
    let result =
        if left == CqlType::Ascii && right == CqlType::Ascii { CqlType::Ascii } else { CqlType::Text };
    ScalarFunction::native("_add", vec![left, right], result, |arguments, _| {
        let (Some(a), Some(b)) = (arguments[0], arguments[1]) else { return Ok(None) };
        Ok(Some([a, b].concat()))
    })
}
