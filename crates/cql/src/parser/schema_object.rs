//! Indexes, materialized views and triggers.

use super::Parser;
use super::failure::Outcome;
use super::name::{is_column_name, is_name};
use crate::ast::{
    AlterView, CreateIndex, CreateTrigger, CreateView, Drop, DropTrigger, IndexTarget, IndexTargetPart,
};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Behind `CREATE`: `[CUSTOM] INDEX …`
    pub(super) fn create_index(&mut self) -> Outcome<CreateIndex> {
        let is_custom = self.accept(TokenKind::Custom);
        self.expect(TokenKind::Index)?;
        let if_not_exists = self.if_not_exists()?;
        let is_named = is_name(self.kind()) || self.kind() == TokenKind::QuestionMark;
        let name = if is_named { Some(self.plain_index_name()?) } else { None };
        self.expect(TokenKind::On)?;
        let table = self.table_name()?;
        self.expect(TokenKind::OpenParenthesis)?;
        let targets = self.list_until(TokenKind::CloseParenthesis, Self::index_target)?;
        let using = if self.accept(TokenKind::Using) { Some(self.string()?) } else { None };
        let properties = if self.accept(TokenKind::With) { self.properties()? } else { Vec::new() };
        Ok(CreateIndex { is_custom, if_not_exists, name, table, targets, using, properties })
    }

    fn index_target(&mut self) -> Outcome<IndexTarget> {
        let part = match self.kind() {
            TokenKind::Entries => IndexTargetPart::Entries,
            TokenKind::Full => IndexTargetPart::Full,
            TokenKind::Values if self.kind_at(1) == TokenKind::OpenParenthesis => IndexTargetPart::Values,
            TokenKind::Keys if self.kind_at(1) == TokenKind::OpenParenthesis => IndexTargetPart::Keys,
            TokenKind::Values | TokenKind::Keys
                if !matches!(self.kind_at(1), TokenKind::Comma | TokenKind::CloseParenthesis) =>
            {
                return Err(self.no_viable_ahead(1));
            }
            kind if is_column_name(kind) => IndexTargetPart::Simple,
            _ => return Err(self.no_viable()),
        };
        if part == IndexTargetPart::Simple {
            return Ok(IndexTarget { column: self.column_name()?, part });
        }
        self.advance();
        self.expect(TokenKind::OpenParenthesis)?;
        let column = self.column_name()?;
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(IndexTarget { column, part })
    }

    /// Behind `DROP INDEX`.
    pub(super) fn drop_index(&mut self) -> Outcome<Drop> {
        Ok(Drop { if_exists: self.if_exists()?, name: self.index_name()? })
    }

    /// Behind `CREATE MATERIALIZED VIEW`.
    pub(super) fn create_view(&mut self) -> Outcome<CreateView> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.table_name()?;
        self.expect_all(&[TokenKind::As, TokenKind::Select])?;
        let selection = self.selection()?;
        self.expect(TokenKind::From)?;
        let base_table = self.table_name()?;
        let relations = self.where_clause()?;
        let primary_key = self.primary_key()?;
        let options = self.table_options()?;
        if options.is_compact_storage {
            let message = "COMPACT STORAGE tables are not allowed starting with version 4.0";
            return Err(self.refused(message.to_owned()));
        }
        Ok(CreateView { if_not_exists, name, selection, base_table, relations, primary_key, options })
    }

    /// Behind `ALTER MATERIALIZED VIEW`.
    pub(super) fn alter_view(&mut self) -> Outcome<AlterView> {
        let if_exists = self.if_exists()?;
        let name = self.table_name()?;
        self.expect(TokenKind::With)?;
        Ok(AlterView { if_exists, name, properties: self.properties()? })
    }

    /// Behind `CREATE TRIGGER`.
    pub(super) fn create_trigger(&mut self) -> Outcome<CreateTrigger> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.name()?;
        self.expect(TokenKind::On)?;
        let table = self.table_name()?;
        self.expect(TokenKind::Using)?;
        Ok(CreateTrigger { if_not_exists, name, table, class: self.string()? })
    }

    /// Behind `DROP TRIGGER`.
    pub(super) fn drop_trigger(&mut self) -> Outcome<DropTrigger> {
        let if_exists = self.if_exists()?;
        let name = self.name()?;
        self.expect(TokenKind::On)?;
        Ok(DropTrigger { if_exists, name, table: self.table_name()? })
    }
}
