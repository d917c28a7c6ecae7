//! Names, quoted where they must be.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use crate::ast::{Ident, Marker, QualifiedName};
use crate::lexer::TokenKind;
use crate::lexer::keyword::{self, KeywordClass};
use crate::text::Text;

/// A name as it must be written in CQL: in double quotes if it has upper-case letters or odd
/// characters, or is a reserved word.
pub fn maybe_quote(name: &str) -> Cow<'_, str> {
    if is_plain(name) && !keyword::is_reserved(name) { Cow::Borrowed(name) } else { Cow::Owned(quoted(name)) }
}

/// Whether a name folds to itself and is no constant.
fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !matches!(name, "true" | "false")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a string constant.
pub(super) struct Quoted<'a>(pub(super) &'a Text);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}

/// A name where no keyword may stand.
pub(super) struct NoKeyword<'a>(pub(super) &'a Ident);

impl Display for NoKeyword<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if keyword::find(self.0.as_bytes()).is_some() {
            return f.write_str(&quoted(self.0));
        }
        self.0.fmt(f)
    }
}

/// A name of a function: `token` needs no quotes here, `key` and `ttl` do.
pub(super) struct FunctionName<'a>(pub(super) &'a QualifiedName);

impl Display for FunctionName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(keyspace) = &self.0.keyspace {
            write!(f, "{keyspace}.")?;
        }
        PlainFunctionName(&self.0.name).fmt(f)
    }
}

/// A name of a function without its keyspace.
pub(super) struct PlainFunctionName<'a>(pub(super) &'a Ident);

impl Display for PlainFunctionName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = self.0;
        match keyword::find(name.as_bytes()) {
            Some(TokenKind::Token | TokenKind::Count) => f.write_str(name),
            Some(kind) if keyword::class_of(kind) == Some(KeywordClass::Extra) => f.write_str(&quoted(name)),
            // With its parenthesis this word is a token of its own.
            None if *name == "expr" => f.write_str(&quoted(name)),
            _ => name.fmt(f),
        }
    }
}

impl Display for Ident {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&maybe_quote(self))
    }
}

impl Display for QualifiedName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(keyspace) = &self.keyspace {
            write!(f, "{keyspace}.")?;
        }
        self.name.fmt(f)
    }
}

impl Display for Marker {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, ":{name}"),
            None => f.write_str("?"),
        }
    }
}
