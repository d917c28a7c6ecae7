//! SELECT.

use super::Parser;
use super::failure::Outcome;
use super::literal::is_literal;
use super::name::is_name;
use crate::ast::{Ordering, Select, SelectItem, Selection};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `SELECT … FROM …`
    pub(super) fn select(&mut self) -> Outcome<Select> {
        self.expect(TokenKind::Select)?;
        let is_json = self.accept_modifier(TokenKind::Json);
        let is_distinct = self.accept_modifier(TokenKind::Distinct);
        let selection = self.selection()?;
        self.expect(TokenKind::From)?;
        let table = self.table_name()?;
        let relations = self.where_clause()?;
        let group_by = if self.accept(TokenKind::Group) {
            self.expect(TokenKind::By)?;
            self.separated(TokenKind::Comma, Self::selector)?
        } else {
            Vec::new()
        };
        let order_by = if self.accept(TokenKind::Order) {
            self.expect(TokenKind::By)?;
            self.separated(TokenKind::Comma, Self::ordering)?
        } else {
            Vec::new()
        };
        let per_partition_limit = if self.accept(TokenKind::Per) {
            self.expect_all(&[TokenKind::Partition, TokenKind::Limit])?;
            Some(self.integer_value()?)
        } else {
            None
        };
        let limit = if self.accept(TokenKind::Limit) { Some(self.integer_value()?) } else { None };
        let allow_filtering = self.accept(TokenKind::Allow);
        if allow_filtering {
            self.expect(TokenKind::Filtering)?;
        }
        Ok(Select {
            is_json,
            is_distinct,
            selection,
            table,
            relations,
            group_by,
            order_by,
            per_partition_limit,
            limit,
            allow_filtering,
        })
    }

    /// JSON and DISTINCT are columns too: they modify only if a selection comes behind them.
    fn accept_modifier(&mut self, modifier: TokenKind) -> bool {
        let is_modifier = self.kind() == modifier && self.starts_selection(self.at + 1);
        if is_modifier {
            self.advance();
        }
        is_modifier
    }

    fn starts_selection(&mut self, index: usize) -> bool {
        match self.kind_of(index) {
            TokenKind::Star | TokenKind::Minus => true,
            TokenKind::Distinct if self.kind_of(index - 1) == TokenKind::Json => {
                self.starts_selection(index + 1) || self.starts_selector(index)
            }
            _ => self.starts_selector(index),
        }
    }

    /// `*` or selectors.
    pub(super) fn selection(&mut self) -> Outcome<Selection> {
        if self.accept(TokenKind::Star) {
            return Ok(Selection::All);
        }
        Ok(Selection::Items(self.separated(TokenKind::Comma, Self::select_item)?))
    }

    fn select_item(&mut self) -> Outcome<SelectItem> {
        let selector = self.selector()?;
        let alias = if self.accept(TokenKind::As) { Some(self.name()?) } else { None };
        Ok(SelectItem { selector, alias })
    }

    fn ordering(&mut self) -> Outcome<Ordering> {
        let column = self.column_name()?;
        let ann_of = if self.accept(TokenKind::Ann) {
            self.expect(TokenKind::Of)?;
            Some(self.term()?)
        } else {
            None
        };
        let is_descending = self.accept(TokenKind::Desc);
        if !is_descending {
            self.accept(TokenKind::Asc);
        }
        Ok(Ordering { column, ann_of, is_descending })
    }

    /// Whether a selector other than a negation starts at this index. A name does so only if what
    /// comes behind it could not make it an alias or the next clause.
    pub(super) fn starts_selector(&mut self, index: usize) -> bool {
        match self.kind_of(index) {
            TokenKind::QuestionMark
            | TokenKind::Colon
            | TokenKind::Null
            | TokenKind::OpenBracket
            | TokenKind::OpenBrace
            | TokenKind::OpenParenthesis
            | TokenKind::Token => true,
            kind if is_literal(kind) => true,
            kind if is_name(kind) => {
                let follower = self.kind_of(index + 1);
                follower == TokenKind::As || !is_name(follower)
            }
            _ => false,
        }
    }
}
