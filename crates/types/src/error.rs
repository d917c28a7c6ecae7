//! What can be wrong with a value, a literal or a type name.

use crate::digits::{DIGITS_MAX, NUMBER_BYTES_MAX};

/// Bytes that are no value of their type, text that is no literal of it, or a type name that is
/// not understood. Messages are Cassandra's, word for word where clients can see them, since
/// drivers' and applications' tests match on them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// The value has a length that its type does not have.
    #[error("{expected} ({got_bytes})")]
    Length {
        /// What would be right, as a sentence.
        expected: &'static str,
        /// Length of the value.
        got_bytes: usize,
    },
    /// An `ascii` value with its eighth bit set.
    #[error("Invalid byte for ascii: {byte}")]
    NotAscii {
        /// The first such byte, signed as Java has it.
        byte: i8,
    },
    /// A `text` value that is no UTF-8.
    #[error("String didn't validate.")]
    NotUtf8,
    /// An `inet` of neither 4 nor 16 bytes.
    #[error("Expected 4 or 16 byte inetaddress; got {hex}")]
    NotInet {
        /// The value.
        hex: String,
    },
    /// An `empty` value with bytes in it.
    #[error("EmptyType only accept empty values")]
    NotEmpty,
    /// A `timeuuid` whose version is not 1.
    #[error("Invalid version for TimeUUID type: 0x{version:x}")]
    NotTimeUuid {
        /// Its version.
        version: u8,
    },
    /// Months or days of a `duration` beyond 32 bits.
    #[error("The duration {part} must be a 32 bits integer but was: {value}")]
    DurationRange {
        /// `months` or `days`.
        part: &'static str,
        /// What was there.
        value: i64,
    },
    /// Parts of a `duration` with different signs.
    #[error(
        "The duration months, days and nanoseconds must be all of the same sign ({months}, {days}, {nanoseconds})"
    )]
    DurationSigns {
        /// Months.
        months: i64,
        /// Days.
        days: i64,
        /// Nanoseconds.
        nanoseconds: i64,
    },
    /// A collection or vector that ends too soon; `what` is `list`, `set`, `map` or a vector type.
    #[error("Not enough bytes to read a {what}")]
    Short {
        /// What was being read.
        what: String,
    },
    /// A null inside a collection.
    #[error("Null value read when not allowed")]
    NullElement,
    /// Bytes behind the last element of a collection.
    #[error("Unexpected extraneous bytes after {what} value")]
    Trailing {
        /// `list`, `set` or `map`.
        what: &'static str,
    },
    /// Bytes behind the last element of a vector.
    #[error("Unexpected {extra_bytes} extraneous bytes after {vector} value")]
    VectorTrailing {
        /// How many.
        extra_bytes: usize,
        /// The vector's type.
        vector: String,
    },
    /// A vector without bytes.
    #[error("Invalid empty vector value")]
    EmptyVector,
    /// A tuple cut inside a component.
    #[error("Not enough bytes to read {size}{index}th component", size = if *.inside_length { "size of " } else { "" })]
    ShortComponent {
        /// Which component, from 0.
        index: usize,
        /// Not even its length is there.
        inside_length: bool,
    },
    /// A user-defined type's value cut inside a field.
    #[error("Not enough bytes to read {size}{index}th field {field}", size = if *.inside_length { "size of " } else { "" })]
    ShortField {
        /// Which field, from 0.
        index: usize,
        /// Its name.
        field: String,
        /// Not even its length is there.
        inside_length: bool,
    },
    /// A field of a user-defined type is no value of its type.
    #[error("Failure validating the {index}th field {field}; {source}")]
    Field {
        /// Which field, from 0.
        index: usize,
        /// Its name.
        field: String,
        /// What is wrong with it.
        source: Box<TypeError>,
    },
    /// Bytes behind the last component of a tuple or field of a user-defined type.
    #[error("Invalid remaining data after end of {what} value")]
    TupleTrailing {
        /// `tuple` or `UDT`.
        what: &'static str,
    },
    /// A `varint` or `decimal` that is too long.
    #[error("A varint or decimal has at most {DIGITS_MAX} digits ({NUMBER_BYTES_MAX} bytes)")]
    TooManyDigits,
    /// Text that is no literal of a type.
    #[error("{message}")]
    Text {
        /// What is wrong, as Cassandra words it.
        message: String,
    },
    /// A marshal class name that does not parse.
    #[error("Syntax error parsing '{name}' at char {offset}: {problem}")]
    MarshalSyntax {
        /// The whole name.
        name: String,
        /// Where it went wrong.
        offset: usize,
        /// How.
        problem: &'static str,
    },
    /// A marshal class that has no CQL type here.
    #[error("type class '{class}' is not supported{}", .place.map(|p| format!(" {p}")).unwrap_or_default())]
    MarshalClass {
        /// The class.
        class: String,
        /// Where it stood, if that is what makes it wrong.
        place: Option<&'static str>,
    },
    /// A composite key that is cut or whose parts are not as many as its types.
    #[error("composite key is malformed at byte {offset}")]
    Composite {
        /// Where.
        offset: usize,
    },
}

impl TypeError {
    /// A [`TypeError::Text`] of this message.
    pub(crate) fn text(message: impl Into<String>) -> Self {
        TypeError::Text { message: message.into() }
    }
}
