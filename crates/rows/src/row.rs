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

mod builder;
mod check;
mod in_place;
mod missing;

use bytes::{Bytes, BytesMut};
use schema::ColumnId;

use crate::clustering::Components;
use crate::{CellRef, Clustering, DeletionTime, Liveness, NO_DELETION_TIME};

pub use builder::RowBuilder;

const ROW_LIVENESS: u8 = 1;
const ROW_LIVENESS_TTL: u8 = 2;
const ROW_DELETION: u8 = 4;
const ROW_PLAIN: u8 = 8;

/// What saves blocks of memory costs bytes, held by the row next to them: worth it up to here.
pub(crate) const SMALL_ROW_BYTES_MAX: usize = 256;

/// Copying larger rows costs more than counting who has them.
pub const GATHERED_ROW_BYTES_MAX: usize = 1 << 10;

/// To read, merge or filter a row of collections of so many bytes takes about a millisecond.
pub const LARGE_ROW_BYTES: usize = 128 << 10;

/// Of memory that a row stays in, at most one byte in so many is not the row's.
const UNUSED_PART: usize = 8;

const CELL_COMPLEX: u8 = 1;
const CELL_ROW_TIMESTAMP: u8 = 2;
const CELL_ENDS: u8 = 4;
const CELL_EXPIRING: u8 = 8;
const CELL_COMPLEX_DELETION: u8 = 16;

const _: () = assert!(ROW_LIVENESS | ROW_LIVENESS_TTL | ROW_DELETION | ROW_PLAIN == 15, "a bit for each");
const _: () = {
    let all = CELL_COMPLEX | CELL_ROW_TIMESTAMP | CELL_ENDS | CELL_EXPIRING | CELL_COMPLEX_DELETION;
    assert!(all == 31, "a bit for each");
};
const _: () =
    assert!(SMALL_ROW_BYTES_MAX <= GATHERED_ROW_BYTES_MAX, "what is copied one by one is gathered, too");
const _: () = assert!(GATHERED_ROW_BYTES_MAX < LARGE_ROW_BYTES, "large rows are not gathered");

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

