//! WHERE and IF.

use std::fmt::{self, Display, Formatter};

use super::{ands, commas};
use crate::ast::{ColumnCondition, ColumnPart, Condition, ConditionTest, InValues, Operator, Relation};

impl Display for Operator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operator::Equal => "=",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Contains => "CONTAINS",
            Operator::ContainsKey => "CONTAINS KEY",
            Operator::Like => "LIKE",
        })
    }
}

impl Display for InValues {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            InValues::Terms(terms) => write!(f, "({})", commas(terms)),
            InValues::Marker(marker) => marker.fmt(f),
        }
    }
}

impl Display for Relation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Relation::Column { column, operator, value } => write!(f, "{column} {operator} {value}"),
            Relation::In { column, values } => write!(f, "{column} IN {values}"),
            Relation::IsNotNull { column } => write!(f, "{column} IS NOT NULL"),
            Relation::MapEntry { column, key, operator, value } => {
                write!(f, "{column}[{key}] {operator} {value}")
            }
            Relation::Token { columns, operator, value } => {
                write!(f, "token({}) {operator} {value}", commas(columns))
            }
            Relation::Tuple { columns, operator, value } => {
                write!(f, "({}) {operator} {value}", commas(columns))
            }
            Relation::TupleIn { columns, values } => write!(f, "({}) IN {values}", commas(columns)),
            Relation::CustomIndex { index, value } => write!(f, "expr({index}, {value})"),
        }
    }
}

/// ` IF …` with the blank in front; nothing without a condition.
impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Condition::None => Ok(()),
            Condition::Exists => f.write_str(" IF EXISTS"),
            Condition::Columns(conditions) => write!(f, " IF {}", ands(conditions)),
        }
    }
}

impl Display for ColumnCondition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} {}", self.column, self.part, self.test)
    }
}

impl Display for ColumnPart {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ColumnPart::Whole => Ok(()),
            ColumnPart::Element(element) => write!(f, "[{element}]"),
            ColumnPart::Field(field) => write!(f, ".{field}"),
        }
    }
}

impl Display for ConditionTest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ConditionTest::Compare(operator, value) => write!(f, "{operator} {value}"),
            ConditionTest::In(values) => write!(f, "IN {values}"),
        }
    }
}
