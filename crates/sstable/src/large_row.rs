//! Rows so large that whoever may not be kept long has them read on another thread.
//!
//! ```text
//!   cursor ── large_row ─► nobody else reads them: the cursor does
//!                          somebody was asked, and has read it: the cursor goes on
//!                          else: Step::Need(FileNeed::Row) ─► LargeRow::read, anywhere ─► the cursor finds it
//! ```

use std::sync::Arc;

use rows::Row;

use crate::cursor::{Pieces, damaged};
use crate::data::{Decoder, Head};
use crate::{ChunkNeed, Component, SstableError, TableFile};

/// What a cursor lacks.
#[derive(Debug)]
pub enum FileNeed {
    /// A chunk.
    Chunk(ChunkNeed),
    /// A row, whose bytes are there.
    Row(Box<LargeRow>),
}

/// A row that is to be read: its bytes, and all that it takes to make sense of them.
#[derive(Debug)]
pub struct LargeRow {
    pub(crate) file: Arc<TableFile>,
    /// In Data.
    pub(crate) position: u64,
    pub(crate) head: Head,
    pub(crate) is_static: bool,
    /// As the decoder has it after the head.
    pub(crate) clustering: Vec<u8>,
    /// The item.
    pub(crate) pieces: Pieces,
}

/// A row that was read; `None` when nothing of it is left for the table as it is now.
#[derive(Debug)]
pub struct ReadRow {
    file: u64,
    position: u64,
    row: Result<Option<Row>, SstableError>,
}

/// Who reads large rows.
#[derive(Debug)]
pub enum RowReader {
    /// The cursor that comes to one.
    Cursor,
    /// Somebody else: the row, if it was read.
    Other(Option<ReadRow>),
}

impl LargeRow {
    /// Reads it; takes about 10 ms for each MiB of collections.
    pub fn read(self) -> ReadRow {
        let LargeRow { file, position, head, is_static, clustering, pieces } = self;
        let Some(item) = pieces.join() else {
            let what = "a chunk is shorter than it should be";
            let row = Err(file.damaged(Component::Data, position, what));
            return ReadRow { file: file.number(), position, row };
        };
        let body = &item[head.body_start..];
        let parsed = Decoder::behind_head(clustering).row(file.layout(), &head, is_static, body);
        let row = parsed.map_err(|error| damaged(&file, position, error));
        ReadRow { file: file.number(), position, row }
    }
}

impl ReadRow {
    /// Is it the row at that place of the file?
    pub fn is_at(&self, file: &TableFile, position: u64) -> bool {
        (self.file, self.position) == (file.number(), position)
    }

    pub(crate) fn into_row(self) -> Result<Option<Row>, SstableError> {
        self.row
    }
}
