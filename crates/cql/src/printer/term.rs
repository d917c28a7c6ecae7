//! Values.

use std::fmt::{self, Display, Formatter};

use super::name::{FunctionName, Quoted};
use super::{commas, entries};
use crate::ast::{ArithmeticOperator, FunctionCall, IntegerValue, Literal, LiteralKind, Term};

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.kind {
            LiteralKind::DollarString if !self.text.contains("$$") && !self.text.ends_with('$') => {
                write!(f, "$${}$$", self.text)
            }
            LiteralKind::String | LiteralKind::DollarString => Quoted(&self.text).fmt(f),
            _ => f.write_str(&self.text),
        }
    }
}

impl Display for IntegerValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IntegerValue::Literal(digits) => f.write_str(digits),
            IntegerValue::Marker(marker) => marker.fmt(f),
        }
    }
}

impl ArithmeticOperator {
    /// The sign of the operator.
    pub fn sign(self) -> char {
        match self {
            ArithmeticOperator::Add => '+',
            ArithmeticOperator::Subtract => '-',
            ArithmeticOperator::Multiply => '*',
            ArithmeticOperator::Divide => '/',
            ArithmeticOperator::Modulo => '%',
        }
    }

    /// Whether the operator binds more loosely than `*`.
    pub(super) fn is_sum(self) -> bool {
        matches!(self, ArithmeticOperator::Add | ArithmeticOperator::Subtract)
    }
}

impl Display for ArithmeticOperator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sign())
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Term::Literal(literal) => literal.fmt(f),
            Term::Null => f.write_str("null"),
            Term::Marker(marker) => marker.fmt(f),
            Term::List(elements) => write!(f, "[{}]", commas(elements)),
            Term::Set(elements) => write!(f, "{{{}}}", commas(elements)),
            Term::Map(pairs) => write!(f, "{{{}}}", entries(pairs)),
            Term::User(fields) => write!(f, "{{{}}}", entries(fields)),
            Term::Tuple(elements) => write!(f, "({})", commas(elements)),
            Term::Function(call) => call.fmt(f),
            Term::TypeHint(type_name, term) => write!(f, "({type_name}){}", Operand(term, false)),
            Term::Cast(term, target) => write!(f, "CAST({} AS {target})", Operand(term, false)),
            Term::Binary(left, operator, right) => {
                let left = Operand(left, operator.is_sum());
                write!(f, "{left} {operator} {}", Operand(right, false))
            }
            // A blank, lest two signs make a comment, or one a negative number.
            Term::Negate(term) => write!(f, "- {}", Operand(term, false)),
        }
    }
}

impl Display for FunctionCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", FunctionName(&self.name), commas(&self.arguments))
    }
}

/// A part of a term, in parentheses if it would not be taken for one; the flag allows sums.
struct Operand<'a>(&'a Term, bool);

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Term::Binary(_, operator, _) if operator.is_sum() && !self.1 => write!(f, "({})", self.0),
            _ => self.0.fmt(f),
        }
    }
}
