//! Identifiers and qualified names.

use super::Parser;
use super::failure::Outcome;
use crate::ast::{Ident, Marker, QualifiedName};
use crate::lexer::TokenKind;
use crate::lexer::keyword::{KeywordClass, class_of};

/// What a bound name is refused with, as in `SELECT * FROM ?`.
#[derive(Clone, Copy)]
pub(super) enum NameKind {
    Keyspace,
    Table,
    Index,
}

impl NameKind {
    fn plural(self) -> &'static str {
        match self {
            NameKind::Keyspace => "keyspace",
            NameKind::Table => "table",
            NameKind::Index => "index",
        }
    }
}

/// A word, a quoted name or a keyword that is not reserved.
#[inline]
pub(super) fn is_name(kind: TokenKind) -> bool {
    match kind {
        TokenKind::Identifier | TokenKind::QuotedName => true,
        other => {
            matches!(class_of(other), Some(KeywordClass::Basic | KeywordClass::Native | KeywordClass::Extra))
        }
    }
}

/// A name, or the empty `""`.
#[inline]
pub(super) fn is_column_name(kind: TokenKind) -> bool {
    kind == TokenKind::EmptyQuotedName || is_name(kind)
}

/// What a function may be called.
#[inline]
pub(super) fn is_function_name(kind: TokenKind) -> bool {
    match kind {
        TokenKind::Identifier | TokenKind::QuotedName | TokenKind::Token | TokenKind::Count => true,
        other => matches!(class_of(other), Some(KeywordClass::Basic | KeywordClass::Native)),
    }
}

/// What a user type may be called.
#[inline]
pub(super) fn is_type_name(kind: TokenKind) -> bool {
    match kind {
        TokenKind::Identifier | TokenKind::QuotedName | TokenKind::Key => true,
        other => class_of(other) == Some(KeywordClass::Basic),
    }
}

impl<'a> Parser<'a> {
    /// The name that the next token is, whatever kind of name: folded or unquoted.
    #[inline]
    pub(super) fn take_name(&mut self) -> Ident {
        let text = self.token_text();
        let name = match self.kind() {
            TokenKind::QuotedName => {
                let inner = &text[1..text.len() - 1];
                if inner.contains('"') { inner.replace("\"\"", "\"").into() } else { Ident::new(inner) }
            }
            TokenKind::EmptyQuotedName => Ident::default(),
            _ => Ident::folded(text),
        };
        self.advance();
        name
    }

    /// A name of a field, an alias, a property, …
    #[inline]
    pub(super) fn name(&mut self) -> Outcome<Ident> {
        if is_name(self.kind()) { Ok(self.take_name()) } else { Err(self.no_viable()) }
    }

    /// A name of a column.
    #[inline]
    pub(super) fn column_name(&mut self) -> Outcome<Ident> {
        if is_column_name(self.kind()) { Ok(self.take_name()) } else { Err(self.no_viable()) }
    }

    /// A name of a function without its keyspace.
    pub(super) fn plain_function_name(&mut self) -> Outcome<Ident> {
        if is_function_name(self.kind()) { Ok(self.take_name()) } else { Err(self.no_viable()) }
    }

    /// A name that must not be bound.
    fn unbound_name(&mut self, kind: NameKind) -> Outcome<Ident> {
        match self.kind() {
            TokenKind::QuestionMark => {
                let plural = kind.plural();
                Err(self.refused(format!("Bind variables cannot be used for {plural} names")))
            }
            _ => self.name(),
        }
    }

    /// The name of a keyspace.
    pub(super) fn keyspace_name(&mut self) -> Outcome<Ident> {
        self.unbound_name(NameKind::Keyspace)
    }

    /// `[keyspace.]table`; views and described indexes are named alike.
    pub(super) fn table_name(&mut self) -> Outcome<QualifiedName> {
        self.qualified_name(NameKind::Table)
    }

    /// `[keyspace.]index`
    pub(super) fn index_name(&mut self) -> Outcome<QualifiedName> {
        self.qualified_name(NameKind::Index)
    }

