//! SELECT.

use std::fmt::{self, Display, Formatter};

use super::name::FunctionName;
use super::{ands, commas, entries, flag};
use crate::ast::{CellMetadata, Ident, Ordering, Select, SelectItem, Selection, Selector};

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT ")?;
        flag(f, self.is_json, "JSON")?;
        flag(f, self.is_distinct, "DISTINCT")?;
        write!(f, "{} FROM {}", self.selection, self.table)?;
        if !self.relations.is_empty() {
            write!(f, " WHERE {}", ands(&self.relations))?;
        }
        if !self.group_by.is_empty() {
            write!(f, " GROUP BY {}", commas(&self.group_by))?;
        }
        if !self.order_by.is_empty() {
            write!(f, " ORDER BY {}", commas(&self.order_by))?;
        }
        if let Some(limit) = &self.per_partition_limit {
            write!(f, " PER PARTITION LIMIT {limit}")?;
        }
        if let Some(limit) = &self.limit {
            write!(f, " LIMIT {limit}")?;
        }
        if self.allow_filtering { f.write_str(" ALLOW FILTERING") } else { Ok(()) }
    }
}

impl Display for Selection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Selection::All => f.write_str("*"),
            Selection::Items(items) => commas(items).fmt(f),
        }
    }
}

impl Display for SelectItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.selector.fmt(f)?;
        match &self.alias {
            Some(alias) => write!(f, " AS {alias}"),
            None => Ok(()),
        }
    }
}

impl Display for Ordering {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.column.fmt(f)?;
        if let Some(vector) = &self.ann_of {
            write!(f, " ANN OF {vector}")?;
        }
        if self.is_descending { f.write_str(" DESC") } else { Ok(()) }
    }
}

impl Display for CellMetadata {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CellMetadata::WriteTime => "writetime",
            CellMetadata::MaxWriteTime => "maxwritetime",
            CellMetadata::TimeToLive => "ttl",
        })
    }
}

impl Display for Selector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Column(column) => Column(column).fmt(f),
            Selector::Literal(literal) => literal.fmt(f),
            Selector::Null => f.write_str("null"),
            Selector::Marker(marker) => marker.fmt(f),
            Selector::CountRows => f.write_str("count(*)"),
            Selector::Metadata(metadata, argument) => write!(f, "{metadata}({argument})"),
            Selector::Cast(argument, target) => write!(f, "CAST({argument} AS {target})"),
            Selector::Function(name, arguments) => write!(f, "{}({})", FunctionName(name), commas(arguments)),
            Selector::TypeHint(type_name, hinted) => write!(f, "({type_name}){}", Operand(hinted, false)),
            Selector::Tuple(elements) => write!(f, "({})", commas(elements)),
            Selector::List(elements) => write!(f, "[{}]", commas(elements)),
            Selector::Set(elements) => write!(f, "{{{}}}", commas(elements)),
            Selector::MapOrUser(pairs) => write!(f, "{{{}}}", entries(pairs)),
            // A blank, lest the point becomes a part of the number.
            Selector::Field(whole, field) if ends_with_constant(whole) => write!(f, "{whole} .{field}"),
            Selector::Field(whole, field) => write!(f, "{}.{field}", Operand(whole, false)),
            Selector::Element(whole, key) => write!(f, "{}[{key}]", Operand(whole, false)),
            Selector::Slice(whole, from, to) => {
                write!(f, "{}[", Operand(whole, false))?;
                from.as_ref().map_or(Ok(()), |from| from.fmt(f))?;
                f.write_str("..")?;
                to.as_ref().map_or(Ok(()), |to| to.fmt(f))?;
                f.write_str("]")
            }
            Selector::Binary(left, operator, right) => {
                let left = Operand(left, operator.is_sum());
                write!(f, "{left} {operator} {}", Operand(right, false))
            }
            // A blank, lest two signs make a comment, or one a negative number.
            Selector::Negate(negated) => write!(f, "- {}", Operand(negated, false)),
        }
    }
}

fn ends_with_constant(selector: &Selector) -> bool {
    match selector {
        Selector::Literal(_) => true,
        Selector::TypeHint(_, hinted) => ends_with_constant(hinted),
        _ => false,
    }
}

/// A column in a selection: quoted also where the word would be taken for a modifier.
struct Column<'a>(&'a Ident);

impl Display for Column<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            word @ ("json" | "distinct" | "as" | "per") => write!(f, "\"{word}\""),
            _ => self.0.fmt(f),
        }
    }
}

/// A part of a selector, in parentheses if it would not be taken for one; the flag allows sums.
struct Operand<'a>(&'a Selector, bool);

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Selector::Binary(_, operator, _) if operator.is_sum() && !self.1 => write!(f, "({})", self.0),
            _ => self.0.fmt(f),
        }
    }
}
