//! Statements about indexes, views, functions, aggregates and triggers.

use super::{
    CqlTypeName, Ident, PrimaryKey, Property, QualifiedName, Relation, Selection, TableOptions, Term,
};
use crate::text::Text;

/// `CREATE [CUSTOM] INDEX [name] ON table (…)`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateIndex {
    /// `CUSTOM`
    pub is_custom: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The name, if given.
    pub name: Option<Ident>,
    /// The table.
    pub table: QualifiedName,
    /// What is indexed; the grammar allows none.
    pub targets: Vec<IndexTarget>,
    /// `USING 'class'`
    pub using: Option<Text>,
    /// `WITH`
    pub properties: Vec<Property>,
}

/// A column of an index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexTarget {
    /// The column.
    pub column: Ident,
    /// Which part of its values.
    pub part: IndexTargetPart,
}

/// Which part of a collection is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexTargetPart {
    /// Nothing said.
    Simple,
    /// `VALUES(c)`
    Values,
    /// `KEYS(c)`
    Keys,
    /// `ENTRIES(c)`
    Entries,
    /// `FULL(c)`
    Full,
}

/// `CREATE MATERIALIZED VIEW name AS SELECT …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateView {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The view.
    pub name: QualifiedName,
    /// What it holds.
    pub selection: Selection,
    /// The base table.
    pub base_table: QualifiedName,
    /// `WHERE`
    pub relations: Vec<Relation>,
    /// `PRIMARY KEY (…)`
    pub primary_key: PrimaryKey,
    /// `WITH`
    pub options: TableOptions,
}

/// `ALTER MATERIALIZED VIEW name WITH …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterView {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The view.
    pub name: QualifiedName,
    /// `WITH`, at least one.
    pub properties: Vec<Property>,
}

/// `CREATE FUNCTION name (…) …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateFunction {
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The function.
    pub name: QualifiedName,
    /// Its arguments.
    pub arguments: Vec<(Ident, CqlTypeName)>,
    /// `CALLED ON NULL INPUT`; else `RETURNS NULL ON NULL INPUT`.
    pub is_called_on_null_input: bool,
    /// `RETURNS`
    pub return_type: CqlTypeName,
    /// `LANGUAGE`, in lower case.
    pub language: Ident,
    /// `AS`
    pub body: Text,
}

/// `CREATE AGGREGATE name (…) …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateAggregate {
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The aggregate.
    pub name: QualifiedName,
    /// The types of its arguments.
    pub arguments: Vec<CqlTypeName>,
    /// `SFUNC`
    pub state_function: Ident,
    /// `STYPE`
    pub state_type: CqlTypeName,
    /// `FINALFUNC`
    pub final_function: Option<Ident>,
    /// `INITCOND`
    pub initial_condition: Option<Term>,
}

/// `DROP FUNCTION name(int)` or `DROP AGGREGATE name(int)`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DropFunction {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// What is dropped.
    pub name: QualifiedName,
    /// The types that tell overloads apart, if parentheses were written.
    pub arguments: Option<Vec<CqlTypeName>>,
}

/// `CREATE TRIGGER name ON table USING 'class'`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateTrigger {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The trigger.
    pub name: Ident,
    /// The table.
    pub table: QualifiedName,
    /// `USING`
    pub class: Text,
}

/// `DROP TRIGGER name ON table`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DropTrigger {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The trigger.
    pub name: Ident,
    /// The table.
    pub table: QualifiedName,
}
