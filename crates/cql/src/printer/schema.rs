//! Keyspaces, tables and user types.

use std::fmt::{self, Display, Formatter};

use super::name::FunctionName;
use super::types::UserTypeName;
use super::{Pairs, ands, commas, entries};
use crate::ast::{
    AlterKeyspace, AlterTable, AlterTableAction, AlterType, AlterTypeAction, ClusteringOrder,
    ColumnDefinition, ColumnMask, CreateKeyspace, CreateTable, CreateType, DropKeyspace, Ident, PrimaryKey,
    Property, PropertyValue, QualifiedName, TableOptions, Truncate,
};

/// `IF NOT EXISTS ` or nothing.
pub(super) fn if_not_exists(is_set: bool) -> &'static str {
    if is_set { "IF NOT EXISTS " } else { "" }
}

/// `IF EXISTS ` or nothing.
pub(super) fn if_exists(is_set: bool) -> &'static str {
    if is_set { "IF EXISTS " } else { "" }
}

impl Display for CreateKeyspace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let condition = if_not_exists(self.if_not_exists);
        write!(f, "CREATE KEYSPACE {condition}{} WITH {}", self.name, ands(&self.properties))
    }
}

impl Display for AlterKeyspace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let condition = if_exists(self.if_exists);
        write!(f, "ALTER KEYSPACE {condition}{} WITH {}", self.name, ands(&self.properties))
    }
}

impl Display for DropKeyspace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "DROP KEYSPACE {}{}", if_exists(self.if_exists), self.name)
    }
}

impl Display for Property {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.value)
    }
}

impl Display for PropertyValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PropertyValue::Literal(literal) => literal.fmt(f),
            PropertyValue::Keyword(word) => f.write_str(word),
            PropertyValue::Map(pairs) => write!(f, "{{{}}}", entries(pairs)),
        }
    }
}

impl Display for CreateTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE TABLE {}{} (", if_not_exists(self.if_not_exists), self.name)?;
        commas(&self.columns).fmt(f)?;
        for (index, key) in self.primary_keys.iter().enumerate() {
            let comma = if index > 0 || !self.columns.is_empty() { ", " } else { "" };
            write!(f, "{comma}{key}")?;
        }
        write!(f, "){}", self.options)
    }
}

impl Display for ColumnDefinition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.type_name)?;
        if self.is_static {
            f.write_str(" STATIC")?;
        }
        if let Some(mask) = &self.mask {
            write!(f, " {mask}")?;
        }
        if self.is_primary_key { f.write_str(" PRIMARY KEY") } else { Ok(()) }
    }
}

impl Display for ColumnMask {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ColumnMask::Default => f.write_str("MASKED WITH DEFAULT"),
            ColumnMask::Function(name, arguments) => {
                write!(f, "MASKED WITH {}({})", FunctionName(name), commas(arguments))
            }
        }
    }
}

impl Display for PrimaryKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.partition.as_slice() {
            [column] => write!(f, "PRIMARY KEY ({column}")?,
            columns => write!(f, "PRIMARY KEY (({})", commas(columns))?,
        }
        for column in &self.clustering {
            write!(f, ", {column}")?;
        }
        f.write_str(")")
    }
}

/// ` WITH …` with the blank in front; nothing if nothing is set.
impl Display for TableOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut separator = " WITH ";
        if self.is_compact_storage {
            write!(f, "{separator}COMPACT STORAGE")?;
            separator = " AND ";
        }
        if !self.clustering_order.is_empty() {
            write!(f, "{separator}CLUSTERING ORDER BY ({})", commas(&self.clustering_order))?;
            separator = " AND ";
        }
        for property in &self.properties {
            write!(f, "{separator}{property}")?;
            separator = " AND ";
        }
        Ok(())
    }
}

impl Display for ClusteringOrder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.column, if self.is_descending { "DESC" } else { "ASC" })
    }
}

impl Display for AlterTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ALTER TABLE {}{} {}", if_exists(self.if_exists), self.name, self.action)
    }
}

impl Display for AlterTableAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            AlterTableAction::AlterType { column, type_name } => write!(f, "ALTER {column} TYPE {type_name}"),
            AlterTableAction::AlterMask { if_exists: condition, column, mask } => {
                write!(f, "ALTER {}{column} ", if_exists(*condition))?;
                match mask {
                    Some(mask) => mask.fmt(f),
                    None => f.write_str("DROP MASKED"),
                }
            }
            AlterTableAction::Add { if_not_exists: condition, columns } => {
                write!(f, "ADD {}{}", if_not_exists(*condition), OneOrMore(columns))
            }
            AlterTableAction::Drop { if_exists: condition, columns, timestamp } => {
                write!(f, "DROP {}{}", if_exists(*condition), OneOrMore(columns))?;
                timestamp.as_ref().map_or(Ok(()), |timestamp| write!(f, " USING TIMESTAMP {timestamp}"))
            }
            AlterTableAction::Rename { if_exists: condition, columns } => {
                write!(f, "RENAME {}{}", if_exists(*condition), renames(columns))
            }
            AlterTableAction::DropCompactStorage => f.write_str("DROP COMPACT STORAGE"),
            AlterTableAction::With(properties) => write!(f, "WITH {}", ands(properties)),
        }
    }
}

fn renames(pairs: &[(Ident, Ident)]) -> Pairs<'_, Ident, Ident> {
    Pairs { pairs, inside: " TO ", between: " AND " }
}

/// `item` or `(item, item)`
struct OneOrMore<'a, T>(&'a [T]);

impl<T: Display> Display for OneOrMore<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            [one] => one.fmt(f),
            more => write!(f, "({})", commas(more)),
        }
    }
}

impl Display for Truncate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "TRUNCATE TABLE {}", self.table)
    }
}

/// The qualified name of a user type.
pub(super) struct TypePath<'a>(pub(super) &'a QualifiedName);

impl Display for TypePath<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(keyspace) = &self.0.keyspace {
            write!(f, "{keyspace}.")?;
        }
        UserTypeName(&self.0.name).fmt(f)
    }
}

impl Display for CreateType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let fields = Pairs { pairs: &self.fields, inside: " ", between: ", " };
        let condition = if_not_exists(self.if_not_exists);
        write!(f, "CREATE TYPE {condition}{} ({fields})", TypePath(&self.name))
    }
}

impl Display for AlterType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ALTER TYPE {}{} {}", if_exists(self.if_exists), TypePath(&self.name), self.action)
    }
}

impl Display for AlterTypeAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            AlterTypeAction::AlterField { field, type_name } => write!(f, "ALTER {field} TYPE {type_name}"),
            AlterTypeAction::AddField { if_not_exists: condition, field, type_name } => {
                write!(f, "ADD {}{field} {type_name}", if_not_exists(*condition))
            }
            AlterTypeAction::RenameFields { if_exists: condition, fields } => {
                write!(f, "RENAME {}{}", if_exists(*condition), renames(fields))
            }
        }
    }
}
