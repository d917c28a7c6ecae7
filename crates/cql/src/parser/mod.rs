//! Tokens to trees, by recursive descent: a function for each construct of the language.
//!
//! Nothing is read twice on the way to a tree, with two exceptions: the type in `(type) value` is
//! looked over before it is known to be one, and a batch is tried statement by statement first (see
//! `alike`). Looking ahead also decides how an error reads: Cassandra's
//! parser chooses between alternatives by as many tokens as that takes, and its message names the
//! token that left no choice and shows the place where the choice began. `kind_at` remembers how
//! far was looked, because the message quotes the text up to there.

mod alike;
mod assigned;
mod batch;
mod condition;
mod describe;
mod failure;
mod literal;
mod modification;
mod name;
mod property;
mod relation;
mod routine;
mod schema;
mod schema_object;
mod security;
mod security_role;
mod select;
mod selector;
mod statement;
mod term;
mod type_name;

use crate::ast::{CqlTypeName, Marker, Statement};
use crate::error::SyntaxError;
use crate::lexer::{Lexer, LexicalError, Token, TokenKind};
use failure::{Failure, Outcome};
pub(crate) use name::RESERVED_TYPE_NAMES;

/// How high a tree may be: parentheses, brackets, types, signs and operators, one inside or behind another. It is
/// walked by recursion, here and by whoever reads it, some KiB of stack at a time.
const NESTING_MAX: u32 = 128;
/// Longest text; offsets are 32 bits.
const TEXT_BYTES_MAX: usize = u32::MAX as usize;

/// Parses a whole statement.
pub(crate) fn parse_statement(text: &str) -> Result<Statement, SyntaxError> {
    if let Some(batch) = alike::parse_batch(text) {
        return Ok(batch);
    }
    let mut parser = Parser::new(text)?;
    let outcome = parser.statement();
    parser.finish(outcome)
}

/// Parses a whole type.
pub(crate) fn parse_type(text: &str) -> Result<CqlTypeName, SyntaxError> {
    let mut parser = Parser::new(text)?;
    let outcome = parser.type_to_the_end();
    parser.finish(outcome)
}