    /// The name of an index where no keyspace may be.
    pub(super) fn plain_index_name(&mut self) -> Outcome<Ident> {
        self.unbound_name(NameKind::Index)
    }

    fn qualified_name(&mut self, kind: NameKind) -> Outcome<QualifiedName> {
        if !is_name(self.kind()) && self.kind() != TokenKind::QuestionMark {
            return Err(self.no_viable());
        }
        let follower = self.kind_at(1);
        if follower == TokenKind::Dot {
            let keyspace = Some(self.keyspace_name()?);
            self.advance();
            return Ok(QualifiedName { keyspace, name: self.unbound_name(kind)? });
        }
        if !may_follow_table(follower) {
            return Err(self.no_viable_ahead(1));
        }
        self.look(2);
        Ok(QualifiedName { keyspace: None, name: self.unbound_name(kind)? })
    }

    /// `[keyspace.]function`
    pub(super) fn function_name(&mut self) -> Outcome<QualifiedName> {
        if !is_name(self.kind()) && !is_function_name(self.kind()) && self.kind() != TokenKind::QuestionMark {
            return Err(self.no_viable());
        }
        let keyspace = match self.kind_at(1) {
            TokenKind::Dot => {
                let keyspace = self.keyspace_name()?;
                self.advance();
                Some(keyspace)
            }
            TokenKind::OpenParenthesis
            | TokenKind::With
            | TokenKind::Semicolon
            | TokenKind::End
            | TokenKind::Invalid => None,
            _ => return Err(self.no_viable_ahead(1)),
        };
        Ok(QualifiedName { keyspace, name: self.plain_function_name()? })
    }

    /// `[keyspace.]type` of a user type.
    pub(super) fn user_type_name(&mut self) -> Outcome<QualifiedName> {
        let keyspace = if is_name(self.kind()) && self.kind_at(1) == TokenKind::Dot {
            let keyspace = self.take_name();
            self.advance();
            Some(keyspace)
        } else {
            None
        };
        if !is_type_name(self.kind()) {
            // What is a name and no name of a type can only be a keyspace.
            if keyspace.is_none() && is_name(self.kind()) {
                self.advance();
                return Err(self.mismatched(TokenKind::Dot));
            }
            return Err(self.no_viable());
        }
        let written = self.token_text();
        if self.kind() == TokenKind::Identifier && RESERVED_TYPE_NAMES.contains(&written) {
            return Err(self.refused(format!("Invalid (reserved) user type name {written}")));
        }
        Ok(QualifiedName { keyspace, name: self.take_name() })
    }

    /// A marker that starts at the next token, which is `?` or `:`.
    pub(super) fn marker(&mut self) -> Outcome<Marker> {
        let is_named = self.kind() == TokenKind::Colon;
        self.advance();
        let name = if is_named { Some(self.name()?) } else { None };
        let marker = Marker { index: self.markers.len() as u32, name };
        self.markers.push(marker.clone());
        Ok(marker)
    }
}

/// Names kept for types to come; only refused in lower case.
pub(crate) const RESERVED_TYPE_NAMES: [&str; 7] =
    ["byte", "complex", "enum", "date", "interval", "macaddr", "bitstring"];

/// Whether some statement goes on with this token behind the name of a table.
fn may_follow_table(kind: TokenKind) -> bool {
    use TokenKind as Kind;
    matches!(
        kind,
        Kind::End
            | Kind::Invalid
            | Kind::Semicolon
            | Kind::OpenParenthesis
            | Kind::Add
            | Kind::Allow
            | Kind::Alter
            | Kind::As
            | Kind::Drop
            | Kind::From
            | Kind::Group
            | Kind::Json
            | Kind::Limit
            | Kind::Norecursive
            | Kind::Of
            | Kind::Order
            | Kind::Per
            | Kind::Primary
            | Kind::Rename
            | Kind::Set
            | Kind::To
            | Kind::Using
            | Kind::Where
            | Kind::With
    )
}
