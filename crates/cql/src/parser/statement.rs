//! Which statement it is, by its first words.

use super::Parser;
use super::failure::Outcome;
use crate::ast::{Statement, StatementKind};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// A statement, any number of semicolons and the end of the text.
    pub(super) fn statement(&mut self) -> Outcome<Statement> {
        let kind = self.statement_kind()?;
        while self.accept(TokenKind::Semicolon) {}
        self.end()?;
        Ok(Statement { kind, markers: std::mem::take(&mut self.markers) })
    }

    /// The end of the text must come now.
    pub(super) fn end(&mut self) -> Outcome<()> {
        if self.kind() == TokenKind::End {
            return Ok(());
        }
        Err(self.mismatched(TokenKind::End))
    }

    fn statement_kind(&mut self) -> Outcome<StatementKind> {
        Ok(match self.kind() {
            TokenKind::Select => StatementKind::Select(self.select()?),
            TokenKind::Insert => StatementKind::Insert(self.insert()?),
            TokenKind::Update => StatementKind::Update(self.update()?),
            TokenKind::Delete => StatementKind::Delete(self.delete()?),
            TokenKind::Begin => StatementKind::Batch(self.batch()?),
            TokenKind::Use => {
                self.advance();
                StatementKind::Use(self.keyspace_name()?)
            }
            TokenKind::Truncate => StatementKind::Truncate(self.truncate()?),
            TokenKind::Describe | TokenKind::Desc => StatementKind::Describe(self.describe()?),
            TokenKind::Create => self.create()?,
            TokenKind::Alter => self.alter()?,
            TokenKind::Drop => self.drop()?,
            TokenKind::Grant => self.grant()?,
            TokenKind::Revoke => self.revoke()?,
            TokenKind::List => self.list()?,
            TokenKind::Add => StatementKind::AddIdentity(self.add_identity()?),
            _ => return Err(self.no_viable()),
        })
    }

    fn create(&mut self) -> Outcome<StatementKind> {
        let created = self.kind_at(1);
        match created {
            TokenKind::Custom | TokenKind::Index => {
                self.advance();
                return Ok(StatementKind::CreateIndex(self.create_index()?));
            }
            TokenKind::Or => return self.create_or_replace(),
            TokenKind::Keyspace
            | TokenKind::Table
            | TokenKind::Type
            | TokenKind::Function
            | TokenKind::Aggregate
            | TokenKind::Materialized
            | TokenKind::Trigger
            | TokenKind::Role
            | TokenKind::User => {
                self.advance();
                self.advance();
            }
            _ => return Err(self.no_viable_ahead(1)),
        }
        Ok(match created {
            TokenKind::Keyspace => StatementKind::CreateKeyspace(self.create_keyspace()?),
            TokenKind::Table => StatementKind::CreateTable(self.create_table()?),
            TokenKind::Type => StatementKind::CreateType(self.create_type()?),
            TokenKind::Function => StatementKind::CreateFunction(self.create_function(false)?),
            TokenKind::Aggregate => StatementKind::CreateAggregate(self.create_aggregate(false)?),
            TokenKind::Materialized => {
                self.expect(TokenKind::View)?;
                StatementKind::CreateView(self.create_view()?)
            }
            TokenKind::Trigger => StatementKind::CreateTrigger(self.create_trigger()?),
            TokenKind::Role => {
                let if_not_exists = self.if_not_exists()?;
                StatementKind::CreateRole(self.role_definition(if_not_exists)?)
            }
            _ => {
                let if_not_exists = self.if_not_exists()?;
                StatementKind::CreateUser(self.user_definition(if_not_exists)?)
            }
        })
    }

    /// `CREATE OR REPLACE …`: functions and aggregates only.
    fn create_or_replace(&mut self) -> Outcome<StatementKind> {
        if self.kind_at(2) != TokenKind::Replace {
            return Err(self.no_viable_ahead(2));
        }
        let created = self.kind_at(3);
        if !matches!(created, TokenKind::Function | TokenKind::Aggregate) {
            return Err(self.no_viable_ahead(3));
        }
        for _ in 0..4 {
            self.advance();
        }
        Ok(if created == TokenKind::Function {
            StatementKind::CreateFunction(self.create_function(true)?)
        } else {
            StatementKind::CreateAggregate(self.create_aggregate(true)?)
        })
    }

    fn alter(&mut self) -> Outcome<StatementKind> {
        let altered = self.kind_at(1);
        if !matches!(
            altered,
            TokenKind::Keyspace
                | TokenKind::Table
                | TokenKind::Type
                | TokenKind::Materialized
                | TokenKind::Role
                | TokenKind::User
        ) {
            return Err(self.no_viable_ahead(1));
        }
        self.advance();
        self.advance();
        Ok(match altered {
            TokenKind::Keyspace => StatementKind::AlterKeyspace(self.alter_keyspace()?),
            TokenKind::Table => StatementKind::AlterTable(self.alter_table()?),
            TokenKind::Type => StatementKind::AlterType(self.alter_type()?),
            TokenKind::Materialized => {
                self.expect(TokenKind::View)?;
                StatementKind::AlterView(self.alter_view()?)
            }
            TokenKind::Role => {
                let if_exists = self.if_exists()?;
                StatementKind::AlterRole(self.role_definition(if_exists)?)
            }
            _ => {
                let if_exists = self.if_exists()?;
                StatementKind::AlterUser(self.user_definition(if_exists)?)
            }
        })
    }

    fn drop(&mut self) -> Outcome<StatementKind> {
        let dropped = self.kind_at(1);
        if !matches!(
            dropped,
            TokenKind::Keyspace
                | TokenKind::Table
                | TokenKind::Type
                | TokenKind::Index
                | TokenKind::Materialized
                | TokenKind::Function
                | TokenKind::Aggregate
                | TokenKind::Trigger
                | TokenKind::Role
                | TokenKind::User
                | TokenKind::Identity
        ) {
            return Err(self.no_viable_ahead(1));
        }
        self.advance();
        self.advance();
        Ok(match dropped {
            TokenKind::Keyspace => StatementKind::DropKeyspace(self.drop_keyspace()?),
            TokenKind::Table => StatementKind::DropTable(self.drop_table()?),
            TokenKind::Type => StatementKind::DropType(self.drop_type()?),
            TokenKind::Index => StatementKind::DropIndex(self.drop_index()?),
            TokenKind::Materialized => {
                self.expect(TokenKind::View)?;
                StatementKind::DropView(self.drop_table()?)
            }
            TokenKind::Function => StatementKind::DropFunction(self.drop_function()?),
            TokenKind::Aggregate => StatementKind::DropAggregate(self.drop_function()?),
            TokenKind::Trigger => StatementKind::DropTrigger(self.drop_trigger()?),
            TokenKind::Role => StatementKind::DropRole(self.drop_role()?),
            TokenKind::User => StatementKind::DropUser(self.drop_user()?),
            _ => StatementKind::DropIdentity(self.drop_identity()?),
        })
    }
}
