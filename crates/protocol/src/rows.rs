//! Writing rows cell by cell into an output buffer, and reading them back.

use bytes::{BufMut, Bytes, BytesMut};

use crate::wire::Reader;
use crate::{ProtocolError, RowsHeader, Version};

/// RESULT's code for rows.
pub(crate) const ROWS_KIND: i32 = 2;

/// Writes the body of a Rows result straight into a buffer: no allocation per row or cell beyond
/// the buffer's own growth.
///
/// ```text
///   kind [int] | metadata | row count [int], patched by finish | cells, row after row
/// ```
#[derive(Debug)]
pub struct RowsWriter<'a> {
    out: &'a mut BytesMut,
    /// Where the row count goes.
    count_position: usize,
}

impl<'a> RowsWriter<'a> {
    /// Begins a result: writes its kind and metadata.
    pub fn new(out: &'a mut BytesMut, header: &RowsHeader<'_>, version: Version) -> RowsWriter<'a> {
        out.put_i32(ROWS_KIND);
        header.encode(out, version);
        let count_position = out.len();
        out.put_i32(0);
        RowsWriter { out, count_position }
    }

    /// Makes room for that many bytes of cells.
    pub fn reserve(&mut self, byte_count: usize) {
        self.out.reserve(byte_count);
    }

    /// Appends the next cell; `None` is null.
    #[inline]
    pub fn cell(&mut self, value: Option<&[u8]>) {
        put_cell(self.out, value);
    }

    /// Appends cells as [`put_cell`] writes them.
    pub fn cells(&mut self, cells: &[u8]) {
        self.out.extend_from_slice(cells);
    }

    /// Appends a cell whose bytes `write` appends, for values that are put together on the way.
    pub fn cell_with(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let length_position = self.out.len();
        self.out.put_i32(0);
        write(self.out);
        let length = (self.out.len() - length_position - 4) as i32;
        self.out[length_position..length_position + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// How many bytes the result has so far, for limits on a page's size.
    pub fn written_bytes(&self) -> usize {
        self.out.len() - self.count_position
    }

    /// Ends the result with the number of rows written.
    pub fn finish(self, row_count: u32) {
        let count = &mut self.out[self.count_position..self.count_position + 4];
        count.copy_from_slice(&row_count.to_be_bytes());
    }
}

/// Appends one cell as it goes into [`Rows::cells`](crate::Rows::cells); `None` is null.
#[inline]
pub fn put_cell(out: &mut BytesMut, value: Option<&[u8]>) {
    match value {
        None => out.put_i32(-1),
        Some(bytes) => {
            out.reserve(4 + bytes.len());
            out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

/// Reads cells in the order they were written; the caller knows how many make a row.
#[derive(Debug)]
pub struct CellReader {
    reader: Reader,
}

impl CellReader {
    /// A reader of [`Rows::cells`](crate::Rows::cells).
    pub fn new(cells: Bytes) -> CellReader {
        CellReader { reader: Reader::new(cells) }
    }

    /// The next cell: `None` after the last one, `Some(Ok(None))` for null.
    pub fn next_cell(&mut self) -> Option<Result<Option<Bytes>, ProtocolError>> {
        match self.reader.remaining() {
            0 => None,
            _ => Some(self.reader.bytes()),
        }
    }
}

impl Iterator for CellReader {
    type Item = Result<Option<Bytes>, ProtocolError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_cell()
    }
}
