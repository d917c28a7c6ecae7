//! Tables of clients, and places in them that each have a value or none.

use std::fmt;
use std::ops::RangeInclusive;

/// The row that stands for a partition's static cell.
const STATIC: i32 = -1;
/// Rows of a partition of the wide table.
pub(crate) const ROWS: RangeInclusive<i32> = 0..=7;

/// A table of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    /// A row for each key, on several replicas.
    Flat,
    /// The same on one.
    Single,
    /// Several rows for each key, and a static cell.
    Wide,
    /// A row for each key, with the nodes' timestamps instead of clients'.
    Stamped,
    /// A row for each key, which is written once and read by nobody before the end: no later write and no read brings a
    /// replica what it has missed.
    Once,
    /// A row for each key, which is written once, by a logged batch: no later write hides that a part of it is missing.
    Batched,
}

impl Table {
    pub(crate) const ALL: [Table; 6] =
        [Table::Flat, Table::Single, Table::Wide, Table::Stamped, Table::Once, Table::Batched];
    /// Those with few keys, which are written and read again and again.
    pub(crate) const WORKED_ON: [Table; 4] = [Table::Flat, Table::Single, Table::Wide, Table::Stamped];

    /// What makes it, after its name.
    pub(crate) fn definition(self) -> &'static str {
        match self {
            Table::Flat | Table::Single | Table::Stamped | Table::Once | Table::Batched => {
                "(k int PRIMARY KEY, v int)"
            }
            Table::Wide => "(k int, c int, s int static, v int, PRIMARY KEY (k, c))",
        }
    }

    /// What reads ask for.
    pub(crate) fn columns(self) -> &'static str {
        if self == Table::Wide { "k, c, s, v" } else { "k, v" }
    }

    /// Rows of a partition.
    pub(crate) fn rows(self) -> RangeInclusive<i32> {
        if self == Table::Wide { ROWS } else { 0..=0 }
    }

    pub(crate) fn place(self, key: i32, row: i32) -> Place {
        Place { table: self, key, row }
    }

    /// A partition's static cell.
    pub(crate) fn static_place(self, key: i32) -> Place {
        self.place(key, STATIC)
    }

    /// All of a partition.
    pub(crate) fn places(self, key: i32) -> impl Iterator<Item = Place> {
        let first = if self == Table::Wide { STATIC } else { 0 };
        (first..=*self.rows().end()).map(move |row| self.place(key, row))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Table::Flat => "several.flat",
            Table::Single => "one.flat",
            Table::Wide => "several.wide",
            Table::Stamped => "several.stamped",
            Table::Once => "several.once",
            Table::Batched => "several.batched",
        })
    }
}

/// A cell of a table: one value, or none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) table: Table,
    pub(crate) key: i32,
    pub(crate) row: i32,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { table, key, row } = self;
        match *row {
            STATIC => write!(f, "{table}[{key}].s"),
            row => write!(f, "{table}[{key}, {row}]"),
        }
    }
}
