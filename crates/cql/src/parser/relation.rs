//! WHERE.

use super::Parser;
use super::failure::Outcome;
use super::name::is_column_name;
use crate::ast::{Ident, InValues, Operator, QualifiedName, Relation, Term};
use crate::lexer::TokenKind;

/// `=`, `!=`, `<`, `<=`, `>` or `>=`
pub(super) fn comparison_of(kind: TokenKind) -> Option<Operator> {
    Some(match kind {
        TokenKind::Equal => Operator::Equal,
        TokenKind::NotEqual => Operator::NotEqual,
        TokenKind::Less => Operator::Less,
        TokenKind::LessOrEqual => Operator::LessOrEqual,
        TokenKind::Greater => Operator::Greater,
        TokenKind::GreaterOrEqual => Operator::GreaterOrEqual,
        _ => return None,
    })
}

impl Parser<'_> {
    /// `WHERE …`, or nothing.
    pub(super) fn where_clause(&mut self) -> Outcome<Vec<Relation>> {
        if self.accept(TokenKind::Where) { self.relations() } else { Ok(Vec::new()) }
    }

    /// `relation AND relation …`
    pub(super) fn relations(&mut self) -> Outcome<Vec<Relation>> {
        let mut relations = Vec::with_capacity(2);
        relations.push(self.relation_or_expression()?);
        while self.accept(TokenKind::And) {
            relations.push(self.relation_or_expression()?);
        }
        Ok(relations)
    }

    fn relation_or_expression(&mut self) -> Outcome<Relation> {
        if !self.accept(TokenKind::ExprParenthesis) {
            return self.relation();
        }
        let index = QualifiedName { keyspace: None, name: self.plain_index_name()? };
        self.expect(TokenKind::Comma)?;
        let value = self.term()?;
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(Relation::CustomIndex { index, value })
    }

    fn relation(&mut self) -> Outcome<Relation> {
        match self.kind() {
            TokenKind::Token => self.token_relation(),
            TokenKind::OpenParenthesis => self.parenthesized_relation(),
            kind if is_column_name(kind) => self.column_relation(),
            _ => Err(self.no_viable()),
        }
    }

    fn column_relation(&mut self) -> Outcome<Relation> {
        match self.kind_at(1) {
            kind if comparison_of(kind).is_some() => {
                let column = self.take_name();
                let operator = self.comparison()?;
                Ok(Relation::Column { column, operator, value: self.term()? })
            }
            TokenKind::Like => {
                let column = self.take_name();
                self.advance();
                Ok(Relation::Column { column, operator: Operator::Like, value: self.term()? })
            }
            TokenKind::Contains => {
                let column = self.take_name();
                let operator = self.contains_operator();
                Ok(Relation::Column { column, operator, value: self.term()? })
            }
            TokenKind::In => {
                if !matches!(
                    self.kind_at(2),
                    TokenKind::OpenParenthesis | TokenKind::QuestionMark | TokenKind::Colon
                ) {
                    return Err(self.no_viable_ahead(2));
                }
                let column = self.take_name();
                self.advance();
                Ok(Relation::In { column, values: self.in_values()? })
            }
            TokenKind::Is => {
                let column = self.take_name();
                self.expect_all(&[TokenKind::Is, TokenKind::Not, TokenKind::Null])?;
                Ok(Relation::IsNotNull { column })
            }
            TokenKind::OpenBracket => {
                let column = self.take_name();
                self.advance();
                let key = self.term()?;
                self.expect(TokenKind::CloseBracket)?;
                let operator = self.comparison()?;
                Ok(Relation::MapEntry { column, key, operator, value: self.term()? })
            }
            _ => Err(self.no_viable_ahead(1)),
        }
    }

    /// A comparison that must come now.
    pub(super) fn comparison(&mut self) -> Outcome<Operator> {
        let operator = comparison_of(self.kind()).ok_or_else(|| self.no_viable())?;
        self.advance();
        Ok(operator)
    }

    /// `CONTAINS [KEY]`, whose first word comes now.
    pub(super) fn contains_operator(&mut self) -> Operator {
        self.advance();
        if self.accept(TokenKind::Key) { Operator::ContainsKey } else { Operator::Contains }
    }

    /// `(a, b)`, `()` or a marker, behind IN.
    pub(super) fn in_values(&mut self) -> Outcome<InValues> {
        match self.kind() {
            TokenKind::QuestionMark | TokenKind::Colon => Ok(InValues::Marker(self.marker()?)),
            TokenKind::OpenParenthesis => {
                self.advance();
                Ok(InValues::Terms(self.list_until(TokenKind::CloseParenthesis, Self::term)?))
            }
            _ => Err(self.no_viable()),
        }
    }

    /// `token(a, b) > value`
    fn token_relation(&mut self) -> Outcome<Relation> {
        self.advance();
        let columns = self.column_tuple()?;
        let operator = self.comparison()?;
        Ok(Relation::Token { columns, operator, value: self.term()? })
    }

    /// `(a, b)` of names.
    fn column_tuple(&mut self) -> Outcome<Vec<Ident>> {
        self.expect(TokenKind::OpenParenthesis)?;
        let columns = self.separated(TokenKind::Comma, Self::column_name)?;
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(columns)
    }

    /// `(a, b) > (1, 2)`, or a relation between parentheses.
    fn parenthesized_relation(&mut self) -> Outcome<Relation> {
        let inner = self.kind_at(1);
        if is_column_name(inner) {
            if matches!(self.kind_at(2), TokenKind::Comma | TokenKind::CloseParenthesis) {
                return self.tuple_relation();
            }
        } else if !matches!(inner, TokenKind::Token | TokenKind::OpenParenthesis) {
            return Err(self.no_viable_ahead(1));
        }
        self.advance();
        let relation = self.nested(Self::relation)?;
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(relation)
    }

    fn tuple_relation(&mut self) -> Outcome<Relation> {
        let columns = self.column_tuple()?;
        if self.accept(TokenKind::In) {
            return Ok(Relation::TupleIn { columns, values: self.tuple_in_values()? });
        }
        if comparison_of(self.kind()).is_none() {
            return Err(self.no_viable());
        }
        let value_start = self.kind_at(1);
        if !matches!(value_start, TokenKind::OpenParenthesis | TokenKind::QuestionMark | TokenKind::Colon) {
            return Err(self.no_viable_ahead(1));
        }
        let operator = self.comparison()?;
        let value = if value_start == TokenKind::OpenParenthesis {
            self.tuple_literal()?
        } else {
            Term::Marker(self.marker()?)
        };
        Ok(Relation::Tuple { columns, operator, value })
    }

    /// `()`, a marker, tuples between parentheses or markers between parentheses.
    fn tuple_in_values(&mut self) -> Outcome<InValues> {
        match self.kind() {
            TokenKind::QuestionMark | TokenKind::Colon => return Ok(InValues::Marker(self.marker()?)),
            TokenKind::OpenParenthesis => {}
            _ => return Err(self.no_viable()),
        }
        let values = match self.kind_at(1) {
            TokenKind::CloseParenthesis => {
                self.advance();
                Vec::new()
            }
            TokenKind::OpenParenthesis => {
                self.advance();
                self.separated(TokenKind::Comma, Self::tuple_literal)?
            }
            TokenKind::QuestionMark | TokenKind::Colon => {
                self.advance();
                self.separated(TokenKind::Comma, Self::marker_for_tuple)?
            }
            _ => return Err(self.no_viable_ahead(1)),
        };
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(InValues::Terms(values))
    }

    fn marker_for_tuple(&mut self) -> Outcome<Term> {
        match self.kind() {
            TokenKind::QuestionMark | TokenKind::Colon => Ok(Term::Marker(self.marker()?)),
            _ => Err(self.no_viable()),
        }
    }
}
