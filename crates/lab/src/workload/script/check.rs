//! Answers looked at: does each derived value belong to the row that it was read from?
//!
//! Which columns hold derived values is known by the statements that write them: a marker has the name of its column.
//! A column of an answer can be checked if it is one of them, and the columns that it derives of are in the answer,
//! too. A null is no fault, since a row need not have all columns. A column that some statement also writes by chance
//! is not checked. Who writes one entry of a map, as in `SET m[?] = ?`, has a marker called `value(m)`.

use protocol::{ColumnSpec, Rows};
use types::CqlType;

use super::maker::{Maker, put_key};
use crate::workload::rows_of;

/// A column that a statement writes.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) table: String,
    pub(super) column: String,
    /// Of the values of a map, if only one entry is written.
    pub(super) maker: Maker,
    pub(super) is_entry: bool,
    /// Columns that it derives of, in their order; none if it is not derived.
    pub(super) of: Option<Vec<String>>,
}

/// What can be checked in the rows of one statement.
#[derive(Debug, Default)]
pub(super) struct Checks {
    column_count: usize,
    columns: Vec<Check>,
}

#[derive(Debug)]
struct Check {
    column: usize,
    name: String,
    /// Columns that it derives of.
    of: Vec<usize>,
    /// One of these has made it.
    makers: Vec<Maker>,
}

impl Checks {
    /// Of an answer with these columns, when that is what is written.
    pub(super) fn new(columns: &[ColumnSpec], written: &[Written]) -> Checks {
        let checks = columns.iter().enumerate().filter_map(|(index, _)| Check::of(columns, index, written));
        Checks { column_count: columns.len(), columns: checks.collect() }
    }

    /// What is wrong about rows, if anything is.
    pub(super) fn fault(&self, rows: &Rows) -> Option<String> {
        if self.columns.is_empty() {
            return None;
        }
        let mut key = Vec::new();
        let mut row: Vec<Option<&[u8]>> = Vec::new();
        rows_of(rows, self.column_count, |cells| {
            row.clear();
            row.extend(cells);
            if row.len() < self.column_count {
                return Some("a row has too few columns".to_owned());
            }
            self.columns.iter().find_map(|check| check.fault(&row, &mut key))
        })
    }
}

impl Check {
    fn of(columns: &[ColumnSpec], index: usize, written: &[Written]) -> Option<Check> {
        let column = &columns[index];
        let by = || {
            let is_here = |one: &&Written| one.table == *column.table && one.column == *column.name;
            written.iter().filter(is_here)
        };
        let place = |name: &String| {
            columns.iter().position(|other| *other.name == **name && other.table == column.table)
        };
        // Several may write it, all of them derived of the same; an entry is known in a map only.
        let first = by().next()?.of.as_ref()?;
        let is_map = matches!(column.cql_type, CqlType::Map { .. });
        let is_same = by().all(|one| one.of.as_ref() == Some(first) && (is_map || !one.is_entry));
        let of = first.iter().map(place).collect::<Option<Vec<_>>>()?;
        let makers = by().map(|one| one.maker.clone()).collect();
        is_same.then(|| Check { column: index, name: column.name.to_string(), of, makers })
    }

    fn fault(&self, row: &[Option<&[u8]>], key: &mut Vec<u8>) -> Option<String> {
        let value = row[self.column]?;
        key.clear();
        for column in &self.of {
            put_key(row[*column]?, key);
        }
        let is_right = self.makers.iter().any(|maker| maker.may_have_made(value, key));
        let of =
            || self.of.iter().filter_map(|column| row[*column]).map(shown).collect::<Vec<_>>().join(", ");
        (!is_right).then(|| format!("{} of {} is not what was written there", self.name, of()))
    }
}

/// A cell of a key for people: text if it is some, else hexadecimal digits.
fn shown(cell: &[u8]) -> String {
    match std::str::from_utf8(cell) {
        Ok(text) if !text.is_empty() && text.chars().all(|one| !one.is_control()) => text.to_owned(),
        _ => format!("0x{}", types::blob::format(cell)),
    }
}
