//! Values: sums of products of simple terms.

use super::Parser;
use super::failure::Outcome;
use super::literal::is_literal;
use super::name::{is_column_name, is_function_name, is_name};
use crate::ast::{ArithmeticOperator, FunctionCall, NativeType, Term};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// A value.
    pub(super) fn term(&mut self) -> Outcome<Term> {
        // Most terms are a constant or a marker.
        if self.nesting == 0
            && (is_literal(self.kind()) || self.kind() == TokenKind::QuestionMark)
            && matches!(self.kind_at(1), TokenKind::Comma | TokenKind::CloseParenthesis)
        {
            let term = self.simple_term()?;
            self.look(1);
            return Ok(term);
        }
        let term = self.nested(Self::sum)?;
        if !may_follow_term(self.kind()) {
            return Err(self.no_viable());
        }
        self.look(1);
        Ok(term)
    }

    fn sum(&mut self) -> Outcome<Term> {
        let mut left = self.product()?;
        loop {
            let operator = match self.kind() {
                // In `SET c = [1] + c` the sum ends before the column.
                TokenKind::Plus if self.is_column_at(1) => {
                    if !matches!(self.kind_at(2), TokenKind::Comma | TokenKind::Where) {
                        return Err(self.no_viable_ahead(2));
                    }
                    return Ok(left);
                }
                TokenKind::Plus => ArithmeticOperator::Add,
                TokenKind::Minus => ArithmeticOperator::Subtract,
                _ => return Ok(left),
            };
            self.advance();
            self.count_operator()?;
            left = Term::Binary(Box::new(left), operator, Box::new(self.product()?));
        }
    }

    fn starts_term_or_type(&mut self, ahead: usize) -> bool {
        let kind = self.kind_at(ahead);
        starts_term(kind) || kind == TokenKind::Set
    }

    /// Whether the token so far ahead is a column rather than the name of a function.
    fn is_column_at(&mut self, ahead: usize) -> bool {
        is_column_name(self.kind_at(ahead))
            && !matches!(self.kind_at(ahead + 1), TokenKind::OpenParenthesis | TokenKind::Dot)
    }

    fn product(&mut self) -> Outcome<Term> {
        let mut left = self.signed_term()?;
        while let Some(operator) = self.product_operator() {
            self.advance();
            self.count_operator()?;
            left = Term::Binary(Box::new(left), operator, Box::new(self.signed_term()?));
        }
        Ok(left)
    }

    /// `*`, `/` or `%`, if that is the next token.
    pub(super) fn product_operator(&self) -> Option<ArithmeticOperator> {
        match self.kind() {
            TokenKind::Star => Some(ArithmeticOperator::Multiply),
            TokenKind::Slash => Some(ArithmeticOperator::Divide),
            TokenKind::Percent => Some(ArithmeticOperator::Modulo),
            _ => None,
        }
    }

    fn signed_term(&mut self) -> Outcome<Term> {
        if self.accept(TokenKind::Minus) {
            return Ok(Term::Negate(Box::new(self.simple_term()?)));
        }
        self.simple_term()
    }

    fn simple_term(&mut self) -> Outcome<Term> {
        match self.kind() {
            TokenKind::QuestionMark
                if !may_follow_term(self.kind_at(1)) && self.kind_at(1) != TokenKind::As =>
            {
                Err(self.no_viable_ahead(1))
            }
            TokenKind::QuestionMark | TokenKind::Colon => Ok(Term::Marker(self.marker()?)),
            TokenKind::Null => {
                self.advance();
                Ok(Term::Null)
            }
            TokenKind::OpenBracket => {
                self.advance();
                Ok(Term::List(self.list_until(TokenKind::CloseBracket, Self::term)?))
            }
            TokenKind::OpenBrace => self.braces(),
            TokenKind::OpenParenthesis if !self.starts_term_or_type(1) => Err(self.no_viable_ahead(1)),
            TokenKind::OpenParenthesis if self.is_type_hint() => self.hinted_term(),
            TokenKind::OpenParenthesis => self.tuple_literal(),
            TokenKind::Cast if self.kind_at(1) == TokenKind::OpenParenthesis => self.cast_term(),
            kind if is_function_name(kind) || is_name(kind) => self.function_call(),
            _ => self.accept_literal().map(Term::Literal).ok_or_else(|| self.no_viable()),
        }
    }

    /// A set, a map or a value of a user type.
    fn braces(&mut self) -> Outcome<Term> {
        let inner = self.kind_at(1);
        if inner != TokenKind::CloseBrace && !starts_term(inner) {
            return Err(self.no_viable_ahead(1));
        }
        self.advance();
        if self.accept(TokenKind::CloseBrace) {
            return Ok(Term::Set(Vec::new()));
        }
        if is_name(self.kind()) && self.kind_at(1) == TokenKind::Colon {
            let fields = self.separated(TokenKind::Comma, |parser| {
                let field = parser.name()?;
                parser.expect(TokenKind::Colon)?;
                Ok((field, parser.term()?))
            })?;
            self.expect(TokenKind::CloseBrace)?;
            return Ok(Term::User(fields));
        }
        let first = self.term()?;
        if self.accept(TokenKind::Colon) {
            let mut entries = vec![(first, self.term()?)];
            while self.accept(TokenKind::Comma) {
                let key = self.term()?;
                self.expect(TokenKind::Colon)?;
                entries.push((key, self.term()?));
            }
            self.expect(TokenKind::CloseBrace)?;
            return Ok(Term::Map(entries));
        }
        let mut elements = vec![first];
        while self.accept(TokenKind::Comma) {
            elements.push(self.term()?);
        }
        self.expect(TokenKind::CloseBrace)?;
        Ok(Term::Set(elements))
    }

    /// `(a, b)`
    pub(super) fn tuple_literal(&mut self) -> Outcome<Term> {
        self.expect(TokenKind::OpenParenthesis)?;
        let elements = self.separated(TokenKind::Comma, Self::term)?;
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(Term::Tuple(elements))
    }

    /// Whether `(type) value` comes now rather than a tuple.
    fn is_type_hint(&mut self) -> bool {
        let Some(close) = self.type_end(self.at + 1) else { return false };
        if self.kind_of(close) != TokenKind::CloseParenthesis {
            return false;
        }
        match self.kind_of(close + 1) {
            TokenKind::QuestionMark
            | TokenKind::Colon
            | TokenKind::Null
            | TokenKind::OpenBracket
            | TokenKind::OpenBrace
            | TokenKind::OpenParenthesis => true,
            kind if is_literal(kind) => true,
            kind if is_name(kind) || is_function_name(kind) => {
                matches!(self.kind_of(close + 2), TokenKind::OpenParenthesis | TokenKind::Dot)
            }
            // A native type can be nothing else; let the value be missed.
            _ => self.kind_of(close - 1) != TokenKind::StringLiteral,
        }
    }

    fn hinted_term(&mut self) -> Outcome<Term> {
        self.advance();
        let type_name = self.type_name()?;
        self.expect(TokenKind::CloseParenthesis)?;
        let value = self.nested(Self::simple_term)?;
        Ok(Term::TypeHint(Box::new(type_name), Box::new(value)))
    }

    fn cast_term(&mut self) -> Outcome<Term> {
        self.expect_all(&[TokenKind::Cast, TokenKind::OpenParenthesis])?;
        let value = self.nested(Self::simple_term)?;
        let target = self.cast_target()?;
        Ok(Term::Cast(Box::new(value), target))
    }

    /// `AS type)`, the end of a cast.
    pub(super) fn cast_target(&mut self) -> Outcome<NativeType> {
        self.expect(TokenKind::As)?;
        let target = self.native_type().ok_or_else(|| self.no_viable())?;
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(target)
    }

    fn function_call(&mut self) -> Outcome<Term> {
        if !matches!(self.kind_at(1), TokenKind::OpenParenthesis | TokenKind::Dot) {
            return Err(self.no_viable_ahead(1));
        }
        if self.kind_at(1) == TokenKind::Dot {
            if !is_function_name(self.kind_at(2)) {
                return Err(self.no_viable_ahead(2));
            }
            if self.kind_at(3) != TokenKind::OpenParenthesis {
                return Err(self.no_viable_ahead(3));
            }
        }
        if self.kind_at(1) == TokenKind::OpenParenthesis
            && self.kind_at(2) != TokenKind::CloseParenthesis
            && !starts_term(self.kind_at(2))
        {
            return Err(self.no_viable_ahead(2));
        }
        let name = self.function_name()?;
        self.expect(TokenKind::OpenParenthesis)?;
        let arguments = self.list_until(TokenKind::CloseParenthesis, Self::term)?;
        Ok(Term::Function(FunctionCall { name, arguments }))
    }
}

