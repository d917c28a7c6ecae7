//! WHERE and IF: what rows and cells are asked for.

use super::{Ident, Marker, QualifiedName, Term};

/// One condition of a WHERE clause; the clause is their conjunction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `column = value`, also `LIKE`, `CONTAINS`, `CONTAINS KEY`
    Column {
        /// The column.
        column: Ident,
        /// The comparison.
        operator: Operator,
        /// What it is compared with.
        value: Term,
    },
    /// `column IN (…)`
    In {
        /// The column.
        column: Ident,
        /// The values.
        values: InValues,
    },
    /// `column IS NOT NULL`
    IsNotNull {
        /// The column.
        column: Ident,
    },
    /// `column[key] = value`
    MapEntry {
        /// The column.
        column: Ident,
        /// The key in the map.
        key: Term,
        /// The comparison.
        operator: Operator,
        /// What the entry is compared with.
        value: Term,
    },
    /// `token(a, b) > value`
    Token {
        /// The columns between the parentheses, as written.
        columns: Vec<Ident>,
        /// The comparison.
        operator: Operator,
        /// What the token is compared with.
        value: Term,
    },
    /// `(a, b) > (1, 2)` or `(a, b) > ?`
    Tuple {
        /// The columns between the parentheses.
        columns: Vec<Ident>,
        /// The comparison.
        operator: Operator,
        /// A [`Term::Tuple`] or a [`Term::Marker`].
        value: Term,
    },
    /// `(a, b) IN ((1, 2), ?)`
    TupleIn {
        /// The columns between the parentheses.
        columns: Vec<Ident>,
        /// Either all [`Term::Tuple`] or all [`Term::Marker`], or one marker for the whole list.
        values: InValues,
    },
    /// `expr(index, value)`
    CustomIndex {
        /// The index.
        index: QualifiedName,
        /// What it is asked for.
        value: Term,
    },
}

/// What stands right of IN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InValues {
    /// `(a, b, …)`, maybe empty.
    Terms(Vec<Term>),
    /// One marker for the whole list.
    Marker(Marker),
}

/// A comparison. IN and IS NOT NULL have variants of their own in [`Relation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `CONTAINS`
    Contains,
    /// `CONTAINS KEY`
    ContainsKey,
    /// `LIKE`
    Like,
}

/// The IF of an UPDATE or DELETE.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Condition {
    /// No IF.
    #[default]
    None,
    /// `IF EXISTS`
    Exists,
    /// `IF a = 1 AND …`, never empty.
    Columns(Vec<ColumnCondition>),
}

/// One comparison of an IF.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ColumnCondition {
    /// The column.
    pub column: Ident,
    /// Which part of the column.
    pub part: ColumnPart,
    /// What must hold for it.
    pub test: ConditionTest,
}

/// A column, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ColumnPart {
    /// The column itself.
    Whole,
    /// `column[element]`
    Element(Term),
    /// `column.field`
    Field(Ident),
}

/// What an IF asks of a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConditionTest {
    /// `= value`; `CONTAINS` only on a whole column.
    Compare(Operator, Term),
    /// `IN (…)`
    In(InValues),
}
