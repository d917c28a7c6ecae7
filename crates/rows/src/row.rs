//! A row in one run of bytes: written once when a statement is bound, read in place ever after.
//!
//! ```text
//!   u32 clustering bytes | clustering | u8 row flags
//!       [i64 liveness timestamp  [u32 ttl, u32 local expiration]]     LIVENESS, LIVENESS_TTL
//!       [i64 deletion timestamp, u32 local deletion time]             DELETION
//!   then for each column, ascending by id:
//!   u16 column id | u8 cell flags
//!     simple:  [i64 timestamp] [u32 local deletion time] [u32 ttl] u32 value bytes | value
//!     complex: u32 body bytes | [i64, u32 deletion] | cells: u8 flags, [i64] [u32] [u32],
//!              u32 path bytes | path | u32 value bytes | value
//! ```
//!
//! Integers are little-endian. A cell written with the row's own timestamp says so by a flag and
//! leaves its own out. `PLAIN` marks a row that can only be read as it is: nothing in it expires
//! or is deleted, so a read needs no clock.

mod check;

use bytes::{Bytes, BytesMut};
use schema::ColumnId;

use crate::clustering::Components;
use crate::{CellRef, Clustering, DeletionTime, Liveness, NO_DELETION_TIME};

const ROW_LIVENESS: u8 = 1;
const ROW_LIVENESS_TTL: u8 = 2;
const ROW_DELETION: u8 = 4;
const ROW_PLAIN: u8 = 8;

const CELL_COMPLEX: u8 = 1;
const CELL_ROW_TIMESTAMP: u8 = 2;
const CELL_ENDS: u8 = 4;
const CELL_EXPIRING: u8 = 8;
const CELL_COMPLEX_DELETION: u8 = 16;

/// An encoded row: clustering, liveness, deletion and cells. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Row(Bytes);

/// Bytes that are not a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row of {bytes} bytes is malformed at byte {offset}: {what}")]
pub struct RowError {
    /// Where reading stopped.
    pub offset: usize,
    /// Length of the whole.
    pub bytes: usize,
    /// What was being read.
    pub what: &'static str,
}

/// A column of a row, seen in place.
#[derive(Clone, Copy, Debug)]
pub struct ColumnRef<'a> {
    /// Which column.
    pub id: ColumnId,
    /// Its one cell, or its cells.
    pub data: ColumnData<'a>,
}

/// The cell or the cells of a column.
#[derive(Clone, Copy, Debug)]
pub enum ColumnData<'a> {
    /// One indivisible value.
    Simple(CellRef<'a>),
    /// A multi-cell collection or user type.
    Complex(ComplexRef<'a>),
}

/// A multi-cell column, seen in place.
#[derive(Clone, Copy, Debug)]
pub struct ComplexRef<'a> {
    /// Deletion of the whole collection (an overwrite leaves one just older than its cells).
    pub deletion: DeletionTime,
    cells: &'a [u8],
    row_timestamp: i64,
}

impl<'a> ComplexRef<'a> {
    /// Cells by path.
    pub fn cells(&self) -> impl Iterator<Item = CellRef<'a>> + Clone + 'a {
        Cells { reader: Reader { rest: self.cells }, row_timestamp: self.row_timestamp }
    }
}

impl Row {
    /// Checks bytes that came from a disk or another node.
    ///
    /// # Errors
    /// [`RowError`], where and what.
    pub fn from_encoded(encoded: Bytes) -> Result<Row, RowError> {
        check::check(&encoded)?;
        Ok(Row(encoded))
    }

    /// Trusts bytes that were checked or built before.
    pub(crate) fn trusted(encoded: Bytes) -> Row {
        Row(encoded)
    }

    /// Copies rows into one run of memory that the copies share: cheap to hand on, and no count is
    /// kept in the memory they came from.
    pub fn gather(rows: &[&Row]) -> Vec<Row> {
        let mut bytes = Vec::with_capacity(rows.iter().map(|row| row.0.len()).sum());
        for row in rows {
            bytes.extend_from_slice(&row.0);
        }
        let shared = Bytes::from(bytes);
        let mut start = 0;
        let copy = |row: &&Row| {
            let end = start + row.0.len();
            Row(shared.slice(std::mem::replace(&mut start, end)..end))
        };
        rows.iter().map(copy).collect()
    }

    /// The encoded bytes.
    pub fn as_encoded(&self) -> &Bytes {
        &self.0
    }

    /// Where the row stands in its partition; empty for a static row.
    pub fn clustering(&self) -> Clustering {
        Clustering::trusted(self.0.slice(4..4 + self.clustering_bytes()))
    }

