//! What a SELECT computes. Like terms, with columns, fields and elements.

use super::Parser;
use super::failure::Outcome;
use super::name::{is_function_name, is_name};
use crate::ast::{ArithmeticOperator, CellMetadata, Selector, Term};
use crate::lexer::TokenKind;

/// What stands between brackets behind a selector.
enum Bracketed {
    Element(Box<Term>),
    Slice(Option<Box<Term>>, Option<Box<Term>>),
}

impl Bracketed {
    fn of(self, whole: Selector) -> Selector {
        match self {
            Bracketed::Element(key) => Selector::Element(Box::new(whole), key),
            Bracketed::Slice(from, to) => Selector::Slice(Box::new(whole), from, to),
        }
    }
}

impl Parser<'_> {
    /// A selector without alias.
    pub(super) fn selector(&mut self) -> Outcome<Selector> {
        self.nested(Self::selector_sum)
    }

    fn selector_sum(&mut self) -> Outcome<Selector> {
        let mut left = self.selector_product()?;
        loop {
            let operator = match self.kind() {
                TokenKind::Plus => ArithmeticOperator::Add,
                TokenKind::Minus => ArithmeticOperator::Subtract,
                _ => return Ok(left),
            };
            self.advance();
            self.count_operator()?;
            left = Selector::Binary(Box::new(left), operator, Box::new(self.selector_product()?));
        }
    }

    fn selector_product(&mut self) -> Outcome<Selector> {
        let mut left = self.selector_group()?;
        while let Some(operator) = self.product_operator() {
            self.advance();
            self.count_operator()?;
            left = Selector::Binary(Box::new(left), operator, Box::new(self.selector_group()?));
        }
        Ok(left)
    }

    fn selector_group(&mut self) -> Outcome<Selector> {
        if self.accept(TokenKind::Minus) {
            return Ok(Selector::Negate(Box::new(self.nested(Self::selector_group)?)));
        }
        let simple = self.simple_selector()?;
        if matches!(simple, Selector::Column(_) | Selector::Literal(_) | Selector::Null | Selector::Marker(_))
        {
            self.look(1);
        }
        self.selector_parts(simple)
    }

    /// Any number of `.field`, `[key]` and `[from..to]`.
    fn selector_parts(&mut self, whole: Selector) -> Outcome<Selector> {
        let first_part = self.at;
        let mut selector = whole;
        loop {
            selector = match self.kind() {
                TokenKind::Dot if is_name(self.kind_at(1)) => {
                    self.advance();
                    Selector::Field(Box::new(selector), self.take_name())
                }
                TokenKind::OpenBracket => match self.bracketed() {
                    Ok(part) => part.of(selector),
                    Err(failure) if failure.is_grammatical() => break,
                    Err(failure) => return Err(failure),
                },
                kind if kind != TokenKind::Dot && (self.at == first_part || may_follow_column(kind)) => {
                    return Ok(selector);
                }
                _ => break,
            };
            self.count_operator()?;
        }
        // These are no parts then: whoever reads on misses something where they begin.
        self.at = first_part;
        self.look(2);
        Ok(selector)
    }

    /// `[key]`, `[from..]`, `[from..to]` or `[..to]`
    fn bracketed(&mut self) -> Outcome<Bracketed> {
        self.advance();
        let part = if self.accept(TokenKind::Range) {
            Bracketed::Slice(None, Some(Box::new(self.term()?)))
        } else {
            let from = Box::new(self.term()?);
            if !self.accept(TokenKind::Range) {
                Bracketed::Element(from)
            } else if self.kind() == TokenKind::CloseBracket {
                Bracketed::Slice(Some(from), None)
            } else {
                Bracketed::Slice(Some(from), Some(Box::new(self.term()?)))
            }
        };
        self.expect(TokenKind::CloseBracket)?;
        Ok(part)
    }

    fn simple_selector(&mut self) -> Outcome<Selector> {
        match self.kind() {
            TokenKind::QuestionMark if !may_follow_column(self.kind_at(1)) => Err(self.no_viable_ahead(1)),
            TokenKind::QuestionMark | TokenKind::Colon => Ok(Selector::Marker(self.marker()?)),
            TokenKind::Null => {
                self.advance();
                Ok(Selector::Null)
            }
            TokenKind::OpenBracket => {
                self.advance();
                Ok(Selector::List(self.list_until(TokenKind::CloseBracket, Self::selector)?))
            }
            TokenKind::OpenBrace => self.selector_braces(),
            TokenKind::OpenParenthesis => self.selector_parenthesis(),
            kind if is_name(kind) || is_function_name(kind) => self.column_or_function(kind),
            _ => self.accept_literal().map(Selector::Literal).ok_or_else(|| self.no_viable()),
        }
    }

    fn column_or_function(&mut self, kind: TokenKind) -> Outcome<Selector> {
        match self.kind_at(1) {
            TokenKind::OpenParenthesis => match kind {
                TokenKind::Count if self.kind_at(2) == TokenKind::Star => {
                    self.advance();
                    self.expect_all(&[
                        TokenKind::OpenParenthesis,
                        TokenKind::Star,
                        TokenKind::CloseParenthesis,
                    ])?;
                    Ok(Selector::CountRows)
                }
                TokenKind::Writetime => self.cell_metadata(CellMetadata::WriteTime),
                TokenKind::Maxwritetime => self.cell_metadata(CellMetadata::MaxWriteTime),
                TokenKind::Ttl => self.cell_metadata(CellMetadata::TimeToLive),
                TokenKind::Cast => self.cast_selector(),
                TokenKind::Count if !self.may_be_counted(2) => Err(self.no_viable_ahead(2)),
                _ if is_function_name(kind) => self.selector_function(),
                _ => Err(self.no_viable_ahead(1)),
            },
            // `keyspace.function(…)`; else a field, which is read as part of the column.
            TokenKind::Dot
                if is_function_name(self.kind_at(2)) && self.kind_at(3) == TokenKind::OpenParenthesis =>
            {
                self.selector_function()
            }
            TokenKind::Dot if !is_name(self.kind_at(2)) => Err(self.no_viable_ahead(2)),
            TokenKind::Dot if !may_follow_column(self.kind_at(3)) => Err(self.no_viable_ahead(3)),
            follower if is_name(kind) && may_follow_column(follower) => {
                Ok(Selector::Column(self.take_name()))
            }
            _ => {
                self.look(2);
                Err(self.no_viable_ahead(1))
            }
        }
    }

    fn may_be_counted(&mut self, ahead: usize) -> bool {
        matches!(self.kind_at(ahead), TokenKind::CloseParenthesis | TokenKind::Minus | TokenKind::Invalid)
            || self.starts_selector(self.at + ahead)
            || is_name(self.kind_at(ahead))
    }

    fn selector_function(&mut self) -> Outcome<Selector> {
        let name = self.function_name()?;
        self.expect(TokenKind::OpenParenthesis)?;
        Ok(Selector::Function(name, self.list_until(TokenKind::CloseParenthesis, Self::selector)?))
    }

    fn cell_metadata(&mut self, metadata: CellMetadata) -> Outcome<Selector> {
        self.advance();
        self.expect(TokenKind::OpenParenthesis)?;
        let column = Selector::Column(self.name()?);
        let argument = self.selector_parts(column)?;
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(Selector::Metadata(metadata, Box::new(argument)))
    }

    fn cast_selector(&mut self) -> Outcome<Selector> {
        self.expect_all(&[TokenKind::Cast, TokenKind::OpenParenthesis])?;
        let argument = self.selector()?;
        Ok(Selector::Cast(Box::new(argument), self.cast_target()?))
    }

    /// `(type) s` or `(a, b)`
    fn selector_parenthesis(&mut self) -> Outcome<Selector> {
        if let Some(close) = self.type_end(self.at + 1)
            && self.kind_of(close) == TokenKind::CloseParenthesis
            && self.starts_selector(close + 1)
        {
            self.advance();
            let type_name = self.type_name()?;
            self.expect(TokenKind::CloseParenthesis)?;
            let hinted = self.nested(Self::simple_selector)?;
            return Ok(Selector::TypeHint(Box::new(type_name), Box::new(hinted)));
        }
        self.advance();
        let elements = self.separated(TokenKind::Comma, Self::selector)?;
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(Selector::Tuple(elements))
    }

    /// A set, a map or a value of a user type.
    fn selector_braces(&mut self) -> Outcome<Selector> {
        let inner = self.kind_at(1);
        if inner == TokenKind::CloseBrace {
            self.advance();
            self.advance();
            return Ok(Selector::Set(Vec::new()));
        }
        if inner != TokenKind::Minus && !is_name(inner) && !self.starts_selector(self.at + 1) {
            return Err(self.no_viable_ahead(1));
        }
        self.advance();
        let first = self.selector()?;
        if self.accept(TokenKind::Colon) {
            let mut entries = vec![(first, self.selector()?)];
            while self.accept(TokenKind::Comma) {
                let key = self.selector()?;
                self.expect(TokenKind::Colon)?;
                entries.push((key, self.selector()?));
            }
            self.expect(TokenKind::CloseBrace)?;
            return Ok(Selector::MapOrUser(entries));
        }
        if !matches!(self.kind(), TokenKind::Comma | TokenKind::CloseBrace) {
            return Err(self.no_viable());
        }
        let mut elements = vec![first];
        while self.accept(TokenKind::Comma) {
            elements.push(self.selector()?);
        }
        self.expect(TokenKind::CloseBrace)?;
        Ok(Selector::Set(elements))
    }
}

/// Whether anything goes on with this token behind a column in a selection or GROUP BY.
fn may_follow_column(kind: TokenKind) -> bool {
    use TokenKind as Kind;
    matches!(
        kind,
        Kind::End
            | Kind::Invalid
            | Kind::Semicolon
            | Kind::Comma
            | Kind::Colon
            | Kind::Dot
            | Kind::OpenBracket
            | Kind::CloseBracket
            | Kind::CloseParenthesis
            | Kind::CloseBrace
            | Kind::Plus
            | Kind::Minus
            | Kind::Star
            | Kind::Slash
            | Kind::Percent
            | Kind::Allow
            | Kind::As
            | Kind::From
            | Kind::Limit
            | Kind::Order
            | Kind::Per
    )
}
