//! Puts rows together.

use bytes::{Bytes, BytesMut};
use schema::ColumnId;

use super::{
    CELL_COMPLEX, CELL_COMPLEX_DELETION, CELL_ENDS, CELL_EXPIRING, CELL_ROW_TIMESTAMP, EncodedRun,
    ROW_DELETION, ROW_LIVENESS, ROW_LIVENESS_TTL, ROW_PLAIN, Row,
};
use crate::{CellRef, Clustering, DeletionTime, Liveness, NO_DELETION_TIME, room_for};

/// A finished row has at most so much room that it does not use.
const UNUSED_BYTES_MAX: usize = 1 << 10;

/// Writes a row, column by column, ascending by id.
#[derive(Debug)]
pub struct RowBuilder {
    bytes: Vec<u8>,
    /// Where the row flags are, for `PLAIN`, which is known at the end only.
    flags_offset: usize,
    is_plain: bool,
    row_timestamp: Option<i64>,
    last_id: Option<ColumnId>,
}

impl RowBuilder {
    /// A row at that clustering ([`Clustering::EMPTY`] for a static row).
    pub fn new(clustering: &Clustering, liveness: Liveness, deletion: DeletionTime) -> Self {
        Self::with_encoded(clustering.as_encoded(), liveness, deletion)
    }

    /// The same, from an encoded clustering.
    pub fn with_encoded(clustering: &[u8], liveness: Liveness, deletion: DeletionTime) -> Self {
        Self::with_capacity(clustering, liveness, deletion, 64)
    }

    /// The same, with room for columns of that many bytes in all.
    pub fn with_capacity(
        clustering: &[u8],
        liveness: Liveness,
        deletion: DeletionTime,
        columns_bytes: usize,
    ) -> Self {
        let bytes = Vec::with_capacity(64 + clustering.len() + columns_bytes);
        Self::reusing(bytes, clustering, liveness, deletion)
    }

    /// A row that has at most the columns of another, at its clustering.
    pub fn part_of(row: &Row, liveness: Liveness, deletion: DeletionTime) -> Self {
        Self::with_capacity(row.encoded_clustering(), liveness, deletion, row.as_encoded().len())
    }

    /// The same in memory that was used before ([`RowBuilder::finish_into`]).
    pub fn reusing(
        mut bytes: Vec<u8>,
        clustering: &[u8],
        liveness: Liveness,
        deletion: DeletionTime,
    ) -> Self {
        bytes.clear();
        Self::appending(bytes, clustering, liveness, deletion)
    }

    /// The same behind what is in those bytes ([`RowBuilder::finish_bytes`]).
    pub fn appending(
        mut bytes: Vec<u8>,
        clustering: &[u8],
        liveness: Liveness,
        deletion: DeletionTime,
    ) -> Self {
        push_run(&mut bytes, clustering);
        let flags_offset = bytes.len();
        let mut flags = 0;
        bytes.push(0);
        if !liveness.is_none() {
            flags |= ROW_LIVENESS;
            bytes.extend_from_slice(&liveness.timestamp.to_le_bytes());
            if liveness.is_expiring() {
                flags |= ROW_LIVENESS_TTL;
                bytes.extend_from_slice(&liveness.ttl.to_le_bytes());
                bytes.extend_from_slice(&liveness.local_expiration_time.to_le_bytes());
            }
        }
        if !deletion.is_live() {
            flags |= ROW_DELETION;
            push_deletion(&mut bytes, deletion);
        }
        bytes[flags_offset] = flags;
        RowBuilder {
            bytes,
            flags_offset,
            is_plain: flags & !ROW_LIVENESS == 0,
            row_timestamp: (!liveness.is_none()).then_some(liveness.timestamp),
            last_id: None,
        }
    }

    /// Makes room for values of that many bytes in all.
    pub fn reserve(&mut self, value_bytes: usize) -> &mut Self {
        self.bytes.reserve(value_bytes);
        self
    }

