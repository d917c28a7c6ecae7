//! Functions and aggregates.

use super::Parser;
use super::failure::Outcome;
use crate::ast::{CqlTypeName, CreateAggregate, CreateFunction, DropFunction};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Behind `CREATE [OR REPLACE] FUNCTION`.
    pub(super) fn create_function(&mut self, or_replace: bool) -> Outcome<CreateFunction> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.function_name()?;
        self.expect(TokenKind::OpenParenthesis)?;
        let arguments =
            self.list_until(TokenKind::CloseParenthesis, |parser| Ok((parser.name()?, parser.type_name()?)))?;
        let is_called_on_null_input = match self.kind() {
            TokenKind::Returns => {
                self.advance();
                self.expect(TokenKind::Null)?;
                false
            }
            TokenKind::Called => {
                self.advance();
                true
            }
            _ => return Err(self.no_viable()),
        };
        self.expect_all(&[TokenKind::On, TokenKind::Null, TokenKind::Input, TokenKind::Returns])?;
        let return_type = self.type_name()?;
        self.expect(TokenKind::Language)?;
        if self.kind() != TokenKind::Identifier {
            return Err(self.mismatched(TokenKind::Identifier));
        }
        let language = self.take_name();
        self.expect(TokenKind::As)?;
        let body = self.string()?;
        Ok(CreateFunction {
            or_replace,
            if_not_exists,
            name,
            arguments,
            is_called_on_null_input,
            return_type,
            language,
            body,
        })
    }

    /// Behind `CREATE [OR REPLACE] AGGREGATE`.
    pub(super) fn create_aggregate(&mut self, or_replace: bool) -> Outcome<CreateAggregate> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.function_name()?;
        self.expect(TokenKind::OpenParenthesis)?;
        let arguments = self.list_until(TokenKind::CloseParenthesis, Self::type_name)?;
        self.expect(TokenKind::Sfunc)?;
        let state_function = self.plain_function_name()?;
        self.expect(TokenKind::Stype)?;
        let state_type = self.type_name()?;
        let final_function =
            if self.accept(TokenKind::Finalfunc) { Some(self.plain_function_name()?) } else { None };
        let initial_condition = if self.accept(TokenKind::Initcond) { Some(self.term()?) } else { None };
        Ok(CreateAggregate {
            or_replace,
            if_not_exists,
            name,
            arguments,
            state_function,
            state_type,
            final_function,
            initial_condition,
        })
    }

    /// Behind `DROP FUNCTION` and `DROP AGGREGATE`.
    pub(super) fn drop_function(&mut self) -> Outcome<DropFunction> {
        let if_exists = self.if_exists()?;
        let name = self.function_name()?;
        let arguments = self.argument_types()?;
        Ok(DropFunction { if_exists, name, arguments })
    }

    /// `(int, text)`, or nothing.
    pub(super) fn argument_types(&mut self) -> Outcome<Option<Vec<CqlTypeName>>> {
        if !self.accept(TokenKind::OpenParenthesis) {
            return Ok(None);
        }
        Ok(Some(self.list_until(TokenKind::CloseParenthesis, Self::type_name)?))
    }
}