    /// The encoded clustering, without a handle of its own.
    pub fn encoded_clustering(&self) -> &[u8] {
        &self.0[4..4 + self.clustering_bytes()]
    }

    /// Components of the clustering.
    pub fn clustering_components(&self) -> Components<'_> {
        Components::over(self.encoded_clustering())
    }

    fn clustering_bytes(&self) -> usize {
        Reader { rest: &self.0 }.u32() as usize
    }

    fn header(&self) -> (u8, Reader<'_>) {
        let mut reader = Reader { rest: &self.0 };
        reader.run();
        (reader.u8(), reader)
    }

    /// Does nothing in the row expire, and is nothing deleted?
    pub fn is_plain(&self) -> bool {
        self.header().0 & ROW_PLAIN != 0
    }

    /// Liveness of the row itself.
    pub fn liveness(&self) -> Liveness {
        let (flags, mut reader) = self.header();
        reader.liveness(flags)
    }

    /// Deletion of the row itself.
    pub fn deletion(&self) -> DeletionTime {
        let (flags, mut reader) = self.header();
        reader.liveness(flags);
        reader.deletion(flags & ROW_DELETION != 0)
    }

    /// Columns ascending by id.
    pub fn columns(&self) -> Columns<'_> {
        let (flags, mut reader) = self.header();
        let row_timestamp = reader.liveness(flags).timestamp;
        reader.deletion(flags & ROW_DELETION != 0);
        Columns { reader, row_timestamp }
    }

    /// The column of that id.
    pub fn column(&self, id: ColumnId) -> Option<ColumnData<'_>> {
        self.columns()
            .find(|column| column.id >= id)
            .filter(|column| column.id == id)
            .map(|column| column.data)
    }

    /// Has it neither liveness, nor deletion, nor cells?
    pub fn is_empty(&self) -> bool {
        self.liveness().is_none() && self.deletion().is_live() && self.columns().next().is_none()
    }
}

/// Columns of a row.
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    reader: Reader<'a>,
    row_timestamp: i64,
}

/// What a row has of a column that a reader asks for, without its times.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// No cell.
    Nothing,
    /// The value of its one cell.
    Value(&'a [u8]),
    /// The cells of a collection or user type.
    Cells(ComplexRef<'a>),
}

impl<'a> Columns<'a> {
    /// Goes on to a column, past those before it, and gives what a reader sees of it. Asked for columns
    /// ascending by id it finds them all.
    #[inline]
    pub fn seek(&mut self, id: ColumnId) -> Shown<'a> {
        while let Some(([low, high, flags], rest)) = self.reader.rest.split_first_chunk::<3>() {
            let found = ColumnId(u16::from_le_bytes([*low, *high]));
            if found > id {
                return Shown::Nothing;
            }
            let shown = if flags & CELL_COMPLEX == 0 {
                let mut reader = Reader { rest: &rest[times_bytes(*flags)..] };
                let value = reader.run();
                self.reader = reader;
                Shown::Value(value)
            } else {
                match self.next().map(|column| column.data) {
                    Some(ColumnData::Complex(cells)) => Shown::Cells(cells),
                    _ => Shown::Nothing,
                }
            };
            if found == id {
                return shown;
            }
        }
        Shown::Nothing
    }

    /// The next column with its bytes in the row.
    pub(crate) fn next_encoded(&mut self) -> (Option<ColumnRef<'a>>, &'a [u8]) {
        let before = self.reader.rest;
        let column = self.next();
        (column, &before[..before.len() - self.reader.rest.len()])
    }
}

impl<'a> Iterator for Columns<'a> {
    type Item = ColumnRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<ColumnRef<'a>> {
        if self.reader.is_at_end() {
            return None;
        }
        let id = ColumnId(self.reader.u16());
        let flags = self.reader.u8();
        let data = if flags & CELL_COMPLEX == 0 {
            ColumnData::Simple(self.reader.cell(flags, self.row_timestamp, false))
        } else {
            let body = self.reader.run();
            let mut reader = Reader { rest: body };
            let deletion = reader.deletion(flags & CELL_COMPLEX_DELETION != 0);
            ColumnData::Complex(ComplexRef {
                deletion,
                cells: reader.rest,
                row_timestamp: self.row_timestamp,
            })
        };
        Some(ColumnRef { id, data })
    }
}

/// Bytes of the times of a cell, which stand before its value.
#[inline]
fn times_bytes(flags: u8) -> usize {
    let timestamp = if flags & CELL_ROW_TIMESTAMP == 0 { 8 } else { 0 };
    timestamp + 4 * (usize::from(flags & CELL_ENDS != 0) + usize::from(flags & CELL_EXPIRING != 0))
}