    /// Adds the one cell of a simple column.
    ///
    /// # Panics
    /// When the id is not above the one before.
    #[inline]
    pub fn cell(&mut self, id: ColumnId, cell: CellRef<'_>) -> &mut Self {
        let is_usual = self.row_timestamp == Some(cell.timestamp)
            && cell.local_deletion_time == NO_DELETION_TIME
            && cell.ttl == 0;
        if is_usual {
            self.value_of_row(id, cell.value);
        } else {
            self.start_column(id);
            self.push_cell(cell, false);
        }
        self
    }

    /// Adds what most cells are: a value written with the row, to stay.
    ///
    /// # Panics
    /// When the id is not above the one before, or the row has no liveness.
    #[inline]
    pub fn value_of_row(&mut self, id: ColumnId, value: &[u8]) {
        assert!(self.row_timestamp.is_some(), "the cell has the row's timestamp");
        assert!(self.last_id.is_none_or(|last| last < id), "columns of a row must ascend by id");
        self.last_id = Some(id);
        let [id_low, id_high] = id.0.to_le_bytes();
        let length = u32::try_from(value.len()).expect("a value is smaller than a frame");
        let [a, b, c, d] = length.to_le_bytes();
        self.bytes.reserve(7 + value.len());
        self.bytes.extend_from_slice(&[id_low, id_high, CELL_ROW_TIMESTAMP, a, b, c, d]);
        self.bytes.extend_from_slice(value);
    }

    /// Adds columns as they are encoded in a plain row of the same liveness.
    pub(crate) fn encoded_run(&mut self, run: EncodedRun<'_>) {
        assert!(self.last_id.is_none_or(|last| last < run.first), "columns of a row must ascend by id");
        assert!(!run.bytes.is_empty(), "a run has a column");
        let row_timestamp = self.row_timestamp.unwrap_or(Liveness::NONE.timestamp);
        assert_eq!(run.row_timestamp, row_timestamp, "cells keep the timestamp of the row they were in");
        self.last_id = Some(run.last);
        self.bytes.extend_from_slice(run.bytes);
    }

