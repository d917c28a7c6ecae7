//! A partition of a table without clustering and static columns: at most one row, found where it lies in Data.
//!
//! ```text
//!   u16 key bytes | key | deletion | flags, lengths | liveness, deletion, cells | u8 END_OF_PARTITION
//!                                  └ head ──────────┴ body ────────────────────┘
//! ```
//!
//! Lookups by key and scans find such a partition here, and take of it what they need: the values where they lie, the
//! cells for a merge with other versions, or the row. Whatever else stands there, or is not all at hand, is for a
//! [`crate::FileCursor`] to read.

use std::ops::Range;

use rows::{CellMerge, DeletionTime, LARGE_ROW_BYTES, Row, ValuesInPlace};
use stdx::cursor::Cursor;

use crate::data::{Decoder, END_OF_PARTITION, Head, HeadKind, Layout, ParseError, read_partition_head};
use crate::{Chunk, SearchKey, TableFile, Version};

/// Where such a partition has what, from its start.
#[derive(Clone, Debug)]
pub(crate) struct SingleRowParts {
    pub(crate) key: Range<usize>,
    pub(crate) deletion: DeletionTime,
    pub(crate) row_start: usize,
    pub(crate) row: Option<Head>,
    /// Of all of it.
    pub(crate) bytes: usize,
}

impl SingleRowParts {
    /// Finds the parts of the partition at the start of `bytes`; `None` when there is more than a row in it.
    ///
    /// # Errors
    /// It is damaged, or not all there.
    pub(crate) fn parse(
        version: Version,
        layout: &Layout,
        decoder: &mut Decoder,
        bytes: &[u8],
    ) -> Result<Option<SingleRowParts>, ParseError> {
        let mut input = Cursor::new(bytes);
        let (key, deletion) = read_partition_head(version, &mut input)?;
        let key = size_of::<u16>()..size_of::<u16>() + key.len();
        let row_start = input.position();
        let short = |wanted_bytes: usize| ParseError::Short { wanted_bytes };
        let head = decoder.head(layout, &bytes[row_start..], false).map_err(|error| match error {
            ParseError::Short { wanted_bytes } => short(row_start.saturating_add(wanted_bytes)),
            malformed => malformed,
        })?;
        let row_end = usize::try_from(head.item_bytes).ok().and_then(|bytes| row_start.checked_add(bytes));
        let row_end = row_end.ok_or(ParseError::Malformed("length of a row"))?;
        let parts = |row, bytes| SingleRowParts { key, deletion, row_start, row, bytes };
        Ok(match head.kind {
            HeadKind::End => Some(parts(None, row_end)),
            HeadKind::Marker(_) => None,
            HeadKind::Row if head.body_start as u64 > head.item_bytes => {
                return Err(ParseError::Malformed("length of a row"));
            }
            HeadKind::Row => match bytes.get(row_end) {
                None => return Err(short(row_end.saturating_add(1))),
                Some(&END_OF_PARTITION) => Some(parts(Some(head), row_end + 1)),
                Some(_) => None,
            },
        })
    }
}

/// What a file has of a partition where the index says that it is.
#[derive(Debug)]
pub enum SingleRowFound<'c> {
    /// Nothing: another partition has the same path in the index.
    Absent,
    /// A deletion, which may be none, and the row, if there is one.
    Partition(SingleRowPartition<'c>),
    /// A cursor has to read it, and why.
    ForCursor(ForCursor),
}

/// Why a partition is for a cursor to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForCursor {
    /// Some of its bytes are in another chunk, or damaged: a cursor tells which.
    NotAtHand,
    /// The table has or had static or clustering columns, or there is a marker or a second row.
    MoreThanARow,
    /// Its row is so large that another thread ought to read it.
    LargeRow,
}

/// A partition of at most one row, where it lies.
#[derive(Debug)]
pub struct SingleRowPartition<'c> {
    file: &'c TableFile,
    deletion: DeletionTime,
    row: Option<(Head, &'c [u8])>,
}

impl TableFile {
    /// Finds a partition in the chunk that the search for it wanted, from an offset in it on.
    pub fn single_row_at<'c>(
        &'c self,
        key: &SearchKey<'_>,
        chunk: &'c Chunk,
        offset: usize,
    ) -> SingleRowFound<'c> {
        let layout = self.layout();
        if !layout.has_single_rows() {
            return SingleRowFound::ForCursor(ForCursor::MoreThanARow);
        }
        let bytes = chunk.as_slice().get(offset..).unwrap_or_default();
        let mut decoder = Decoder::default();
        let parts = match SingleRowParts::parse(self.descriptor().version, layout, &mut decoder, bytes) {
            Ok(Some(parts)) => parts,
            Ok(None) => return SingleRowFound::ForCursor(ForCursor::MoreThanARow),
            Err(_) => return SingleRowFound::ForCursor(ForCursor::NotAtHand),
        };
        if bytes[parts.key.clone()] != key.key.bytes {
            self.filter().note_looked_up(false);
            return SingleRowFound::Absent;
        }
        if parts.bytes >= LARGE_ROW_BYTES && layout.regulars.has_complex {
            return SingleRowFound::ForCursor(ForCursor::LargeRow);
        }
        SingleRowFound::Partition(SingleRowPartition::new(self, &parts, bytes))
    }
}

impl<'c> SingleRowPartition<'c> {
    /// That with these parts, at the start of `bytes`.
    #[inline]
    pub(crate) fn new(file: &'c TableFile, parts: &SingleRowParts, bytes: &'c [u8]) -> Self {
        // After the row there is the end of the partition.
        let body = |head: &Head| &bytes[parts.row_start + head.body_start..parts.bytes - 1];
        SingleRowPartition { file, deletion: parts.deletion, row: parts.row.map(|head| (head, body(&head))) }
    }

    /// Its deletion, or live.
    pub fn deletion(&self) -> DeletionTime {
        self.deletion
    }

    /// The values of its row where they lie, ascending by column. `None` when they are not all that is to be said of
    /// row and partition.
    pub fn values(&self) -> Option<ValuesInPlace<'c>> {
        let (head, body) = self.row.as_ref().filter(|_| self.deletion.is_live())?;
        let mut values = ValuesInPlace::new();
        Decoder::values(self.file.layout(), head, body, |id, value| values.push((id, value)))?;
        Some(values)
    }

    /// Adds its deletion and its row to what others have come to, where its cells lie. `None` when the merge is of no
    /// use: the row has more than single cells, say, or is damaged.
    #[inline]
    pub fn merge_into(&self, merge: &mut CellMerge<'c>) -> Option<()> {
        merge.add_active(self.deletion)?;
        let Some((head, body)) = &self.row else { return Some(()) };
        Decoder::merge_into(self.file.layout(), head, body, merge)
    }

    /// Its row; `None` when there is none, or nothing of it is left for the table as it is now.
    ///
    /// # Errors
    /// It is damaged; a cursor that reads it tells how.
    pub fn row(&self) -> Result<Option<Row>, ForCursor> {
        self.read_row(&mut Decoder::default()).map_err(|_| ForCursor::NotAtHand)
    }

    /// The same, by a decoder that may have read others before.
    pub(crate) fn read_row(&self, decoder: &mut Decoder) -> Result<Option<Row>, ParseError> {
        let Some((head, body)) = &self.row else { return Ok(None) };
        decoder.row(self.file.layout(), head, false, body)
    }
}
