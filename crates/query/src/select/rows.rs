//! Rows on their way to the client: stored rows, to be projected in place, or computed cells.

use read::PartitionRows;
use rows::Row;
use schema::ColumnId;
use types::{CqlType, encoding};

use super::cells::{RowHead, Writing};
use crate::response::RowSink;

/// Where the cell of a result column comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// Component of the partition key.
    PartitionKey(usize),
    /// Component of the clustering.
    Clustering(usize),
    /// Slot of a static column: index in [`Projection::static_columns`].
    Static(usize),
    /// Slot of a regular column: index in [`Projection::regular_columns`].
    Regular(usize),
}

/// A column whose cells are looked for in rows.
#[derive(Clone, Debug)]
pub(crate) struct SlotColumn {
    pub(crate) id: ColumnId,
    /// Its type, to put multi-cell values together.
    pub(crate) cql_type: CqlType,
}

/// Which cells of stored rows make the columns of a result.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// For each column of the result where it comes from.
    pub(crate) sources: Vec<Source>,
    /// Static columns looked for, ascending by id.
    pub(crate) static_columns: Vec<SlotColumn>,
    /// Regular columns looked for, ascending by id.
    pub(crate) regular_columns: Vec<SlotColumn>,
    /// How many columns the partition key has.
    pub(crate) partition_key_count: usize,
    /// How many clustering columns there are.
    pub(crate) clustering_count: usize,
    /// Does a partition that has nothing but its static row give a row?
    pub(crate) static_rows_alone: bool,
    /// Do the regular columns stand in the result as they do in a row, each once?
    pub(crate) is_in_order: bool,
}

impl Projection {
    /// Where the cells of a static or regular column are.
    pub(crate) fn slot_of(&self, id: ColumnId) -> Option<Source> {
        let place = |columns: &[SlotColumn]| columns.binary_search_by_key(&id, |slot| slot.id).ok();
        place(&self.static_columns)
            .map(Source::Static)
            .or_else(|| place(&self.regular_columns).map(Source::Regular))
    }

    /// Says where the columns of the result come from.
    pub(crate) fn put_sources(&mut self, sources: Vec<Source>) {
        let slot = |source: &Source| match source {
            Source::Regular(index) => Some(*index),
            _ => None,
        };
        self.is_in_order = sources.iter().filter_map(slot).eq(0..self.regular_columns.len());
        self.sources = sources;
    }
}

/// Pages as storage gave them, cut to what the statement asked for.
#[derive(Debug, Default)]
pub(crate) struct StoredRows {
    pub(crate) partitions: Vec<PartitionRows>,
}

impl StoredRows {
    pub(crate) fn row_count(&self) -> usize {
        self.partitions.iter().map(|partition| partition.row_count() as usize).sum()
    }

    /// About how many bytes the rows take in an answer.
    fn byte_count(&self, projection: &Projection) -> usize {
        let of_row = |row: &Row| row.as_encoded().len();
        let of_partition = |partition: &PartitionRows| {
            let lengths = 4 * projection.sources.len() + partition.key.bytes.len();
            let each = lengths + partition.static_row.as_ref().map_or(0, of_row);
            partition.row_count() as usize * each + partition.rows.iter().map(of_row).sum::<usize>()
        };
        self.partitions.iter().map(of_partition).sum()
    }

    pub(crate) fn write(&self, projection: &Projection, sink: &mut impl RowSink) {
        sink.expect(self.byte_count(projection));
        let (mut head, mut writing) = (RowHead::new(projection), Writing::default());
        for partition in &self.partitions {
            head.enter_partition(partition);
            partition.shown_rows().for_each(|row| {
                head.enter_row(row);
                writing.write_encoded(&head, row, sink);
            });
        }
    }
}

/// Cells that were computed, one after the other: `i32` length (-1 for null) and value each.
#[derive(Debug, Default)]
pub(crate) struct ComputedRows {
    cells: Vec<u8>,
    row_count: usize,
}

impl ComputedRows {
    /// Adds rows that were computed apart.
    pub(crate) fn append(&mut self, mut others: ComputedRows) {
        self.cells.append(&mut others.cells);
        self.row_count += others.row_count;
    }

    /// Ends a row whose cells have been given.
    pub(crate) fn end_row(&mut self) {
        self.row_count += 1;
    }

    pub(crate) fn row_count(&self) -> usize {
        self.row_count
    }

    pub(crate) fn byte_count(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn write(&self, sink: &mut impl RowSink) {
        let mut rest = self.cells.as_slice();
        while let Some((head, tail)) = rest.split_first_chunk::<4>() {
            match usize::try_from(i32::from_be_bytes(*head)) {
                Err(_) => {
                    sink.cell(None);
                    rest = tail;
                }
                Ok(length) => {
                    let (value, tail) = tail.split_at(length);
                    sink.cell(Some(value));
                    rest = tail;
                }
            }
        }
    }
}

impl RowSink for ComputedRows {
    fn cell(&mut self, value: Option<&[u8]>) {
        encoding::write_bytes(value, &mut self.cells);
    }
}