    /// Adds a multi-cell column: its deletion and its cells, which must be in the order of their paths.
    /// Cells that the deletion hides are left out, and the column when there is neither.
    ///
    /// # Panics
    /// When the id is not above the one before.
    pub fn complex<'a>(
        &mut self,
        id: ColumnId,
        deletion: DeletionTime,
        cells: impl IntoIterator<Item = CellRef<'a>>,
    ) -> &mut Self {
        let start = self.bytes.len();
        let previous = self.last_id;
        self.start_column(id);
        let mut flags = CELL_COMPLEX;
        let flags_offset = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 5]);
        if !deletion.is_live() {
            flags |= CELL_COMPLEX_DELETION;
            self.is_plain = false;
            push_deletion(&mut self.bytes, deletion);
        }
        let before_cells = self.bytes.len();
        for cell in cells {
            if !deletion.deletes(cell.timestamp) {
                self.push_cell(cell, true);
            }
        }
        if deletion.is_live() && self.bytes.len() == before_cells {
            self.bytes.truncate(start);
            self.last_id = previous;
            return self;
        }
        let body_bytes =
            u32::try_from(self.bytes.len() - flags_offset - 5).expect("a row is smaller than a frame");
        self.bytes[flags_offset] = flags;
        self.bytes[flags_offset + 1..flags_offset + 5].copy_from_slice(&body_bytes.to_le_bytes());
        self
    }

    fn start_column(&mut self, id: ColumnId) {
        assert!(self.last_id.is_none_or(|last| last < id), "columns of a row must ascend by id");
        self.last_id = Some(id);
        self.bytes.extend_from_slice(&id.0.to_le_bytes());
    }

    fn push_cell(&mut self, cell: CellRef<'_>, has_path: bool) {
        assert!(has_path || cell.path.is_empty(), "the one cell of a column has no path");
        let mut flags = 0;
        let flags_offset = self.bytes.len();
        self.bytes.push(0);
        if self.row_timestamp == Some(cell.timestamp) {
            flags |= CELL_ROW_TIMESTAMP;
        } else {
            self.bytes.extend_from_slice(&cell.timestamp.to_le_bytes());
        }
        if cell.local_deletion_time != NO_DELETION_TIME {
            flags |= CELL_ENDS;
            self.is_plain = false;
            self.bytes.extend_from_slice(&cell.local_deletion_time.to_le_bytes());
        }
        if cell.ttl != 0 {
            flags |= CELL_EXPIRING;
            self.bytes.extend_from_slice(&cell.ttl.to_le_bytes());
        }
        if has_path {
            push_run(&mut self.bytes, cell.path);
        }
        push_run(&mut self.bytes, cell.value);
        self.bytes[flags_offset] = flags;
    }

    /// The row. What it has not used of much room is given back: nobody counts it.
    pub fn finish(mut self) -> Row {
        self.mark();
        if self.bytes.capacity() - self.bytes.len() > UNUSED_BYTES_MAX {
            self.bytes.shrink_to_fit();
        }
        Row(self.bytes.into())
    }

    /// The row, in memory of its own and no more than it needs; and the builder's memory for the next one.
    pub fn finish_exactly(mut self) -> (Row, Vec<u8>) {
        self.mark();
        (Row(Bytes::copy_from_slice(&self.bytes)), self.bytes)
    }

    /// The row's bytes, behind those that it was [appended](RowBuilder::appending) to.
    pub fn finish_bytes(mut self) -> Vec<u8> {
        self.mark();
        self.bytes
    }

    /// The row, in memory shared with those before it, so that each needs none of its own; and the
    /// builder's memory for the next one. For rows that will not outlive each other by much. When the
    /// shared memory is used up, as much as `likely_bytes` is taken for this row and the next ones.
    pub fn finish_into(mut self, shared: &mut BytesMut, likely_bytes: usize) -> (Row, Vec<u8>) {
        self.mark();
        let room = room_for(shared, self.bytes.len(), likely_bytes);
        room.extend_from_slice(&self.bytes);
        (Row(room.split().freeze()), self.bytes)
    }

    fn mark(&mut self) {
        if self.is_plain {
            let flags = self.bytes[self.flags_offset];
            assert!(flags & !ROW_LIVENESS == 0, "of a plain row nothing is deleted and nothing expires");
            self.bytes[self.flags_offset] |= ROW_PLAIN;
        }
    }
}

fn push_run(bytes: &mut Vec<u8>, run: &[u8]) {
    let length = u32::try_from(run.len()).expect("a value is smaller than a frame");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(run);
}

fn push_deletion(bytes: &mut Vec<u8>, deletion: DeletionTime) {
    bytes.extend_from_slice(&deletion.timestamp.to_le_bytes());
    bytes.extend_from_slice(&deletion.local_deletion_time.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "the one cell of a column has no path")]
    fn a_path_in_a_column_of_one_cell_is_seen() {
        let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
        row.cell(ColumnId(1), CellRef::live(1, b"value").with_path(b"path"));
    }

    fn written_at(timestamp: i64) -> RowBuilder {
        RowBuilder::new(&Clustering::EMPTY, Liveness::at(timestamp), DeletionTime::LIVE)
    }

    #[test]
    #[should_panic(expected = "cells keep the timestamp of the row they were in")]
    fn columns_that_would_get_the_timestamp_of_another_write_are_seen() {
        let mut row = written_at(1);
        row.value_of_row(ColumnId(1), b"value");
        written_at(2).encoded_run(row.finish().columns().pass_before(None));
    }

    #[test]
    #[should_panic(expected = "a run has a column")]
    fn a_run_of_no_columns_is_seen() {
        let mut row = written_at(1);
        row.value_of_row(ColumnId(3), b"value");
        written_at(1).encoded_run(row.finish().columns().pass_before(Some(ColumnId(3))));
    }

    #[test]
    #[should_panic(expected = "of a plain row nothing is deleted and nothing expires")]
    fn a_deleted_row_that_says_that_it_is_plain_is_seen() {
        let deletion = DeletionTime { timestamp: 1, local_deletion_time: 1 };
        let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, deletion);
        row.is_plain = true;
        row.finish();
    }
}
