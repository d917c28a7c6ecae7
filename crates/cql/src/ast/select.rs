//! SELECT.

use super::{
    ArithmeticOperator, CqlTypeName, Ident, IntegerValue, Literal, Marker, NativeType, QualifiedName,
    Relation, Term,
};

/// `SELECT … FROM …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Select {
    /// `SELECT JSON`
    pub is_json: bool,
    /// `SELECT DISTINCT`
    pub is_distinct: bool,
    /// What is selected.
    pub selection: Selection,
    /// The table.
    pub table: QualifiedName,
    /// `WHERE`, a conjunction; empty if there is none.
    pub relations: Vec<Relation>,
    /// `GROUP BY`
    pub group_by: Vec<Selector>,
    /// `ORDER BY`
    pub order_by: Vec<Ordering>,
    /// `PER PARTITION LIMIT`
    pub per_partition_limit: Option<IntegerValue>,
    /// `LIMIT`
    pub limit: Option<IntegerValue>,
    /// `ALLOW FILTERING`
    pub allow_filtering: bool,
}

/// What a SELECT returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selection {
    /// `*`
    All,
    /// Selectors, at least one.
    Items(Vec<SelectItem>),
}

/// `selector [AS alias]`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectItem {
    /// What is computed.
    pub selector: Selector,
    /// Its name in the result, if given.
    pub alias: Option<Ident>,
}

/// Something that is computed from a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// A column.
    Column(Ident),
    /// A constant.
    Literal(Literal),
    /// `null`
    Null,
    /// `?` or `:name`
    Marker(Marker),
    /// `count(*)`
    CountRows,
    /// `writetime(c)`, `maxwritetime(c)`, `ttl(c)`; the argument is a column or a part of one.
    Metadata(CellMetadata, Box<Selector>),
    /// `CAST(s AS type)`
    Cast(Box<Selector>, NativeType),
    /// `f(a, b)`; `count(1)` and `token(a, b)` are here too.
    Function(QualifiedName, Vec<Selector>),
    /// `(type) s`
    TypeHint(Box<CqlTypeName>, Box<Selector>),
    /// `(a, b)`, never empty. With one element it may as well be a selector between parentheses.
    Tuple(Vec<Selector>),
    /// `[a, b]`
    List(Vec<Selector>),
    /// `{a, b}`, or the empty `{}`
    Set(Vec<Selector>),
    /// `{a: b}`: a map, or a user type whose field names look like columns. Never empty.
    MapOrUser(Vec<(Selector, Selector)>),
    /// `s.field`
    Field(Box<Selector>, Ident),
    /// `s[key]`
    Element(Box<Selector>, Box<Term>),
    /// `s[from..to]`, either end may be open, not both.
    Slice(Box<Selector>, Option<Box<Term>>, Option<Box<Term>>),
    /// `a + b`
    Binary(Box<Selector>, ArithmeticOperator, Box<Selector>),
    /// `-a`. A negative number is a [`Literal`].
    Negate(Box<Selector>),
}

/// What is asked about a cell instead of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellMetadata {
    /// `writetime`
    WriteTime,
    /// `maxwritetime`
    MaxWriteTime,
    /// `ttl`
    TimeToLive,
}

/// One item of ORDER BY.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ordering {
    /// The column.
    pub column: Ident,
    /// `ANN OF vector`
    pub ann_of: Option<Term>,
    /// `DESC`
    pub is_descending: bool,
}
