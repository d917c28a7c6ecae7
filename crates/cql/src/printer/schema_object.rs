//! Indexes, views, functions, aggregates and triggers.

use std::fmt::{self, Display, Formatter};

use super::name::{FunctionName, PlainFunctionName, Quoted};
use super::schema::{if_exists, if_not_exists};
use super::{Pairs, ands, commas, flag};
use crate::ast::{
    AlterView, CreateAggregate, CreateFunction, CreateIndex, CreateTrigger, CreateView, DropFunction,
    DropTrigger, IndexTarget, IndexTargetPart,
};

impl Display for CreateIndex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE ")?;
        flag(f, self.is_custom, "CUSTOM")?;
        write!(f, "INDEX {}", if_not_exists(self.if_not_exists))?;
        if let Some(name) = &self.name {
            write!(f, "{name} ")?;
        }
        write!(f, "ON {} ({})", self.table, commas(&self.targets))?;
        if let Some(class) = &self.using {
            write!(f, " USING {}", Quoted(class))?;
        }
        if self.properties.is_empty() { Ok(()) } else { write!(f, " WITH {}", ands(&self.properties)) }
    }
}

impl Display for IndexTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            IndexTargetPart::Simple => return self.column.fmt(f),
            IndexTargetPart::Values => "values",
            IndexTargetPart::Keys => "keys",
            IndexTargetPart::Entries => "entries",
            IndexTargetPart::Full => "full",
        };
        write!(f, "{part}({})", self.column)
    }
}

impl Display for CreateView {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE MATERIALIZED VIEW {}{} ", if_not_exists(self.if_not_exists), self.name)?;
        write!(f, "AS SELECT {} FROM {} ", self.selection, self.base_table)?;
        if !self.relations.is_empty() {
            write!(f, "WHERE {} ", ands(&self.relations))?;
        }
        write!(f, "{}{}", self.primary_key, self.options)
    }
}

impl Display for AlterView {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let condition = if_exists(self.if_exists);
        write!(f, "ALTER MATERIALIZED VIEW {condition}{} WITH {}", self.name, ands(&self.properties))
    }
}

impl Display for CreateFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE ")?;
        flag(f, self.or_replace, "OR REPLACE")?;
        let arguments = Pairs { pairs: &self.arguments, inside: " ", between: ", " };
        let on_null = if self.is_called_on_null_input { "CALLED" } else { "RETURNS NULL" };
        let condition = if_not_exists(self.if_not_exists);
        write!(f, "FUNCTION {condition}{}({arguments}) {on_null} ON NULL INPUT ", FunctionName(&self.name))?;
        let language = self.language.as_str();
        write!(f, "RETURNS {} LANGUAGE {language} AS {}", self.return_type, Quoted(&self.body))
    }
}

impl Display for CreateAggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE ")?;
        flag(f, self.or_replace, "OR REPLACE")?;
        let condition = if_not_exists(self.if_not_exists);
        write!(f, "AGGREGATE {condition}{}({}) ", FunctionName(&self.name), commas(&self.arguments))?;
        write!(f, "SFUNC {} STYPE {}", PlainFunctionName(&self.state_function), self.state_type)?;
        if let Some(function) = &self.final_function {
            write!(f, " FINALFUNC {}", PlainFunctionName(function))?;
        }
        if let Some(value) = &self.initial_condition {
            write!(f, " INITCOND {value}")?;
        }
        Ok(())
    }
}

/// Without `DROP FUNCTION` or `DROP AGGREGATE` in front.
impl Display for DropFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if_exists(self.if_exists), FunctionName(&self.name))?;
        match &self.arguments {
            Some(arguments) => write!(f, "({})", commas(arguments)),
            None => Ok(()),
        }
    }
}

impl Display for CreateTrigger {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let condition = if_not_exists(self.if_not_exists);
        write!(f, "CREATE TRIGGER {condition}{} ON {} USING {}", self.name, self.table, Quoted(&self.class))
    }
}

impl Display for DropTrigger {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "DROP TRIGGER {}{} ON {}", if_exists(self.if_exists), self.name, self.table)
    }
}
