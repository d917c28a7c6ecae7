//! The IF of an UPDATE or DELETE.

use super::Parser;
use super::failure::Outcome;
use super::relation::comparison_of;
use crate::ast::{ColumnCondition, ColumnPart, Condition, ConditionTest};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `IF …`, or nothing.
    pub(super) fn condition(&mut self) -> Outcome<Condition> {
        if !self.accept(TokenKind::If) {
            return Ok(Condition::None);
        }
        // A column may be called "exists".
        if self.kind() == TokenKind::Exists && !self.starts_condition_test(1) {
            self.advance();
            return Ok(Condition::Exists);
        }
        Ok(Condition::Columns(self.separated(TokenKind::And, Self::column_condition)?))
    }

    fn starts_condition_test(&mut self, ahead: usize) -> bool {
        let kind = self.kind_at(ahead);
        comparison_of(kind).is_some()
            || matches!(kind, TokenKind::In | TokenKind::Contains | TokenKind::OpenBracket | TokenKind::Dot)
    }

    fn column_condition(&mut self) -> Outcome<ColumnCondition> {
        let column = self.column_name()?;
        if self.kind() == TokenKind::Contains {
            let operator = self.contains_operator();
            let test = ConditionTest::Compare(operator, self.term()?);
            return Ok(ColumnCondition { column, part: ColumnPart::Whole, test });
        }
        let part = self.column_part()?;
        let test = if self.accept(TokenKind::In) {
            ConditionTest::In(self.in_values()?)
        } else {
            let operator = self.comparison()?;
            ConditionTest::Compare(operator, self.term()?)
        };
        Ok(ColumnCondition { column, part, test })
    }
}
