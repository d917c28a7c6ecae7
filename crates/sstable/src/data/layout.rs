//! How rows of one file are laid out: its columns in their order, and what they are in the table.
//!
//! Files name columns; rows in memory number them. The file's order is simple columns by name,
//! then multi-cell ones by name; rows in memory ascend by number. Columns the table no longer
//! has are read over; cells of before a drop are left out.

use std::sync::Arc;

use rows::{CellRef, ClusteringComparator, EncodingStats};
use schema::{Column, ColumnId, Table};
use types::CqlType;

/// Columns and clustering of one file.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) stats: EncodingStats,
    /// For each clustering column, the length of its values when all have the same.
    pub(crate) clustering: Vec<Option<usize>>,
    pub(crate) comparator: ClusteringComparator,
    pub(crate) statics: Columns,
    pub(crate) regulars: Columns,
}

/// Static or regular columns of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) list: Vec<FileColumn>,
    /// Index into the list by column id, [`NO_SLOT`] for none.
    slots: Vec<u16>,
    /// Places in the list of columns that the table has, by rising id.
    pub(crate) by_id: Vec<u16>,
    pub(crate) has_complex: bool,
    /// Is each value of a column what its cell holds? Those of several cells are not, and counters.
    pub(crate) is_simple: bool,
    /// Are all simple, and those that the table has in the order of their ids? Then a row can be read
    /// in one go.
    pub(crate) is_simple_by_id: bool,
}

const NO_SLOT: u16 = u16::MAX;

/// A column of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileColumn {
    /// What it is in the table; `None` when the table has no such column.
    pub(crate) id: Option<ColumnId>,
    pub(crate) is_complex: bool,
    /// Has its one cell all shares of a counter ([`rows::context`])?
    pub(crate) is_counter: bool,
    /// Length of its values when all have the same.
    pub(crate) fixed_bytes: Option<usize>,
    /// Cells up to this timestamp are gone: the column was dropped and added again.
    pub(crate) dropped_time_us: Option<i64>,
}

impl FileColumn {
    /// What it is in the table, if all of its cells still are.
    #[inline]
    pub(crate) fn id_if_kept(&self) -> Option<ColumnId> {
        self.id.filter(|_| self.dropped_time_us.is_none())
    }

    /// What it is in the table, unless that cell is gone: its column is, or was when it was written.
    #[inline]
    pub(crate) fn id_of(&self, cell: &CellRef<'_>) -> Option<ColumnId> {
        self.id.filter(|_| self.dropped_time_us.is_none_or(|dropped| cell.timestamp > dropped))
    }
}

impl Columns {
    /// From columns in the order of the file.
    pub(crate) fn new(list: Vec<FileColumn>) -> Self {
        let mut slots = Vec::new();
        for (slot, column) in (0..NO_SLOT).zip(&list) {
            if let Some(id) = column.id {
                let index = usize::from(id.0);
                if slots.len() <= index {
                    slots.resize(index + 1, NO_SLOT);
                }
                slots[index] = slot;
            }
        }
        let has_complex = list.iter().any(|column| column.is_complex);
        let by_id: Vec<u16> = slots.iter().copied().filter(|slot| *slot != NO_SLOT).collect();
        let is_simple = !has_complex && !list.iter().any(|column| column.is_counter);
        let is_simple_by_id = is_simple && by_id.is_sorted();
        Columns { list, slots, by_id, has_complex, is_simple, is_simple_by_id }
    }

    /// Which of the list that column is.
    pub(crate) fn slot(&self, id: ColumnId) -> Option<u16> {
        self.slots.get(usize::from(id.0)).copied().filter(|slot| *slot != NO_SLOT)
    }
}

impl Layout {
    /// Can a partition have at most one row, and no static one?
    pub(crate) fn has_single_rows(&self) -> bool {
        self.clustering.is_empty() && self.statics.list.is_empty()
    }

    /// For writing a file of that table: all of its columns.
    pub(crate) fn for_writing(table: &Table, stats: EncodingStats) -> Self {
        let columns = |columns: &[Column]| {
            let list = in_file_order(columns).into_iter().map(|column| FileColumn {
                id: Some(column.id),
                is_complex: column.cql_type.is_multi_cell(),
                is_counter: column.cql_type == CqlType::Counter,
                fixed_bytes: fixed_bytes(&column.cql_type),
                dropped_time_us: None,
            });
            Columns::new(list.collect())
        };
        Layout {
            stats,
            clustering: table.clustering().iter().map(|column| fixed_bytes(&column.cql_type)).collect(),
            comparator: ClusteringComparator::new(Arc::clone(table.clustering_types())),
            statics: columns(table.static_columns()),
            regulars: columns(table.regular_columns()),
        }
    }

    pub(crate) fn columns(&self, is_static: bool) -> &Columns {
        if is_static { &self.statics } else { &self.regulars }
    }
}

/// Columns as Cassandra orders them: simple ones by name, then multi-cell ones by name.
pub(crate) fn in_file_order(columns: &[Column]) -> Vec<&Column> {
    let mut sorted: Vec<&Column> = columns.iter().collect();
    sorted.sort_by_key(|column| (column.cql_type.is_multi_cell(), column.name.as_bytes()));
    sorted
}

/// Length that all values of a type have in table files; `None` when a length stands before each.
/// `tinyint`, `smallint`, `date` and `time` are of the latter kind, for Cassandra's own reasons.
pub(crate) fn fixed_bytes(cql_type: &CqlType) -> Option<usize> {
    Some(match cql_type {
        CqlType::Empty => 0,
        CqlType::Boolean => 1,
        CqlType::Int | CqlType::Float => 4,
        CqlType::Bigint | CqlType::Double | CqlType::Timestamp => 8,
        CqlType::Uuid | CqlType::Timeuuid => 16,
        CqlType::Vector { element, dimension } => {
            fixed_bytes(element)?.saturating_mul(usize::try_from(*dimension).unwrap_or(usize::MAX))
        }
        _ => return None,
    })
}
