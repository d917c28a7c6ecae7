//! CQL's data types and values: names, encodings, comparison, byte-comparable forms, tokens.
//!
//! Everything here is pure: bytes in, bytes or orderings out. A *value* is kept in its native
//! encoding (the bytes the CQL protocol and the table files share), never as a tree, unless
//! somebody needs to look inside.

mod cql_type;
mod token;

pub use cql_type::{CqlType, UserType};
pub use token::Token;
