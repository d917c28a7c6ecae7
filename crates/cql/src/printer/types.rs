//! Types.

use std::fmt::{self, Display, Formatter};

use super::commas;
use super::name::{NoKeyword, Quoted};
use crate::ast::{CqlTypeName, NativeType};

impl Display for NativeType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Display for CqlTypeName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            CqlTypeName::Native(native) => native.fmt(f),
            CqlTypeName::List(element) => write!(f, "list<{element}>"),
            CqlTypeName::Set(element) => write!(f, "set<{element}>"),
            CqlTypeName::Map(key, value) => write!(f, "map<{key}, {value}>"),
            CqlTypeName::Tuple(elements) => write!(f, "tuple<{}>", commas(elements)),
            CqlTypeName::Vector(element, dimension) => write!(f, "vector<{element}, {dimension}>"),
            CqlTypeName::Frozen(inner) => write!(f, "frozen<{inner}>"),
            CqlTypeName::Custom(class) => Quoted(class).fmt(f),
            CqlTypeName::User { keyspace, name } => {
                if let Some(keyspace) = keyspace {
                    write!(f, "{keyspace}.")?;
                }
                UserTypeName(name).fmt(f)
            }
        }
    }
}

/// The name of a user type, which may be that of a native one or of one to come.
pub(super) struct UserTypeName<'a>(pub(super) &'a crate::ast::Ident);

impl Display for UserTypeName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if crate::parser::RESERVED_TYPE_NAMES.contains(&self.0.as_str()) {
            return write!(f, "\"{}\"", self.0.as_str());
        }
        NoKeyword(self.0).fmt(f)
    }
}
