//! A page of rows, copied out of the shard that made it: all cells in one buffer.

use std::sync::Arc;

use bytes::Bytes;
use query::{ColumnSpec, RowSink, RowsResult};

/// Stands for null where a length is.
const NULL: u32 = u32::MAX;

/// Rows of an answer that came together.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) columns: Arc<[ColumnSpec]>,
    pub(crate) row_count: usize,
    /// Where the next page begins; `None` after the last.
    pub(crate) paging_state: Option<Bytes>,
    /// Row after row. Invariant: as many for each row as there are columns.
    cells: Vec<Cell>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    start: usize,
    /// Values are shorter than 2^31 bytes.
    length: u32,
}

impl Page {
    /// The page of an answer without rows.
    pub(crate) fn empty() -> Self {
        Page { columns: Arc::new([]), row_count: 0, paging_state: None, cells: Vec::new(), bytes: Vec::new() }
    }

    /// A copy of the result that can leave its shard.
    pub(crate) fn of(result: &RowsResult) -> Self {
        let mut page = Page {
            columns: Arc::clone(&result.columns),
            paging_state: result.paging_state.clone(),
            ..Page::empty()
        };
        page.cells.reserve(result.row_count().saturating_mul(page.columns.len()));
        page.row_count = result.write_rows(&mut page.sink());
        page
    }

    fn sink(&mut self) -> Sink<'_> {
        Sink { cells: &mut self.cells, bytes: &mut self.bytes }
    }

    /// The bytes of a cell; `None` when it is null or not there.
    pub(crate) fn cell(&self, row: usize, column: usize) -> Option<&[u8]> {
        let cell = self.cells.get(row.checked_mul(self.columns.len())?.checked_add(column)?)?;
        if cell.length == NULL {
            return None;
        }
        self.bytes.get(cell.start..cell.start + cell.length as usize)
    }
}

struct Sink<'a> {
    cells: &'a mut Vec<Cell>,
    bytes: &'a mut Vec<u8>,
}

impl RowSink for Sink<'_> {
    fn cell(&mut self, value: Option<&[u8]>) {
        let start = self.bytes.len();
        let length = value.map_or(NULL, |value| u32::try_from(value.len()).unwrap_or(NULL));
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.cells.push(Cell { start, length });
    }

    fn expect(&mut self, byte_count: usize) {
        self.bytes.reserve(byte_count);
    }
}
