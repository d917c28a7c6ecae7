//! DESCRIBE.

use super::Parser;
use super::failure::Outcome;
use super::name::{is_function_name, is_name, is_type_name};
use crate::ast::{Describe, DescribeTarget, QualifiedName};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `DESCRIBE … [WITH INTERNALS]`
    pub(super) fn describe(&mut self) -> Outcome<Describe> {
        self.advance();
        let target = self.describe_target()?;
        let with_internals = self.accept(TokenKind::With);
        if with_internals {
            self.expect(TokenKind::Internals)?;
        }
        Ok(Describe { target, with_internals })
    }

    fn describe_target(&mut self) -> Outcome<DescribeTarget> {
        let next = if is_name(self.kind()) { self.kind_at(1) } else { TokenKind::End };
        let short = match self.kind() {
            TokenKind::Cluster => DescribeTarget::Cluster,
            TokenKind::Schema => DescribeTarget::Schema { is_full: false },
            TokenKind::Keyspaces => DescribeTarget::Keyspaces,
            TokenKind::Tables => DescribeTarget::Tables,
            TokenKind::Types => DescribeTarget::Types,
            TokenKind::Functions => DescribeTarget::Functions,
            TokenKind::Aggregates => DescribeTarget::Aggregates,
            TokenKind::Full => {
                self.advance();
                self.expect(TokenKind::Schema)?;
                return Ok(DescribeTarget::Schema { is_full: true });
            }
            TokenKind::Only if next == TokenKind::Keyspace => {
                self.advance();
                return self.describe_keyspace(true);
            }
            TokenKind::Keyspace => return self.describe_keyspace(false),
            TokenKind::Table => {
                self.advance();
                return Ok(DescribeTarget::Table(self.table_name()?));
            }
            TokenKind::Index => {
                self.advance();
                return Ok(DescribeTarget::Index(self.table_name()?));
            }
            TokenKind::Materialized => {
                self.advance();
                self.expect(TokenKind::View)?;
                return Ok(DescribeTarget::View(self.table_name()?));
            }
            TokenKind::Type if is_type_name(next) || is_name(next) => {
                self.advance();
                return Ok(DescribeTarget::Type(self.user_type_name()?));
            }
            TokenKind::Function if is_function_name(next) || is_name(next) => {
                self.advance();
                return Ok(DescribeTarget::Function(self.function_name()?));
            }
            TokenKind::Aggregate if is_function_name(next) || is_name(next) => {
                self.advance();
                return Ok(DescribeTarget::Aggregate(self.function_name()?));
            }
            _ => return self.describe_name(),
        };
        self.advance();
        if next != TokenKind::End {
            self.look(1);
        }
        Ok(short)
    }

    fn describe_keyspace(&mut self, is_only: bool) -> Outcome<DescribeTarget> {
        self.advance();
        let name = match self.kind() {
            TokenKind::QuestionMark => Some(self.keyspace_name()?),
            kind if is_name(kind) => Some(self.keyspace_name()?),
            _ => None,
        };
        Ok(DescribeTarget::Keyspace { is_only, name })
    }

    /// `[keyspace.]name` of whatever has that name.
    fn describe_name(&mut self) -> Outcome<DescribeTarget> {
        if is_name(self.kind())
            && !matches!(
                self.kind_at(1),
                TokenKind::Dot | TokenKind::With | TokenKind::Semicolon | TokenKind::End | TokenKind::Invalid
            )
        {
            return Err(self.no_viable_ahead(1));
        }
        let first = self.name()?;
        if !self.accept(TokenKind::Dot) {
            return Ok(DescribeTarget::Generic(QualifiedName { keyspace: None, name: first }));
        }
        Ok(DescribeTarget::Generic(QualifiedName { keyspace: Some(first), name: self.name()? }))
    }
}