/// Walks over the tokens of one text.
struct Parser<'a> {
    text: &'a str,
    /// Closed by `End` or `Invalid`, which is never consumed.
    tokens: Vec<Token>,
    lexical_error: Option<LexicalError>,
    /// The next token. Invariant: below `tokens.len()`.
    at: usize,
    /// The furthest token ever looked at.
    seen: usize,
    markers: Vec<Marker>,
    nesting: u32,
    operator_count: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, SyntaxError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(SyntaxError::new(format!("the text is longer than {TEXT_BYTES_MAX} bytes")));
        }
        let (tokens, lexical_error) = Lexer::new(text).tokenize();
        Ok(Parser { lexical_error, ..Parser::over(text, tokens) })
    }

    /// Over tokens of the text, closed by `End` or `Invalid`.
    fn over(text: &'a str, tokens: Vec<Token>) -> Self {
        Parser {
            text,
            tokens,
            lexical_error: None,
            at: 0,
            seen: 0,
            markers: Vec::new(),
            nesting: 0,
            operator_count: 0,
        }
    }

    /// Puts a failure into words.
    fn finish<T>(self, outcome: Outcome<T>) -> Result<T, SyntaxError> {
        outcome.map_err(|failure| failure::describe(&self, &failure))
    }

    /// The kind of the next token.
    #[inline]
    fn kind(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    /// The kind of the token so many places ahead.
    #[inline]
    fn kind_at(&mut self, ahead: usize) -> TokenKind {
        self.kind_of(self.at + ahead)
    }

    /// The kind of the token at this index; the last one goes on forever.
    #[inline]
    fn kind_of(&mut self, index: usize) -> TokenKind {
        let index = index.min(self.tokens.len() - 1);
        self.seen = self.seen.max(index);
        self.tokens[index].kind
    }

    /// Looks at the token so many places ahead, as Cassandra does before it decides.
    #[inline]
    fn look(&mut self, ahead: usize) {
        let _ = self.kind_at(ahead);
    }

    /// The text of the next token.
    #[inline]
    fn token_text(&self) -> &'a str {
        let token = self.tokens[self.at];
        &self.text[token.start as usize..token.end as usize]
    }

    /// Steps over the next token; not over the last one.
    #[inline]
    fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    /// Steps over the next token if it is of this kind.
    #[inline]
    fn accept(&mut self, kind: TokenKind) -> bool {
        let is_there = self.kind() == kind;
        if is_there {
            self.advance();
        }
        is_there
    }

    /// Steps over a token that must come now.
    #[inline]
    fn expect(&mut self, kind: TokenKind) -> Outcome<()> {
        if self.accept(kind) { Ok(()) } else { Err(self.mismatched(kind)) }
    }

    /// Steps over several tokens that must come now.
    fn expect_all(&mut self, kinds: &[TokenKind]) -> Outcome<()> {
        kinds.iter().try_for_each(|kind| self.expect(*kind))
    }

    /// `item, item, …`, at least one.
    fn separated<T>(&mut self, separator: TokenKind, item: fn(&mut Self) -> Outcome<T>) -> Outcome<Vec<T>> {
        let mut items = Vec::with_capacity(4);
        items.push(item(self)?);
        while self.accept(separator) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Items with commas between them up to a closing sign; maybe none.
    fn list_until<T>(&mut self, close: TokenKind, item: fn(&mut Self) -> Outcome<T>) -> Outcome<Vec<T>> {
        if self.accept(close) {
            return Ok(Vec::new());
        }
        let first = self.at;
        let items = self.separated(TokenKind::Comma, item).map_err(|failure| match *failure {
            // Nothing that could be an item: then the end is what is missing.
            Failure::NoViable { start, at } if start == first && at == first => self.mismatched(close),
            _ => failure,
        })?;
        self.expect(close)?;
        Ok(items)
    }

    /// `IF NOT EXISTS`, or nothing.
    fn if_not_exists(&mut self) -> Outcome<bool> {
        if !self.accept(TokenKind::If) {
            return Ok(false);
        }
        self.expect_all(&[TokenKind::Not, TokenKind::Exists])?;
        Ok(true)
    }

    /// `IF EXISTS`, or nothing.
    fn if_exists(&mut self) -> Outcome<bool> {
        if !self.accept(TokenKind::If) {
            return Ok(false);
        }
        self.expect(TokenKind::Exists)?;
        Ok(true)
    }

    /// Goes one level down for the time of a call.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.nesting + self.operator_count >= NESTING_MAX {
            return Err(self.failure_here(Failure::TooDeep { levels_max: NESTING_MAX }));
        }
        let operator_count = self.operator_count;
        self.nesting += 1;
        let outcome = inner(self);
        self.nesting -= 1;
        // What stands beside it is no higher for its operators.
        self.operator_count = operator_count;
        outcome
    }

    /// Counts an operator of the current term: what stands before it is one level deeper.
    fn count_operator(&mut self) -> Outcome<()> {
        self.operator_count += 1;
        if self.nesting + self.operator_count > NESTING_MAX {
            return Err(self.failure_here(Failure::TooManyOperators { levels_max: NESTING_MAX }));
        }
        Ok(())
    }

    /// The next token is not the only one that may stand here.
    #[cold]
    fn mismatched(&self, expected: TokenKind) -> Box<Failure> {
        self.failure_here(Failure::Mismatched { at: self.at, expected })
    }

    /// No alternative starts with the next token.
    #[cold]
    fn no_viable(&self) -> Box<Failure> {
        Box::new(Failure::NoViable { start: self.at, at: self.at })
    }

    /// No alternative goes on like this so many tokens ahead; the choice starts here.
    #[cold]
    fn no_viable_ahead(&mut self, ahead: usize) -> Box<Failure> {
        let _ = self.kind_at(ahead);
        let at = (self.at + ahead).min(self.tokens.len() - 1);
        Box::new(Failure::NoViable { start: self.at, at })
    }

    /// Something that the grammar allows and the language refuses.
    #[cold]
    fn refused(&self, message: String) -> Box<Failure> {
        Box::new(Failure::Refused { message })
    }

    #[cold]
    fn failure_here(&self, failure: Failure) -> Box<Failure> {
        Box::new(failure)
    }
}

#[cfg(test)]
mod tests;