#[derive(Clone)]
struct Cells<'a> {
    reader: Reader<'a>,
    row_timestamp: i64,
}

impl<'a> Iterator for Cells<'a> {
    type Item = CellRef<'a>;

    fn next(&mut self) -> Option<CellRef<'a>> {
        if self.reader.is_at_end() {
            return None;
        }
        let flags = self.reader.u8();
        Some(self.reader.cell(flags, self.row_timestamp, true))
    }
}

/// Reads bytes that [`check`] or [`RowBuilder`] vouched for; a panic here is a broken invariant.
#[derive(Clone, Debug)]
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) =
            self.rest.split_first_chunk::<N>().expect("an encoded row was checked when it came in");
        self.rest = rest;
        *taken
    }

    #[inline]
    fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    #[inline]
    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    #[inline]
    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    #[inline]
    fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.take())
    }

    #[inline]
    fn run(&mut self) -> &'a [u8] {
        let length = self.u32() as usize;
        let (run, rest) = self.rest.split_at(length);
        self.rest = rest;
        run
    }

    fn liveness(&mut self, flags: u8) -> Liveness {
        if flags & ROW_LIVENESS == 0 {
            return Liveness::NONE;
        }
        let timestamp = self.i64();
        if flags & ROW_LIVENESS_TTL == 0 {
            return Liveness::at(timestamp);
        }
        let ttl = self.u32();
        Liveness::expiring(timestamp, ttl, self.u32())
    }

    fn deletion(&mut self, present: bool) -> DeletionTime {
        if !present {
            return DeletionTime::LIVE;
        }
        let timestamp = self.i64();
        DeletionTime { timestamp, local_deletion_time: self.u32() }
    }

    #[inline]
    fn cell(&mut self, flags: u8, row_timestamp: i64, has_path: bool) -> CellRef<'a> {
        let timestamp = if flags & CELL_ROW_TIMESTAMP != 0 { row_timestamp } else { self.i64() };
        let local_deletion_time = if flags & CELL_ENDS != 0 { self.u32() } else { NO_DELETION_TIME };
        let ttl = if flags & CELL_EXPIRING != 0 { self.u32() } else { 0 };
        let path = if has_path { self.run() } else { b"" };
        CellRef { timestamp, ttl, local_deletion_time, path, value: self.run() }
    }
}

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

    /// The same in memory that was used before ([`RowBuilder::finish_into`]).
    pub fn reusing(
        mut bytes: Vec<u8>,
        clustering: &[u8],
        liveness: Liveness,
        deletion: DeletionTime,
    ) -> Self {
        bytes.clear();
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
            self.push_usual(id, cell.value);
        } else {
            self.start_column(id);
            self.push_cell(cell, false);
        }
        self
    }

    /// What most cells are: written with the row, to stay. Its head is written in one go.
    #[inline]
    fn push_usual(&mut self, id: ColumnId, value: &[u8]) {
        assert!(self.last_id.is_none_or(|last| last < id), "columns of a row must ascend by id");
        self.last_id = Some(id);
        let [id_low, id_high] = id.0.to_le_bytes();
        let length = u32::try_from(value.len()).expect("a value is smaller than a frame");
        let [a, b, c, d] = length.to_le_bytes();
        self.bytes.reserve(7 + value.len());
        self.bytes.extend_from_slice(&[id_low, id_high, CELL_ROW_TIMESTAMP, a, b, c, d]);
        self.bytes.extend_from_slice(value);
    }

    /// Adds a column as it is encoded in a plain row of the same liveness.
    pub(crate) fn encoded_column(&mut self, id: ColumnId, encoded: &[u8]) {
        assert!(self.last_id.is_none_or(|last| last < id), "columns of a row must ascend by id");
        self.last_id = Some(id);
        self.bytes.extend_from_slice(encoded);
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

    /// The row.
    pub fn finish(mut self) -> Row {
        self.mark();
        Row(self.bytes.into())
    }

    /// The row, in memory shared with those before it, so that each needs none of its own; and the
    /// builder's memory for the next one. For rows that will not outlive each other by much. When the
    /// shared memory is used up, as much as `likely_bytes` is taken for this row and the next ones.
    pub fn finish_into(mut self, shared: &mut BytesMut, likely_bytes: usize) -> (Row, Vec<u8>) {
        self.mark();
        if shared.capacity() < self.bytes.len() {
            *shared = BytesMut::with_capacity(self.bytes.len().max(likely_bytes));
        }
        shared.extend_from_slice(&self.bytes);
        (Row(shared.split().freeze()), self.bytes)
    }

    fn mark(&mut self) {
        if self.is_plain {
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
