//! A later write that fits into a row as it lies: an INSERT over an INSERT of the same length, or an UPDATE of columns
//! that an UPDATE has set before.

use super::{Columns, ROW_PLAIN, Reader, Row};

/// Column id, flags, timestamp and length of the value: what stands before the value of a cell that was not
/// written with its row, and stays.
const HEAD_BYTES: usize = 2 + 1 + 8 + 4;
const NO_FLAGS: u8 = 0;

impl Row {
    /// Writes a later row that leaves nothing of this one over it, or those of its cells that are newer, where they
    /// take as much room and nobody else holds the bytes. Was that all, so that this is the row that merging the
    /// two would make? If not, merging the two still makes the same.
    pub fn write_over(&mut self, later: &Row) -> bool {
        if self.0.len() == later.0.len() && later.overwrites(self) {
            return self.write_whole(later);
        }
        self.write_cells(later)
    }

    /// Becomes a row of the same length, if nobody else holds the bytes. Did it?
    fn write_whole(&mut self, later: &Row) -> bool {
        match std::mem::take(&mut self.0).try_into_mut() {
            Ok(mut bytes) => {
                bytes.copy_from_slice(&later.0);
                self.0 = bytes.freeze();
                true
            }
            Err(shared) => {
                self.0 = shared;
                false
            }
        }
    }

    fn write_cells(&mut self, later: &Row) -> bool {
        let is_alike = later.header().0 == ROW_PLAIN
            && self.is_plain()
            && self.encoded_clustering() == later.encoded_clustering();
        if !is_alike {
            return false;
        }
        let liveness = self.liveness();
        let row_timestamp = (!liveness.is_none()).then_some(liveness.timestamp);
        let columns_offset = self.0.len() - self.columns().reader.rest.len();
        match std::mem::take(&mut self.0).try_into_mut() {
            Ok(mut bytes) => {
                let is_done = write_cells(&mut bytes[columns_offset..], row_timestamp, later.columns());
                self.0 = bytes.freeze();
                is_done
            }
            Err(shared) => {
                self.0 = shared;
                false
            }
        }
    }
}

/// Writes cells over those of encoded columns; `false` at the first that does not fit.
fn write_cells(mut columns: &mut [u8], row_timestamp: Option<i64>, mut later: Columns<'_>) -> bool {
    while let Some(id) = later.next_id() {
        let cell = later.pass();
        let mut passed = Columns { reader: Reader { rest: columns }, row_timestamp: 0 };
        passed.pass_before(Some(id));
        let offset = columns.len() - passed.reader.rest.len();
        columns = &mut columns[offset..];
        let Some(here) = columns.get_mut(..cell.len()) else { return false };
        // A cell with the row's timestamp has another form.
        match newer_of_its_form(cell, here) {
            Some(timestamp) if Some(timestamp) != row_timestamp => here.copy_from_slice(cell),
            _ => return false,
        }
    }
    true
}

/// The timestamp of a cell, if it is one of the same column, as long, and newer; both lasting ones with a
/// timestamp of their own.
fn newer_of_its_form(cell: &[u8], here: &[u8]) -> Option<i64> {
    let [cell, here] = [cell, here].map(|cell| cell.first_chunk::<HEAD_BYTES>());
    let ([a, b, flags, cell @ ..], [c, d, flags_here, here @ ..]) = (cell?, here?);
    let ((newer, length), (older, length_here)) = (cell.split_first_chunk()?, here.split_first_chunk()?);
    let is_of_its_form = [a, b, flags] == [c, d, flags_here] && *flags == NO_FLAGS && length == length_here;
    let (newer, older) = (i64::from_le_bytes(*newer), i64::from_le_bytes(*older));
    (is_of_its_form && newer > older).then_some(newer)
}
