//! INSERT, UPDATE, DELETE and BATCH.

use std::sync::Arc;

use super::{ColumnPart, Condition, Ident, IntegerValue, Marker, QualifiedName, Relation, Term};
use crate::text::Text;

/// `INSERT INTO …`. INSERTs of a batch that are written alike share what they have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Insert {
    /// The table.
    pub table: Arc<QualifiedName>,
    /// What is inserted.
    pub source: InsertSource,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// `USING`
    pub using: Using,
}

/// Where an INSERT has its values from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InsertSource {
    /// `(a, b) VALUES (1, 2)`; the two lists may differ in length, and names may repeat.
    Values {
        /// The columns.
        columns: Arc<[Ident]>,
        /// The values.
        values: Vec<Term>,
    },
    /// `JSON '…'`
    Json {
        /// The JSON text.
        value: JsonValue,
        /// What becomes of columns that the text does not mention.
        default: JsonDefault,
    },
}

/// The text of an INSERT JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JsonValue {
    /// A string, unquoted.
    Literal(Text),
    /// `?` or `:name`
    Marker(Marker),
}

/// `DEFAULT NULL` (also when nothing is said) or `DEFAULT UNSET`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum JsonDefault {
    /// Columns not mentioned are deleted.
    #[default]
    Null,
    /// Columns not mentioned are left as they are.
    Unset,
}

/// `USING TIMESTAMP … AND TTL …`
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Using {
    /// `TIMESTAMP`, in microseconds.
    pub timestamp: Option<IntegerValue>,
    /// `TTL`, in seconds. A DELETE has none.
    pub time_to_live: Option<IntegerValue>,
}

/// `UPDATE …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Update {
    /// The table.
    pub table: QualifiedName,
    /// `USING`
    pub using: Using,
    /// `SET`, at least one.
    pub assignments: Vec<Assignment>,
    /// `WHERE`
    pub relations: Vec<Relation>,
    /// `IF`
    pub condition: Condition,
}

/// One item of SET.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Assignment {
    /// The column.
    pub column: Ident,
    /// What is done to it.
    pub action: AssignmentAction,
}

/// What an UPDATE does to a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AssignmentAction {
    /// `c = value`
    Set(Term),
    /// `c = c + value`, `c += value`
    Add(Term),
    /// `c = c - value`, `c -= value`
    Subtract(Term),
    /// `c = value + c`
    Prepend(Term),
    /// `c[element] = value`
    SetElement(Term, Term),
    /// `c.field = value`
    SetField(Ident, Term),
}

/// `DELETE …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Delete {
    /// Which columns; empty for whole rows.
    pub columns: Vec<DeletedColumn>,
    /// The table.
    pub table: QualifiedName,
    /// `USING TIMESTAMP`
    pub using: Using,
    /// `WHERE`
    pub relations: Vec<Relation>,
    /// `IF`
    pub condition: Condition,
}

/// A column, or a part of one, in a DELETE.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeletedColumn {
    /// The column.
    pub column: Ident,
    /// Which part of it.
    pub part: ColumnPart,
}

/// `BEGIN BATCH … APPLY BATCH`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// `UNLOGGED`, `COUNTER` or nothing.
    pub kind: BatchKind,
    /// `USING`, of the whole batch. The grammar allows a TTL; it means nothing.
    pub using: Using,
    /// The parts, maybe none.
    pub statements: Vec<Modification>,
}

/// What a batch promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum BatchKind {
    /// Whole or absent.
    #[default]
    Logged,
    /// `UNLOGGED`
    Unlogged,
    /// `COUNTER`
    Counter,
}

/// A statement that may be part of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Modification {
    /// `INSERT`
    Insert(Insert),
    /// `UPDATE`
    Update(Update),
    /// `DELETE`
    Delete(Delete),
}
