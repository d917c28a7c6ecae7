//! INSERT, UPDATE, DELETE and BATCH.

use std::fmt::{self, Display, Formatter};

use super::name::Quoted;
use super::{ands, commas};
use crate::ast::{
    Assignment, AssignmentAction, Batch, BatchKind, Delete, DeletedColumn, Insert, InsertSource, JsonDefault,
    JsonValue, Modification, Update, Using,
};

impl Display for Insert {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "INSERT INTO {} {}", self.table, self.source)?;
        if self.if_not_exists {
            f.write_str(" IF NOT EXISTS")?;
        }
        self.using.fmt(f)
    }
}

impl Display for InsertSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            InsertSource::Values { columns, values } => {
                write!(f, "({}) VALUES ({})", commas(columns), commas(values))
            }
            InsertSource::Json { value, default } => {
                let unset = if *default == JsonDefault::Unset { " DEFAULT UNSET" } else { "" };
                write!(f, "JSON {value}{unset}")
            }
        }
    }
}

impl Display for JsonValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            JsonValue::Literal(text) => Quoted(text).fmt(f),
            JsonValue::Marker(marker) => marker.fmt(f),
        }
    }
}

/// ` USING …` with the blank in front; nothing if nothing is set.
impl Display for Using {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (&self.timestamp, &self.time_to_live) {
            (None, None) => Ok(()),
            (Some(timestamp), None) => write!(f, " USING TIMESTAMP {timestamp}"),
            (None, Some(time_to_live)) => write!(f, " USING TTL {time_to_live}"),
            (Some(timestamp), Some(time_to_live)) => {
                // Markers must keep their order.
                if is_marked_before(time_to_live, timestamp) {
                    write!(f, " USING TTL {time_to_live} AND TIMESTAMP {timestamp}")
                } else {
                    write!(f, " USING TIMESTAMP {timestamp} AND TTL {time_to_live}")
                }
            }
        }
    }
}

fn is_marked_before(one: &crate::ast::IntegerValue, other: &crate::ast::IntegerValue) -> bool {
    use crate::ast::IntegerValue::Marker;
    matches!((one, other), (Marker(one), Marker(other)) if one.index < other.index)
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Update { table, using, assignments, relations, condition } = self;
        write!(f, "UPDATE {table}{using} SET {} WHERE {}{condition}", commas(assignments), ands(relations))
    }
}

impl Display for Assignment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let column = &self.column;
        match &self.action {
            AssignmentAction::Set(value) => write!(f, "{column} = {value}"),
            AssignmentAction::Add(value) => write!(f, "{column} = {column} + {value}"),
            AssignmentAction::Subtract(value) => write!(f, "{column} = {column} - {value}"),
            AssignmentAction::Prepend(value) => write!(f, "{column} = {value} + {column}"),
            AssignmentAction::SetElement(element, value) => write!(f, "{column}[{element}] = {value}"),
            AssignmentAction::SetField(field, value) => write!(f, "{column}.{field} = {value}"),
        }
    }
}

impl Display for Delete {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Delete { columns, table, using, relations, condition } = self;
        f.write_str("DELETE ")?;
        if !columns.is_empty() {
            write!(f, "{} ", commas(columns))?;
        }
        write!(f, "FROM {table}{using} WHERE {}{condition}", ands(relations))
    }
}

impl Display for DeletedColumn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.column, self.part)
    }
}

impl Display for Batch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            BatchKind::Logged => "",
            BatchKind::Unlogged => "UNLOGGED ",
            BatchKind::Counter => "COUNTER ",
        };
        write!(f, "BEGIN {kind}BATCH{} ", self.using)?;
        for statement in &self.statements {
            write!(f, "{statement}; ")?;
        }
        f.write_str("APPLY BATCH")
    }
}

impl Display for Modification {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Modification::Insert(insert) => insert.fmt(f),
            Modification::Update(update) => update.fmt(f),
            Modification::Delete(delete) => delete.fmt(f),
        }
    }
}
