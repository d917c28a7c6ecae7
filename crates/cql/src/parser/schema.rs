//! Keyspaces, tables and user types.

use super::Parser;
use super::failure::Outcome;
use super::name::{is_column_name, is_function_name, is_name};
use crate::ast::{
    AlterKeyspace, AlterTable, AlterTableAction, AlterType, AlterTypeAction, ColumnDefinition, ColumnMask,
    CqlTypeName, CreateKeyspace, CreateTable, CreateType, Drop, DropKeyspace, Ident, PrimaryKey,
    QualifiedName, Truncate,
};
use crate::lexer::TokenKind;
use crate::text::Text;

impl Parser<'_> {
    /// Behind `CREATE KEYSPACE`.
    pub(super) fn create_keyspace(&mut self) -> Outcome<CreateKeyspace> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.keyspace_name()?;
        self.expect(TokenKind::With)?;
        Ok(CreateKeyspace { if_not_exists, name, properties: self.properties()? })
    }

    /// Behind `ALTER KEYSPACE`.
    pub(super) fn alter_keyspace(&mut self) -> Outcome<AlterKeyspace> {
        let if_exists = self.if_exists()?;
        let name = self.keyspace_name()?;
        self.expect(TokenKind::With)?;
        Ok(AlterKeyspace { if_exists, name, properties: self.properties()? })
    }

    /// Behind `DROP KEYSPACE`.
    pub(super) fn drop_keyspace(&mut self) -> Outcome<DropKeyspace> {
        Ok(DropKeyspace { if_exists: self.if_exists()?, name: self.keyspace_name()? })
    }

    /// Behind `DROP TABLE` and `DROP MATERIALIZED VIEW`.
    pub(super) fn drop_table(&mut self) -> Outcome<Drop> {
        Ok(Drop { if_exists: self.if_exists()?, name: self.table_name()? })
    }

    /// `TRUNCATE [TABLE] name`
    pub(super) fn truncate(&mut self) -> Outcome<Truncate> {
        self.expect(TokenKind::Truncate)?;
        self.accept(TokenKind::Table);
        Ok(Truncate { table: self.table_name()? })
    }

    /// Behind `CREATE TABLE`.
    pub(super) fn create_table(&mut self) -> Outcome<CreateTable> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.table_name()?;
        self.expect(TokenKind::OpenParenthesis)?;
        let (mut columns, mut primary_keys) = (Vec::new(), Vec::new());
        loop {
            match self.kind() {
                TokenKind::Primary => primary_keys.push(self.primary_key()?),
                kind if is_name(kind) => columns.push(self.table_column()?),
                // Commas may repeat and end the list, not begin it.
                _ if !(columns.is_empty() && primary_keys.is_empty()) => {}
                _ => return Err(self.no_viable()),
            }
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::CloseParenthesis)?;
        let options = self.table_options()?;
        Ok(CreateTable { if_not_exists, name, columns, primary_keys, options })
    }

    fn table_column(&mut self) -> Outcome<ColumnDefinition> {
        let mut column = self.column_definition()?;
        column.is_primary_key = self.accept(TokenKind::Primary);
        if column.is_primary_key {
            self.expect(TokenKind::Key)?;
        }
        Ok(column)
    }

    /// `name type [STATIC] [MASKED WITH …]`
    fn column_definition(&mut self) -> Outcome<ColumnDefinition> {
        let name = self.name()?;
        let type_name = self.type_name()?;
        let is_static = self.accept(TokenKind::Static);
        let mask = if self.kind() == TokenKind::Masked { Some(self.column_mask()?) } else { None };
        Ok(ColumnDefinition { name, type_name, is_static, mask, is_primary_key: false })
    }

    fn column_mask(&mut self) -> Outcome<ColumnMask> {
        // One decision takes in the first three words.
        if self.kind_at(1) != TokenKind::With {
            return Err(self.no_viable_ahead(1));
        }
        if !is_name(self.kind_at(2)) && !is_function_name(self.kind_at(2)) {
            return Err(self.no_viable_ahead(2));
        }
        self.advance();
        self.advance();
        let is_function = matches!(self.kind_at(1), TokenKind::OpenParenthesis | TokenKind::Dot);
        if self.kind() == TokenKind::Default && !is_function {
            self.advance();
            return Ok(ColumnMask::Default);
        }
        let name = self.function_name()?;
        self.expect(TokenKind::OpenParenthesis)?;
        Ok(ColumnMask::Function(name, self.list_until(TokenKind::CloseParenthesis, Self::term)?))
    }

    /// `PRIMARY KEY ((a, b), c)`
    pub(super) fn primary_key(&mut self) -> Outcome<PrimaryKey> {
        self.expect_all(&[TokenKind::Primary, TokenKind::Key, TokenKind::OpenParenthesis])?;
        let partition = if self.accept(TokenKind::OpenParenthesis) {
            let columns = self.separated(TokenKind::Comma, Self::name)?;
            self.expect(TokenKind::CloseParenthesis)?;
            columns
        } else {
            vec![self.name()?]
        };
        let mut clustering = Vec::new();
        while self.accept(TokenKind::Comma) {
            clustering.push(self.name()?);
        }
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(PrimaryKey { partition, clustering })
    }

    /// Behind `ALTER TABLE`.
    pub(super) fn alter_table(&mut self) -> Outcome<AlterTable> {
        let if_exists = self.if_exists()?;
        let name = self.table_name()?;
        let action = match self.kind() {
            TokenKind::Alter => self.alter_column()?,
            TokenKind::Add => {
                self.advance();
                let if_not_exists = self.if_not_exists()?;
                AlterTableAction::Add { if_not_exists, columns: self.one_or_more(Self::column_definition)? }
            }
            TokenKind::Drop => self.drop_columns()?,
            TokenKind::Rename => {
                self.advance();
                let if_exists = self.if_exists()?;
                AlterTableAction::Rename { if_exists, columns: self.renames()? }
            }
            TokenKind::With => {
                self.advance();
                AlterTableAction::With(self.properties()?)
            }
            _ => return Err(self.no_viable()),
        };
        Ok(AlterTable { if_exists, name, action })
    }

    /// `item` or `(item, item, …)`
    fn one_or_more<T>(&mut self, item: fn(&mut Self) -> Outcome<T>) -> Outcome<Vec<T>> {
        if !self.accept(TokenKind::OpenParenthesis) {
            if !is_name(self.kind()) {
                return Err(self.no_viable());
            }
            return Ok(vec![item(self)?]);
        }
        let items = self.separated(TokenKind::Comma, item)?;
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(items)
    }

    fn alter_column(&mut self) -> Outcome<AlterTableAction> {
        if self.kind_at(1) != TokenKind::If {
            if !is_column_name(self.kind_at(1)) {
                return Err(self.no_viable_ahead(1));
            }
            if !matches!(self.kind_at(2), TokenKind::Type | TokenKind::Masked | TokenKind::Drop) {
                return Err(self.no_viable_ahead(2));
            }
        }
        self.advance();
        if self.kind() != TokenKind::If && self.kind_at(1) == TokenKind::Type {
            let column = self.column_name()?;
            self.advance();
            return Ok(AlterTableAction::AlterType { column, type_name: self.type_name()? });
        }
        let if_exists = self.if_exists()?;
        let column = self.column_name()?;
        let mask = match self.kind() {
            TokenKind::Masked => Some(self.column_mask()?),
            TokenKind::Drop => {
                self.advance();
                self.expect(TokenKind::Masked)?;
                None
            }
            _ => return Err(self.no_viable()),
        };
        Ok(AlterTableAction::AlterMask { if_exists, column, mask })
    }

    fn drop_columns(&mut self) -> Outcome<AlterTableAction> {
        let dropped = self.kind_at(1);
        if !is_name(dropped) && !matches!(dropped, TokenKind::If | TokenKind::OpenParenthesis) {
            return Err(self.no_viable_ahead(1));
        }
        self.advance();
        if self.kind() == TokenKind::Compact && self.kind_at(1) == TokenKind::Storage {
            self.advance();
            self.advance();
            return Ok(AlterTableAction::DropCompactStorage);
        }
        let if_exists = self.if_exists()?;
        let columns = self.one_or_more(Self::name)?;
        let mut timestamp = None;
        if self.accept(TokenKind::Using) {
            self.expect(TokenKind::Timestamp)?;
            let digits = Text::new(self.token_text());
            self.expect(TokenKind::Integer)?;
            timestamp = Some(digits);
        }
        Ok(AlterTableAction::Drop { if_exists, columns, timestamp })
    }

    /// `a TO b AND c TO d …`
    fn renames(&mut self) -> Outcome<Vec<(Ident, Ident)>> {
        self.separated(TokenKind::And, |parser| {
            let from = parser.name()?;
            parser.expect(TokenKind::To)?;
            Ok((from, parser.name()?))
        })
    }

    /// Behind `CREATE TYPE`.
    pub(super) fn create_type(&mut self) -> Outcome<CreateType> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.user_type_name()?;
        self.expect(TokenKind::OpenParenthesis)?;
        let mut fields = vec![self.field_definition()?];
        while self.accept(TokenKind::Comma) {
            // Commas may repeat and end the list.
            if is_name(self.kind()) {
                fields.push(self.field_definition()?);
            }
        }
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(CreateType { if_not_exists, name, fields })
    }

    fn field_definition(&mut self) -> Outcome<(Ident, CqlTypeName)> {
        Ok((self.name()?, self.type_name()?))
    }

    /// Behind `ALTER TYPE`.
    pub(super) fn alter_type(&mut self) -> Outcome<AlterType> {
        let if_exists = self.if_exists()?;
        let name = self.user_type_name()?;
        let action = match self.kind() {
            TokenKind::Alter => {
                self.advance();
                let field = self.name()?;
                self.expect(TokenKind::Type)?;
                AlterTypeAction::AlterField { field, type_name: self.type_name()? }
            }
            TokenKind::Add => {
                self.advance();
                let if_not_exists = self.if_not_exists()?;
                let (field, type_name) = self.field_definition()?;
                AlterTypeAction::AddField { if_not_exists, field, type_name }
            }
            TokenKind::Rename => {
                self.advance();
                let if_exists = self.if_exists()?;
                AlterTypeAction::RenameFields { if_exists, fields: self.renames()? }
            }
            _ => return Err(self.no_viable()),
        };
        Ok(AlterType { if_exists, name, action })
    }

    /// Behind `DROP TYPE`.
    pub(super) fn drop_type(&mut self) -> Outcome<Drop> {
        let if_exists = self.if_exists()?;
        let QualifiedName { keyspace, name } = self.user_type_name()?;
        Ok(Drop { if_exists, name: QualifiedName { keyspace, name } })
    }
}
