//! Types.

use super::Parser;
use super::failure::Outcome;
use super::name::{is_name, is_type_name};
use crate::ast::{CqlTypeName, NativeType, QualifiedName};
use crate::lexer::TokenKind;

/// How deep a type between parentheses is looked over before it is read.
const LOOK_AHEAD_MAX: u32 = 32;

fn native_type_of(kind: TokenKind) -> Option<NativeType> {
    Some(match kind {
        TokenKind::Ascii => NativeType::Ascii,
        TokenKind::Bigint => NativeType::Bigint,
        TokenKind::Blob => NativeType::Blob,
        TokenKind::Boolean => NativeType::Boolean,
        TokenKind::Counter => NativeType::Counter,
        TokenKind::Date => NativeType::Date,
        TokenKind::Decimal => NativeType::Decimal,
        TokenKind::Double => NativeType::Double,
        TokenKind::Duration => NativeType::Duration,
        TokenKind::Float => NativeType::Float,
        TokenKind::Inet => NativeType::Inet,
        TokenKind::Int => NativeType::Int,
        TokenKind::Smallint => NativeType::Smallint,
        TokenKind::Text => NativeType::Text,
        TokenKind::Time => NativeType::Time,
        TokenKind::Timestamp => NativeType::Timestamp,
        TokenKind::Timeuuid => NativeType::Timeuuid,
        TokenKind::Tinyint => NativeType::Tinyint,
        TokenKind::Uuid => NativeType::Uuid,
        TokenKind::Varchar => NativeType::Varchar,
        TokenKind::Varint => NativeType::Varint,
        _ => return None,
    })
}

fn is_type_constructor(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::List
            | TokenKind::Set
            | TokenKind::Map
            | TokenKind::Tuple
            | TokenKind::Vector
            | TokenKind::Frozen
    )
}

impl Parser<'_> {
    /// A type and then the end of the text.
    pub(super) fn type_to_the_end(&mut self) -> Outcome<CqlTypeName> {
        let type_name = self.type_name()?;
        self.end()?;
        Ok(type_name)
    }

    /// A type.
    pub(super) fn type_name(&mut self) -> Outcome<CqlTypeName> {
        self.nested(Self::type_name_inner)
    }

    fn type_name_inner(&mut self) -> Outcome<CqlTypeName> {
        let kind = self.kind();
        if is_type_constructor(kind) && (kind == TokenKind::Set || self.kind_at(1) == TokenKind::Less) {
            return self.constructed_type(kind);
        }
        if is_type_constructor(kind) && self.kind_at(1) != TokenKind::Dot {
            if !may_follow_type(self.kind_at(1)) {
                return Err(self.no_viable_ahead(1));
            }
            self.look(2);
        }
        if self.is_string() {
            return Ok(CqlTypeName::Custom(self.string()?));
        }
        if native_type_of(kind).is_some() && self.kind_at(1) != TokenKind::Dot {
            if !may_follow_type(self.kind_at(1)) {
                return Err(self.no_viable_ahead(1));
            }
            self.look(2);
            let native = self.native_type().ok_or_else(|| self.no_viable())?;
            return Ok(CqlTypeName::Native(native));
        }
        let QualifiedName { keyspace, name } = self.user_type_name()?;
        Ok(CqlTypeName::User { keyspace, name })
    }

    /// The native type that the next token is, if it is one.
    pub(super) fn native_type(&mut self) -> Option<NativeType> {
        let native = native_type_of(self.kind())?;
        self.advance();
        Some(native)
    }

    fn constructed_type(&mut self, constructor: TokenKind) -> Outcome<CqlTypeName> {
        self.advance();
        self.expect(TokenKind::Less)?;
        let first = Box::new(self.type_name()?);
        let constructed = match constructor {
            TokenKind::List => CqlTypeName::List(first),
            TokenKind::Set => CqlTypeName::Set(first),
            TokenKind::Map => {
                self.expect(TokenKind::Comma)?;
                CqlTypeName::Map(first, Box::new(self.type_name()?))
            }
            TokenKind::Vector => {
                self.expect(TokenKind::Comma)?;
                CqlTypeName::Vector(first, self.dimension()?)
            }
            TokenKind::Tuple => {
                let mut elements = vec![*first];
                while self.accept(TokenKind::Comma) {
                    elements.push(self.type_name()?);
                }
                CqlTypeName::Tuple(elements)
            }
            _ => self.frozen(first)?,
        };
        self.expect(TokenKind::Greater)?;
        Ok(constructed)
    }

    /// Only what has parts can be frozen.
    fn frozen(&mut self, inner: Box<CqlTypeName>) -> Outcome<CqlTypeName> {
        match *inner {
            CqlTypeName::Native(_) | CqlTypeName::Custom(_) if self.kind() == TokenKind::Greater => Err(self
                .refused(format!(
                    "frozen<> is only allowed on collections, tuples, and user-defined types (got {inner})"
                ))),
            _ => Ok(CqlTypeName::Frozen(inner)),
        }
    }

    fn dimension(&mut self) -> Outcome<i32> {
        let digits = self.token_text();
        if self.kind() != TokenKind::Integer {
            return Err(self.mismatched(TokenKind::Integer));
        }
        let dimension = digits.parse().map_err(|_| {
            self.refused(format!(
                "Failed parsing statement: [{}] reason: NumberFormatException For input string: \"{digits}\"",
                self.text
            ))
        })?;
        self.advance();
        Ok(dimension)
    }

    /// The index behind the type that starts at this index, if one starts there; reads nothing.
    pub(super) fn type_end(&mut self, index: usize) -> Option<usize> {
        self.type_end_within(index, LOOK_AHEAD_MAX)
    }

    fn type_end_within(&mut self, index: usize, levels: u32) -> Option<usize> {
        let kind = self.kind_of(index);
        if matches!(kind, TokenKind::StringLiteral | TokenKind::DollarString) {
            return Some(index + 1);
        }
        if is_type_constructor(kind) && self.kind_of(index + 1) == TokenKind::Less {
            return self.arguments_end(index + 2, levels.checked_sub(1)?);
        }
        if is_name(kind) && self.kind_of(index + 1) == TokenKind::Dot {
            return is_type_name(self.kind_of(index + 2)).then_some(index + 3);
        }
        (native_type_of(kind).is_some() || is_type_name(kind)).then_some(index + 1)
    }

    /// Types or numbers with commas between, and `>`.
    fn arguments_end(&mut self, first: usize, levels: u32) -> Option<usize> {
        let mut index = first;
        loop {
            index = match self.kind_of(index) {
                TokenKind::Integer => index + 1,
                _ => self.type_end_within(index, levels)?,
            };
            match self.kind_of(index) {
                TokenKind::Comma => index += 1,
                TokenKind::Greater => return Some(index + 1),
                _ => return None,
            }
        }
    }
}

/// Whether anything goes on with this token behind a type.
fn may_follow_type(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::End
            | TokenKind::Invalid
            | TokenKind::Semicolon
            | TokenKind::Comma
            | TokenKind::CloseParenthesis
            | TokenKind::Greater
            | TokenKind::Finalfunc
            | TokenKind::Initcond
            | TokenKind::Language
            | TokenKind::Masked
            | TokenKind::Primary
            | TokenKind::Static
    )
}
