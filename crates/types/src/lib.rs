//! CQL's data types and values: names, encodings, comparison, byte-comparable forms, tokens.
//!
//! Everything here is pure: bytes in, bytes or orderings out. A *value* is kept in its native
//! encoding (the bytes the CQL protocol and the table files share), never as a tree, unless
//! somebody needs to look inside.

mod cql_type;
mod error;
pub mod marshal;
mod name;
mod token;

pub mod byte_comparable;
mod compare;
pub mod encoding;
mod validate;

mod literal;
mod text;

pub mod blob;
pub mod date;
pub mod decimal;
pub mod digits;
pub mod duration;
pub mod float;
pub mod inet;
pub mod time;
pub mod timestamp;
pub mod uuid;
pub mod varint;

pub mod calendar;
mod canonical;
mod float_digits;
mod scan;

pub use cql_type::{CqlType, UserType};
pub use error::TypeError;
pub use literal::write_json_string;
pub use name::{is_reserved, quote_if_needed};
pub use token::{Token, murmur3_x64_128};
