//! Constants.

use super::Parser;
use super::failure::Outcome;
use crate::ast::{IntegerValue, Literal, LiteralKind, Term};
use crate::lexer::TokenKind;
use crate::text::Text;

/// Whether the token is a constant; `null` is none.
#[inline]
pub(super) fn is_literal(kind: TokenKind) -> bool {
    literal_kind(kind).is_some()
}

fn literal_kind(kind: TokenKind) -> Option<LiteralKind> {
    Some(match kind {
        TokenKind::StringLiteral => LiteralKind::String,
        TokenKind::DollarString => LiteralKind::DollarString,
        TokenKind::Integer => LiteralKind::Integer,
        TokenKind::FloatLiteral
        | TokenKind::Nan
        | TokenKind::NegativeNan
        | TokenKind::Infinity
        | TokenKind::NegativeInfinity => LiteralKind::Float,
        TokenKind::BooleanLiteral => LiteralKind::Boolean,
        TokenKind::UuidLiteral => LiteralKind::Uuid,
        TokenKind::HexNumber => LiteralKind::Hex,
        TokenKind::DurationLiteral => LiteralKind::Duration,
        _ => return None,
    })
}

/// The constant that a token of this kind and text is, if it is one.
#[inline]
pub(super) fn literal(kind: TokenKind, written: &str) -> Option<Literal> {
    let text = match kind {
        TokenKind::StringLiteral | TokenKind::DollarString => unquoted(kind, written),
        TokenKind::Nan => Text::new("NaN"),
        TokenKind::NegativeNan => Text::new("-NaN"),
        TokenKind::Infinity => Text::new("Infinity"),
        TokenKind::NegativeInfinity => Text::new("-Infinity"),
        _ => Text::new(written),
    };
    Some(Literal { kind: literal_kind(kind)?, text })
}

/// A string without its quotes.
#[inline]
fn unquoted(kind: TokenKind, written: &str) -> Text {
    if kind == TokenKind::DollarString {
        return Text::new(&written[2..written.len() - 2]);
    }
    let inner = &written[1..written.len() - 1];
    if inner.contains('\'') { inner.replace("''", "'").into() } else { Text::new(inner) }
}

impl Parser<'_> {
    /// The constant that the next token is, if it is one.
    #[inline]
    pub(super) fn accept_literal(&mut self) -> Option<Literal> {
        let literal = literal(self.kind(), self.token_text())?;
        self.advance();
        Some(literal)
    }

    /// A string that must come now.
    pub(super) fn string(&mut self) -> Outcome<Text> {
        if !self.is_string() {
            return Err(self.mismatched(TokenKind::StringLiteral));
        }
        let text = unquoted(self.kind(), self.token_text());
        self.advance();
        Ok(text)
    }

    pub(super) fn is_string(&self) -> bool {
        matches!(self.kind(), TokenKind::StringLiteral | TokenKind::DollarString)
    }

    /// A whole number or a marker.
    pub(super) fn integer_value(&mut self) -> Outcome<IntegerValue> {
        match self.kind() {
            TokenKind::Integer => {
                let digits = Text::new(self.token_text());
                self.advance();
                Ok(IntegerValue::Literal(digits))
            }
            TokenKind::QuestionMark | TokenKind::Colon => Ok(IntegerValue::Marker(self.marker()?)),
            _ => Err(self.no_viable()),
        }
    }

    /// `true` or `false`, in any case.
    pub(super) fn boolean(&mut self) -> Outcome<bool> {
        let is_true = self.token_text().eq_ignore_ascii_case("true");
        self.expect(TokenKind::BooleanLiteral)?;
        Ok(is_true)
    }

    /// `{a: b, …}` or `{}`, for options.
    pub(super) fn map_literal(&mut self) -> Outcome<Vec<(Term, Term)>> {
        self.expect(TokenKind::OpenBrace)?;
        self.list_until(TokenKind::CloseBrace, |parser| {
            let key = parser.term()?;
            parser.expect(TokenKind::Colon)?;
            Ok((key, parser.term()?))
        })
    }
}
