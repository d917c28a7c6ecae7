//! The tables, and the registers that they are made of: what one write sets and one read shows.

use std::fmt;
use std::ops::RangeInclusive;

/// The statements that make them; those of rivals are beside ([`crate::score::TABLES`]).
pub(crate) const SCHEMA: [&str; 3] = [
    "CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE s.narrow (k int PRIMARY KEY, a text, b int)",
    "CREATE TABLE s.wide (k int, c int, s text STATIC, v text, m map<int, text>, PRIMARY KEY (k, c)) \
     WITH CLUSTERING ORDER BY (c DESC)",
];

/// Rows that may be in a partition of the wide table.
pub(crate) const CLUSTERINGS: RangeInclusive<i32> = 0..=39;
/// Keys of its maps.
pub(crate) const MAP_KEYS: RangeInclusive<i32> = 0..=3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    /// A partition is a row.
    Narrow,
    /// Rows in order, and a static column.
    Wide,
}

/// A cell of a row, or that the row was inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cell {
    Marker,
    A,
    B,
    V,
    M(i32),
}

/// Something that has one value at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Register {
    pub(crate) table: Table,
    pub(crate) key: i32,
    pub(crate) place: Place,
}

/// Where in a partition; what comes first here is the first of the partition's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Static,
    Row(i32, Cell),
}

impl Table {
    pub(crate) const ALL: [Table; 2] = [Table::Narrow, Table::Wide];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Table::Narrow => "narrow",
            Table::Wide => "wide",
        }
    }

    /// The statement that makes it.
    pub(crate) fn statement(self) -> &'static str {
        match self {
            Table::Narrow => SCHEMA[1],
            Table::Wide => SCHEMA[2],
        }
    }

    pub(crate) fn cell(self, key: i32, clustering: i32, cell: Cell) -> Register {
        Register { table: self, key, place: Place::Row(clustering, cell) }
    }

    pub(crate) fn static_cell(self, key: i32) -> Register {
        Register { table: self, key, place: Place::Static }
    }

    /// All registers of a row.
    pub(crate) fn row(self, key: i32, clustering: i32) -> Vec<Register> {
        let cells: Vec<Cell> = match self {
            Table::Narrow => vec![Cell::Marker, Cell::A, Cell::B],
            Table::Wide => [Cell::Marker, Cell::V].into_iter().chain(MAP_KEYS.map(Cell::M)).collect(),
        };
        cells.into_iter().map(|cell| self.cell(key, clustering, cell)).collect()
    }

    /// The rows that a partition may have.
    pub(crate) fn clusterings(self) -> RangeInclusive<i32> {
        match self {
            Table::Narrow => 0..=0,
            Table::Wide => CLUSTERINGS,
        }
    }

    /// The column that reads ask about.
    pub(crate) fn dated_column(self) -> &'static str {
        match self {
            Table::Narrow => "a",
            Table::Wide => "v",
        }
    }

    /// The cell of that column.
    pub(crate) fn dated_cell(self, key: i32, clustering: i32) -> Register {
        match self {
            Table::Narrow => self.cell(key, clustering, Cell::A),
            Table::Wide => self.cell(key, clustering, Cell::V),
        }
    }

    /// What every read of it selects.
    pub(crate) fn columns(self) -> &'static str {
        match self {
            Table::Narrow => "k, a, b",
            Table::Wide => "k, c, s, v, m",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s.{}", self.name())
    }
}
