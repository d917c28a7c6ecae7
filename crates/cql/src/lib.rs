//! CQL 3.4.7, the language of Cassandra 5.0: text to trees and back.
//!
//! [`parse_statement`] makes a [`Statement`](ast::Statement) of a text, [`parse_type`] a type of
//! a type's name; every node of the [tree](ast) prints itself as CQL again. Wrong text is refused
//! with the message that Cassandra gives ([`SyntaxError`]).
//!
//! This crate knows what a statement looks like, never what it means: no schema, no types of
//! values, no I/O.

pub mod ast;
mod error;
mod lexer;
mod parser;
pub mod printer;
mod text;

pub use error::SyntaxError;
pub use printer::maybe_quote;
pub use text::Text;

/// Parses one statement; a semicolon may follow it.
///
/// # Errors
///
/// The message that Cassandra 5.0.9 gives for the same text.
pub fn parse_statement(text: &str) -> Result<ast::Statement, SyntaxError> {
    parser::parse_statement(text)
}

/// Parses the name of a type, as in `map<text, frozen<list<int>>>`.
///
/// # Errors
///
/// The message that Cassandra 5.0.9 gives for the same text.
pub fn parse_type(text: &str) -> Result<ast::CqlTypeName, SyntaxError> {
    parser::parse_type(text)
}

/// How many tokens a text has, up to where it is wrong: what its tree takes grows with them. Nothing is kept of them.
pub fn token_count(text: &str) -> usize {
    lexer::count_tokens(text)
}
