//! Values as they are written: constants, markers, literals of collections, function calls.

use super::{CqlTypeName, Ident, Marker, NativeType, QualifiedName};
use crate::text::Text;

/// A value in a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A constant.
    Literal(Literal),
    /// `null`
    Null,
    /// `?` or `:name`
    Marker(Marker),
    /// `[a, b]`: a list or a vector.
    List(Vec<Term>),
    /// `{a, b}`. The empty `{}` is here too; the receiver decides whether it is a set or a map.
    Set(Vec<Term>),
    /// `{a: b}`, never empty.
    Map(Vec<(Term, Term)>),
    /// `{field: a}`, never empty.
    User(Vec<(Ident, Term)>),
    /// `(a, b)`, never empty. With one element it may as well be a term between parentheses.
    Tuple(Vec<Term>),
    /// `f(a, b)`
    Function(FunctionCall),
    /// `(type) a`: says the type, converts nothing.
    TypeHint(Box<CqlTypeName>, Box<Term>),
    /// `CAST(a AS type)`
    Cast(Box<Term>, NativeType),
    /// `a + b`
    Binary(Box<Term>, ArithmeticOperator, Box<Term>),
    /// `-a`. A negative number is a [`Literal`].
    Negate(Box<Term>),
}

/// A constant: what kind of token it was, and its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Literal {
    /// The kind of token.
    pub kind: LiteralKind,
    /// Strings without their quotes and escapes, all else as it was written (`-0x` and letter
    /// case included).
    pub text: Text,
}

/// What kind of token a constant was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// `'text'`
    String,
    /// `$$text$$`
    DollarString,
    /// `-12`
    Integer,
    /// `1.5e3`, and `NaN`, `-NaN`, `Infinity`, `-Infinity` in exactly this spelling.
    Float,
    /// `true`, `FALSE`
    Boolean,
    /// `123e4567-e89b-12d3-a456-426614174000`
    Uuid,
    /// `0xCAFE`
    Hex,
    /// `1h30m`, `P1Y2M`
    Duration,
}

impl Literal {
    /// A literal of this kind and text.
    #[inline]
    pub fn new(kind: LiteralKind, text: &str) -> Self {
        Literal { kind, text: Text::new(text) }
    }
}

/// `[keyspace.]function(arguments)`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionCall {
    /// The function. Names of functions fold like identifiers.
    pub name: QualifiedName,
    /// Its arguments, maybe none.
    pub arguments: Vec<Term>,
}

/// `+ - * / %`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithmeticOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

impl ArithmeticOperator {
    /// All of them.
    pub const ALL: [ArithmeticOperator; 5] = [
        ArithmeticOperator::Add,
        ArithmeticOperator::Subtract,
        ArithmeticOperator::Multiply,
        ArithmeticOperator::Divide,
        ArithmeticOperator::Modulo,
    ];
}

/// A whole number given as a constant or bound later: limits, timestamps, times to live.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IntegerValue {
    /// Digits with an optional minus sign, as written; any length.
    Literal(Text),
    /// `?` or `:name`
    Marker(Marker),
}
