//! BATCH.

use super::Parser;
use super::failure::Outcome;
use crate::ast::{Batch, BatchKind, Modification};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `BEGIN BATCH … APPLY BATCH`
    pub(super) fn batch(&mut self) -> Outcome<Batch> {
        self.expect(TokenKind::Begin)?;
        let kind = match self.kind() {
            TokenKind::Unlogged => BatchKind::Unlogged,
            TokenKind::Counter => BatchKind::Counter,
            _ => BatchKind::Logged,
        };
        if kind != BatchKind::Logged {
            self.advance();
        }
        self.expect(TokenKind::Batch)?;
        let using = self.using_clause()?;
        let mut statements = Vec::new();
        while let Some(statement) = self.modification()? {
            statements.push(statement);
            self.accept(TokenKind::Semicolon);
        }
        self.expect_all(&[TokenKind::Apply, TokenKind::Batch])?;
        Ok(Batch { kind, using, statements })
    }

    /// A statement of a batch, if one comes next.
    pub(super) fn modification(&mut self) -> Outcome<Option<Modification>> {
        Ok(Some(match self.kind() {
            TokenKind::Insert => Modification::Insert(self.insert()?),
            TokenKind::Update => Modification::Update(self.update()?),
            TokenKind::Delete => Modification::Delete(self.delete()?),
            _ => return Ok(None),
        }))
    }
}