impl ColumnRef<'_> {
    /// Does the deletion leave nothing of it?
    fn is_hidden(self, deletion: DeletionTime) -> bool {
        let is_deleted_later = match self.data {
            ColumnData::Simple(_) => false,
            ColumnData::Complex(complex) => complex.deletion.supersedes(deletion),
        };
        deletion.deletes(self.latest()) && !is_deleted_later
    }

    /// When it was written or deleted last.
    fn latest(self) -> i64 {
        match self.data {
            ColumnData::Simple(cell) => cell.timestamp,
            ColumnData::Complex(complex) => {
                complex.cells().map(|cell| cell.timestamp).fold(complex.deletion.timestamp, i64::max)
            }
        }
    }
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
    /// Bytes of the cells as they are encoded.
    pub fn byte_count(&self) -> usize {
        self.cells.len()
    }

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

    /// Copies rows into one run of memory that the copies share: cheap to hand on, and no count is kept in the memory
    /// they came from. Rows of more than [`GATHERED_ROW_BYTES_MAX`] stay where they are: whoever keeps one of the
    /// others keeps the run.
    pub fn gather(rows: &[&Row]) -> Vec<Row> {
        let is_copied = |row: &Row| row.0.len() <= GATHERED_ROW_BYTES_MAX;
        let copied = || rows.iter().filter(|row| is_copied(row));
        let mut bytes = Vec::with_capacity(copied().map(|row| row.0.len()).sum());
        copied().for_each(|row| bytes.extend_from_slice(&row.0));
        let run = Bytes::from(bytes);
        let mut start = 0;
        let take = |row: &&Row| {
            if !is_copied(row) {
                return (*row).clone();
            }
            let end = start + row.0.len();
            Row(run.slice(std::mem::replace(&mut start, end)..end))
        };
        rows.iter().map(take).collect()
    }

    /// The same row at the end of memory that it shares with what was put there before.
    pub fn copy_into(&self, memory: &mut BytesMut) -> Row {
        memory.extend_from_slice(&self.0);
        Row(memory.split().freeze())
    }

    /// Is it so small that it is rather copied than kept in the memory it came with?
    pub fn is_small(&self) -> bool {
        self.0.len() <= SMALL_ROW_BYTES_MAX
    }

    /// Is it so large, and by its collections, that to work on it keeps a thread for long? Large values are copied at
    /// once.
    pub fn is_large(&self) -> bool {
        let is_of_many_cells = |column: ColumnRef<'_>| matches!(column.data, ColumnData::Complex(_));
        self.0.len() >= LARGE_ROW_BYTES && self.columns().any(is_of_many_cells)
    }

    /// The row for keeping long, when so many bytes are held with it where it lies: there, if they are hardly more
    /// than the row, else in memory of its own.
    pub fn kept(&self, held_bytes: usize) -> Row {
        let row_bytes = self.0.len();
        if self.is_small() || held_bytes > row_bytes + row_bytes / UNUSED_PART {
            self.copied()
        } else {
            self.clone()
        }
    }

    /// The same row in memory of its own.
    pub fn copied(&self) -> Row {
        Row(Bytes::copy_from_slice(&self.0))
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

    /// Does this row, written later, leave nothing of the other to be seen? `false` may be wrong: it is told
    /// only of rows that were each written by one INSERT that set single cells.
    pub(crate) fn overwrites(&self, other: &Row) -> bool {
        let (mine, theirs) = (self.header().0, other.header().0);
        let is_later = mine & theirs & (ROW_PLAIN | ROW_LIVENESS) == ROW_PLAIN | ROW_LIVENESS
            && self.liveness().timestamp > other.liveness().timestamp
            && self.encoded_clustering() == other.encoded_clustering();
        if !is_later {
            return false;
        }
        let (mut ids, mut others) = (self.columns().of_one_write(), other.columns().of_one_write());
        // Both ascend; a column that was written otherwise ends them with `None`.
        others.all(|id| id.is_some() && ids.any(|mine| mine == id)) && ids.all(|id| id.is_some())
    }

    /// The same of any rows, by looking at every cell: is each cell of the other older than what this one has in its
    /// place?
    pub fn replaces(&self, other: &Row) -> bool {
        let (deletion, liveness) = (self.deletion(), other.liveness());
        if self.encoded_clustering() != other.encoded_clustering() || other.deletion().supersedes(deletion) {
            return false;
        }
        if !(liveness.is_none()
            || deletion.deletes(liveness.timestamp)
            || self.liveness().timestamp > liveness.timestamp)
        {
            return false;
        }
        let mut mine = self.columns();
        other.columns().all(|theirs| {
            let same = mine.by_ref().find(|column| column.id >= theirs.id);
            match same.filter(|column| column.id == theirs.id).map(|column| column.data) {
                Some(ColumnData::Simple(cell)) => theirs.latest() < cell.timestamp,
                Some(ColumnData::Complex(complex)) => theirs.is_hidden(complex.deletion.max(deletion)),
                None => theirs.is_hidden(deletion),
            }
        })
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

/// Columns next to each other, as they are encoded in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedRun<'a> {
    first: ColumnId,
    last: ColumnId,
    /// Of the row, which cells mean that have no timestamp of their own.
    row_timestamp: i64,
    bytes: &'a [u8],
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
        // Most often it is the next one, and written with its row.
        if let Some(([low, high, CELL_ROW_TIMESTAMP, a, b, c, d], rest)) =
            self.reader.rest.split_first_chunk::<7>()
            && ColumnId(u16::from_le_bytes([*low, *high])) == id
        {
            let (value, rest) = rest.split_at(u32::from_le_bytes([*a, *b, *c, *d]) as usize);
            self.reader.rest = rest;
            return Shown::Value(value);
        }
        self.seek_far(id)
    }

    fn seek_far(&mut self, id: ColumnId) -> Shown<'a> {
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

    /// The ids of single cells that were written with the row; `None` for any other column.
    fn of_one_write(self) -> impl Iterator<Item = Option<ColumnId>> + 'a {
        let mut rest = self.reader.rest;
        std::iter::from_fn(move || {
            let ([low, high, flags], behind) = rest.split_first_chunk::<3>()?;
            if *flags != CELL_ROW_TIMESTAMP {
                rest = &[];
                return Some(None);
            }
            let mut reader = Reader { rest: behind };
            reader.run();
            rest = reader.rest;
            Some(Some(ColumnId(u16::from_le_bytes([*low, *high]))))
        })
    }

    /// Which column is next.
    #[inline]
    pub(crate) fn next_id(&self) -> Option<ColumnId> {
        self.reader.rest.first_chunk::<2>().map(|id| ColumnId(u16::from_le_bytes(*id)))
    }

    /// Passes the columns before that one, or all; they must be some.
    pub(crate) fn pass_before(&mut self, limit: Option<ColumnId>) -> EncodedRun<'a> {
        let before = self.reader.rest;
        let first = self.next_id().unwrap_or(ColumnId(0));
        let mut last = first;
        while let Some(id) = self.next_id().filter(|id| limit.is_none_or(|limit| *id < limit)) {
            last = id;
            self.pass();
        }
        let bytes = &before[..before.len() - self.reader.rest.len()];
        EncodedRun { first, last, row_timestamp: self.row_timestamp, bytes }
    }

    /// Passes the next column, which there must be; as it is encoded.
    fn pass(&mut self) -> &'a [u8] {
        let before = self.reader.rest;
        self.reader.u16();
        let flags = self.reader.u8();
        let times = if flags & CELL_COMPLEX == 0 { times_bytes(flags) } else { 0 };
        self.reader.rest = &self.reader.rest[times..];
        self.reader.run();
        &before[..before.len() - self.reader.rest.len()]
    }
}

impl<'a> Iterator for Columns<'a> {
    type Item = ColumnRef<'a>;

    // A call for each column would cost a write a quarter more in the memtable.
    #[inline(always)]
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