/// Whether anything goes on with this token behind a term.
fn may_follow_term(kind: TokenKind) -> bool {
    use TokenKind as Kind;
    matches!(
        kind,
        Kind::End
            | Kind::Invalid
            | Kind::Semicolon
            | Kind::Comma
            | Kind::Colon
            | Kind::CloseParenthesis
            | Kind::CloseBracket
            | Kind::CloseBrace
            | Kind::Range
            | Kind::Plus
            | Kind::Minus
            | Kind::Star
            | Kind::Slash
            | Kind::Percent
            | Kind::Allow
            | Kind::And
            | Kind::Apply
            | Kind::Asc
            | Kind::Delete
            | Kind::Desc
            | Kind::Group
            | Kind::If
            | Kind::Insert
            | Kind::Limit
            | Kind::Order
            | Kind::Per
            | Kind::Primary
            | Kind::Update
            | Kind::Where
    )
}

/// Whether a term may start with this token.
fn starts_term(kind: TokenKind) -> bool {
    use TokenKind as Kind;
    is_literal(kind)
        || is_name(kind)
        || is_function_name(kind)
        || matches!(
            kind,
            Kind::QuestionMark
                | Kind::Colon
                | Kind::Null
                | Kind::Minus
                | Kind::OpenBracket
                | Kind::OpenBrace
                | Kind::OpenParenthesis
                | Kind::Invalid
        )
}
