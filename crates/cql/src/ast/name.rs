//! Names as the parser hands them on: already folded, quotes removed.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use crate::text::Text;

/// The name of a column, a field, a keyspace, …
///
/// An unquoted name is folded to lower case, a quoted one kept as it was written. Two identifiers
/// are the same thing if and only if their texts are equal. It may be empty: CQL has `""` as a
/// column name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ident(Text);

impl Ident {
    /// An identifier whose folded text this is.
    #[inline]
    pub fn new(folded: &str) -> Self {
        Ident(Text::new(folded))
    }

    /// An identifier as written without quotes: folded to lower case.
    #[inline]
    pub fn folded(written: &str) -> Self {
        Ident(Text::new_lower_case(written))
    }

    /// The folded text.
    #[inline]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Deref for Ident {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Ident {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Ident {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Ident {
    fn from(folded: &str) -> Self {
        Ident::new(folded)
    }
}

impl From<String> for Ident {
    fn from(folded: String) -> Self {
        Ident(folded.into())
    }
}

impl From<Ident> for String {
    fn from(ident: Ident) -> Self {
        ident.0.into()
    }
}

impl PartialEq<str> for Ident {
    fn eq(&self, other: &str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<&str> for Ident {
    fn eq(&self, other: &&str) -> bool {
        self.0 == **other
    }
}

impl fmt::Debug for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// `[keyspace.]name` of a table, an index, a view or a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QualifiedName {
    /// The keyspace, when it was written.
    pub keyspace: Option<Ident>,
    /// The name inside the keyspace.
    pub name: Ident,
}

impl QualifiedName {
    /// A name without a keyspace.
    pub fn unqualified(name: &str) -> Self {
        QualifiedName { keyspace: None, name: Ident::new(name) }
    }
}

/// A place for a value that is bound later: `?` or `:name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Marker {
    /// Its place in [`Statement::markers`](super::Statement::markers), from 0.
    pub index: u32,
    /// The name of a named marker. Several markers may have one name.
    pub name: Option<Ident>,
}
