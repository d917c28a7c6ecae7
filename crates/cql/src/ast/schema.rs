//! Statements about keyspaces, tables and user types.

use super::{CqlTypeName, Ident, Literal, QualifiedName, Term};
use crate::text::Text;

/// `CREATE KEYSPACE name WITH …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateKeyspace {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The keyspace.
    pub name: Ident,
    /// `WITH`, at least one.
    pub properties: Vec<Property>,
}

/// `ALTER KEYSPACE name WITH …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterKeyspace {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The keyspace.
    pub name: Ident,
    /// `WITH`, at least one.
    pub properties: Vec<Property>,
}

/// `DROP KEYSPACE name`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DropKeyspace {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The keyspace.
    pub name: Ident,
}

/// `name = value` after WITH. Names within one statement are unique.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Property {
    /// The option.
    pub name: Ident,
    /// Its value.
    pub value: PropertyValue,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PropertyValue {
    /// A constant.
    Literal(Literal),
    /// A keyword that is not reserved, in lower case.
    Keyword(Ident),
    /// `{'a': 'b'}`; keys and values are constants, the texts of the keys unique.
    Map(Vec<(Literal, Literal)>),
}

impl PropertyValue {
    /// The raw text of a simple value.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            PropertyValue::Literal(literal) => Some(&literal.text),
            PropertyValue::Keyword(word) => Some(word),
            PropertyValue::Map(_) => None,
        }
    }

    /// The raw texts of a map.
    pub fn as_map(&self) -> Option<impl Iterator<Item = (&str, &str)>> {
        match self {
            PropertyValue::Map(entries) => {
                Some(entries.iter().map(|(key, value)| (key.text.as_str(), value.text.as_str())))
            }
            _ => None,
        }
    }
}

/// `CREATE TABLE name (…) WITH …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateTable {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The table.
    pub name: QualifiedName,
    /// The columns in the order they were written.
    pub columns: Vec<ColumnDefinition>,
    /// The `PRIMARY KEY (…)` clauses. A valid table has exactly one of these or exactly one column
    /// with [`ColumnDefinition::is_primary_key`]; the grammar does not ask for it.
    pub primary_keys: Vec<PrimaryKey>,
    /// `WITH`
    pub options: TableOptions,
}

/// `name type [STATIC] [MASKED WITH …] [PRIMARY KEY]`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ColumnDefinition {
    /// The column.
    pub name: Ident,
    /// Its type.
    pub type_name: CqlTypeName,
    /// `STATIC`
    pub is_static: bool,
    /// `MASKED WITH`
    pub mask: Option<ColumnMask>,
    /// `PRIMARY KEY` right behind the column.
    pub is_primary_key: bool,
}

/// `MASKED WITH function(arguments)`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ColumnMask {
    /// `MASKED WITH DEFAULT`
    Default,
    /// `MASKED WITH f(a, b)`; the column is the first argument and not written.
    Function(QualifiedName, Vec<Term>),
}

/// `PRIMARY KEY ((a, b), c, d)`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrimaryKey {
    /// The columns of the partition key, at least one.
    pub partition: Vec<Ident>,
    /// The clustering columns.
    pub clustering: Vec<Ident>,
}

/// All that stands behind the WITH of a table or view.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct TableOptions {
    /// The options, `id` included.
    pub properties: Vec<Property>,
    /// `COMPACT STORAGE`
    pub is_compact_storage: bool,
    /// `CLUSTERING ORDER BY`, as written; names may repeat.
    pub clustering_order: Vec<ClusteringOrder>,
}

/// `column ASC`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusteringOrder {
    /// The column.
    pub column: Ident,
    /// `DESC`
    pub is_descending: bool,
}

/// `ALTER TABLE name …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterTable {
    /// `IF EXISTS` of the table.
    pub if_exists: bool,
    /// The table.
    pub name: QualifiedName,
    /// What is altered.
    pub action: AlterTableAction,
}

/// What an ALTER TABLE does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AlterTableAction {
    /// `ALTER column TYPE type`
    AlterType {
        /// The column.
        column: Ident,
        /// The type asked for.
        type_name: CqlTypeName,
    },
    /// `ALTER [IF EXISTS] column MASKED WITH …` or `… DROP MASKED`
    AlterMask {
        /// `IF EXISTS` of the column.
        if_exists: bool,
        /// The column.
        column: Ident,
        /// The new mask; none for `DROP MASKED`.
        mask: Option<ColumnMask>,
    },
    /// `ADD [IF NOT EXISTS] a int` or `ADD (a int, b text STATIC)`
    Add {
        /// `IF NOT EXISTS` of the columns.
        if_not_exists: bool,
        /// The columns, at least one; never primary key.
        columns: Vec<ColumnDefinition>,
    },
    /// `DROP [IF EXISTS] a` or `DROP (a, b)`
    Drop {
        /// `IF EXISTS` of the columns.
        if_exists: bool,
        /// The columns, at least one.
        columns: Vec<Ident>,
        /// `USING TIMESTAMP`: digits with an optional minus sign.
        timestamp: Option<Text>,
    },
    /// `RENAME [IF EXISTS] a TO b AND …`
    Rename {
        /// `IF EXISTS` of the columns.
        if_exists: bool,
        /// From and to, at least one pair.
        columns: Vec<(Ident, Ident)>,
    },
    /// `DROP COMPACT STORAGE`
    DropCompactStorage,
    /// `WITH …`
    With(Vec<Property>),
}

/// `DROP TABLE name`, and the same for a type, an index or a view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Drop {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// What is dropped.
    pub name: QualifiedName,
}

/// `TRUNCATE [TABLE] name`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Truncate {
    /// The table.
    pub table: QualifiedName,
}

/// `CREATE TYPE name (…)`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateType {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The type.
    pub name: QualifiedName,
    /// The fields, at least one; names may repeat.
    pub fields: Vec<(Ident, CqlTypeName)>,
}

/// `ALTER TYPE name …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterType {
    /// `IF EXISTS` of the type.
    pub if_exists: bool,
    /// The type.
    pub name: QualifiedName,
    /// What is altered.
    pub action: AlterTypeAction,
}

/// What an ALTER TYPE does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AlterTypeAction {
    /// `ALTER field TYPE type`
    AlterField {
        /// The field.
        field: Ident,
        /// The type asked for.
        type_name: CqlTypeName,
    },
    /// `ADD [IF NOT EXISTS] field type`
    AddField {
        /// `IF NOT EXISTS` of the field.
        if_not_exists: bool,
        /// The field.
        field: Ident,
        /// Its type.
        type_name: CqlTypeName,
    },
    /// `RENAME [IF EXISTS] a TO b AND …`
    RenameFields {
        /// `IF EXISTS` of the fields.
        if_exists: bool,
        /// From and to, at least one pair.
        fields: Vec<(Ident, Ident)>,
    },
}
