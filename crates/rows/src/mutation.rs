//! A change of one partition of one table, encoded once.
//!
//! ```text
//!   16 table id | u16 key bytes | key | u8 flags
//!   [i64 timestamp, u32 local deletion time]       1: partition deletion
//!   [u32 bytes | static row]                       2: static row
//!   u32 count | (u32 bytes | row)*                 rows, in any order
//!   u32 count | (start, end, i64, u32)*            range tombstones; a bound is u8 kind, u32 bytes | prefix
//! ```
//!
//! Integers are little-endian. These bytes are what the commit log appends and what another
//! replica will receive; the key and the rows handed out share their memory.

mod memory;

use std::ops::Range;

use bytes::Bytes;
use schema::TableId;
use smallvec::SmallVec;
use types::Token;

use crate::{
    Bound, BoundKind, Clustering, ClusteringError, DeletionTime, PartitionKey, RangeTombstone, Row,
    RowBuilder, RowError, Slice,
};

pub use memory::MutationMemory;

const PARTITION_DELETION: u8 = 1;
const STATIC_ROW: u8 = 2;
const _: () = assert!(PARTITION_DELETION & STATIC_ROW == 0, "a bit for each");

/// About what is in a mutation beside its key, rows and ranges.
const HEAD_BYTES: usize = 64;

/// A change of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// Table it changes.
    pub table: TableId,
    /// Partition it changes.
    pub key: PartitionKey,
    /// Deletion of the whole partition, or live.
    pub deletion: DeletionTime,
    /// Change of the static row.
    pub static_row: Option<Row>,
    /// Changed rows: one of most writes, which needs no memory for the list.
    pub rows: SmallVec<[Row; 1]>,
    /// Range tombstones, as written; they may overlap.
    pub ranges: Vec<RangeTombstone>,
    encoded: Bytes,
}

/// Bytes that are not a mutation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum MutationError {
    #[error("mutation of {bytes} bytes is cut off at byte {offset}, reading {what}")]
    CutOff { offset: usize, bytes: usize, what: &'static str },
    #[error("mutation has {extra} bytes too many")]
    TooLong { extra: usize },
    #[error("mutation has an unknown {what}: {value}")]
    Unknown { what: &'static str, value: u8 },
    #[error("read row of mutation: {0}")]
    Row(#[from] RowError),
    #[error("read range tombstone of mutation: {0}")]
    Clustering(#[from] ClusteringError),
}

/// Puts a [`Mutation`] together.
#[derive(Debug)]
pub struct MutationBuilder {
    table: TableId,
    key: PartitionKey,
    deletion: DeletionTime,
    static_row: Option<Row>,
    rows: Vec<Row>,
    ranges: Vec<RangeTombstone>,
}

impl MutationBuilder {
    /// A change of that partition; changes nothing yet.
    pub fn new(table: TableId, key: PartitionKey) -> Self {
        let deletion = DeletionTime::LIVE;
        MutationBuilder { table, key, deletion, static_row: None, rows: Vec::new(), ranges: Vec::new() }
    }

    /// Deletes the partition.
    pub fn partition_deletion(&mut self, deletion: DeletionTime) -> &mut Self {
        self.deletion = self.deletion.max(deletion);
        self
    }

    /// Changes the static row.
    ///
    /// # Panics
    /// When it was set before: merge first.
    pub fn static_row(&mut self, row: Row) -> &mut Self {
        assert!(self.static_row.is_none(), "one static row a mutation");
        self.static_row = Some(row);
        self
    }

    /// Changes a row.
    pub fn row(&mut self, row: Row) -> &mut Self {
        self.rows.push(row);
        self
    }

    /// Deletes a range of rows.
    pub fn range(&mut self, tombstone: RangeTombstone) -> &mut Self {
        self.ranges.push(tombstone);
        self
    }

    /// Encodes it.
    pub fn finish(self) -> Mutation {
        let rows_bytes: usize =
            self.rows.iter().chain(&self.static_row).map(|row| row.as_encoded().len() + 4).sum();
        let mut out = Vec::with_capacity(HEAD_BYTES + self.key.bytes.len() + rows_bytes);
        push_head(&mut out, self.table, &self.key.bytes);
        let mut flags = 0;
        if !self.deletion.is_live() {
            flags |= PARTITION_DELETION;
        }
        if self.static_row.is_some() {
            flags |= STATIC_ROW;
        }
        out.push(flags);
        if !self.deletion.is_live() {
            push_deletion(&mut out, self.deletion);
        }
        let mut places = Vec::with_capacity(self.rows.len() + 1);
        if let Some(row) = &self.static_row {
            places.push(push_run(&mut out, row.as_encoded()));
        }
        push_count(&mut out, self.rows.len());
        for row in &self.rows {
            places.push(push_run(&mut out, row.as_encoded()));
        }
        push_count(&mut out, self.ranges.len());
        for range in &self.ranges {
            push_bound(&mut out, &range.slice.start);
            push_bound(&mut out, &range.slice.end);
            push_deletion(&mut out, range.deletion);
        }
        // The rows are handed out as parts of these bytes, so that only one buffer stays in memory.
        let encoded = Bytes::from(out);
        let mut places = places.into_iter().map(|place| Row::trusted(encoded.slice(place)));
        let static_row = self.static_row.as_ref().and_then(|_| places.next());
        let rows: SmallVec<[Row; 1]> = places.collect();
        assert_eq!(rows.len(), self.rows.len(), "every row is encoded");
        assert_eq!(static_row.is_some(), self.static_row.is_some(), "so is the static one");
        let Self { table, key, deletion, ranges, .. } = self;
        Mutation { table, key, deletion, static_row, rows, ranges, encoded }.same_when_read()
    }
}

impl Mutation {
    /// A change of one row and nothing else, which `write` writes to where it will lie: what a
    /// [`MutationBuilder`] makes of that row, with one buffer. The key comes with its token; `row_bytes` is about how
    /// long the row will be.
    pub fn of_row(
        table: TableId,
        (token, key): (Token, &[u8]),
        row_bytes: usize,
        write: impl FnOnce(Vec<u8>) -> RowBuilder,
    ) -> Mutation {
        debug_assert_eq!(token, Token::of(key), "the token of its key");
        let out = Vec::with_capacity(HEAD_BYTES + key.len() + row_bytes);
        let (out, place) = write_row(out, table, key, write);
        Mutation::at(table, token, Bytes::from(out), place)
    }

    /// That of one row which is encoded in these bytes.
    fn at(table: TableId, token: Token, encoded: Bytes, place: RowPlace) -> Mutation {
        let key = PartitionKey { token, bytes: encoded.slice(place.key) };
        let mut rows = SmallVec::new();
        rows.push(Row::trusted(encoded.slice(place.row)));
        let deletion = DeletionTime::LIVE;
        Mutation { table, key, deletion, static_row: None, rows, ranges: Vec::new(), encoded }
            .same_when_read()
    }

    /// It, seen to be what a replay of the log makes of its bytes. Not in a release: to read them is as much work as to
    /// have written them.
    fn same_when_read(self) -> Mutation {
        debug_assert_eq!(
            Mutation::from_encoded(self.encoded.clone()).as_ref(),
            Ok(&self),
            "what is written is read as the same"
        );
        self
    }

    /// The encoded bytes.
    pub fn as_encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// Reads what [`MutationBuilder::finish`] wrote, checking everything.
    ///
    /// # Errors
    /// [`MutationError`], where and what.
    pub fn from_encoded(encoded: Bytes) -> Result<Mutation, MutationError> {
        let mut reader = Reader { bytes: &encoded, offset: 0 };
        let id = reader.take::<16>("table id")?;
        let key_bytes = usize::from(u16::from_le_bytes(reader.take("key length")?));
        let key = reader.run(key_bytes, "partition key")?;
        let [flags] = reader.take("flags")?;
        if flags & !(PARTITION_DELETION | STATIC_ROW) != 0 {
            return Err(MutationError::Unknown { what: "flag", value: flags });
        }
        let deletion = if flags & PARTITION_DELETION != 0 { reader.deletion()? } else { DeletionTime::LIVE };
        let static_row = if flags & STATIC_ROW != 0 { Some(reader.row()?) } else { None };
        let row_count = reader.count("row count", 4)?;
        let mut rows = SmallVec::with_capacity(row_count);
        for _ in 0..row_count {
            rows.push(reader.row()?);
        }
        let range_count = reader.count("range tombstone count", 22)?;
        let mut ranges = Vec::with_capacity(range_count);
        for _ in 0..range_count {
            let slice = Slice { start: reader.bound()?, end: reader.bound()? };
            ranges.push(RangeTombstone { slice, deletion: reader.deletion()? });
        }
        if reader.offset != encoded.len() {
            return Err(MutationError::TooLong { extra: encoded.len() - reader.offset });
        }
        let table = TableId(uuid::Uuid::from_bytes(id));
        Ok(Mutation { table, key: PartitionKey::new(key), deletion, static_row, rows, ranges, encoded })
    }
}

/// Where the key and the only row of an encoded mutation are.
struct RowPlace {
    key: Range<usize>,
    row: Range<usize>,
}

/// Encodes a mutation of one row behind nothing; and where its parts are.
fn write_row(
    mut out: Vec<u8>,
    table: TableId,
    key: &[u8],
    write: impl FnOnce(Vec<u8>) -> RowBuilder,
) -> (Vec<u8>, RowPlace) {
    let key = push_head(&mut out, table, key);
    out.push(0);
    push_count(&mut out, 1);
    push_count(&mut out, 0);
    let row_start = out.len();
    let mut out = write(out).finish_bytes();
    let row = row_start..out.len();
    let length = u32::try_from(row.len()).expect("a mutation is smaller than a frame");
    assert!(!row.is_empty(), "a row is written behind what was there");
    out[row_start - 4..row_start].copy_from_slice(&length.to_le_bytes());
    push_count(&mut out, 0);
    (out, RowPlace { key, row })
}

/// And where the key is.
fn push_head(out: &mut Vec<u8>, table: TableId, key: &[u8]) -> Range<usize> {
    out.extend_from_slice(table.0.as_bytes());
    let key_bytes = u16::try_from(key.len()).expect("keys are checked to be at most KEY_BYTES_MAX");
    out.extend_from_slice(&key_bytes.to_le_bytes());
    let start = out.len();
    out.extend_from_slice(key);
    start..out.len()
}

fn push_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("a mutation is smaller than a frame");
    out.extend_from_slice(&count.to_le_bytes());
}

fn push_run(out: &mut Vec<u8>, run: &[u8]) -> std::ops::Range<usize> {
    push_count(out, run.len());
    let start = out.len();
    out.extend_from_slice(run);
    start..out.len()
}

fn push_deletion(out: &mut Vec<u8>, deletion: DeletionTime) {
    out.extend_from_slice(&deletion.timestamp.to_le_bytes());
    out.extend_from_slice(&deletion.local_deletion_time.to_le_bytes());
}

fn push_bound(out: &mut Vec<u8>, bound: &Bound) {
    out.push(match bound.kind {
        BoundKind::InclusiveStart => 0,
        BoundKind::ExclusiveStart => 1,
        BoundKind::InclusiveEnd => 2,
        BoundKind::ExclusiveEnd => 3,
    });
    push_run(out, bound.prefix.as_encoded());
}

struct Reader<'a> {
    bytes: &'a Bytes,
    offset: usize,
}

impl Reader<'_> {
    fn run(&mut self, length: usize, what: &'static str) -> Result<Bytes, MutationError> {
        if self.bytes.len() - self.offset < length {
            return Err(MutationError::CutOff { offset: self.offset, bytes: self.bytes.len(), what });
        }
        let run = self.bytes.slice(self.offset..self.offset + length);
        self.offset += length;
        Ok(run)
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], MutationError> {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let cut_off = MutationError::CutOff { offset: self.offset, bytes: self.bytes.len(), what };
        let taken = rest.first_chunk::<N>().ok_or(cut_off)?;
        self.offset += N;
        Ok(*taken)
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, MutationError> {
        Ok(u32::from_le_bytes(self.take(what)?))
    }

    /// A count that the rest of the bytes can hold, at `least_bytes` each.
    fn count(&mut self, what: &'static str, least_bytes: usize) -> Result<usize, MutationError> {
        let offset = self.offset;
        let count = self.u32(what)? as usize;
        if count > (self.bytes.len() - self.offset) / least_bytes {
            return Err(MutationError::CutOff { offset, bytes: self.bytes.len(), what });
        }
        Ok(count)
    }

    fn row(&mut self) -> Result<Row, MutationError> {
        let length = self.u32("row length")? as usize;
        Ok(Row::from_encoded(self.run(length, "row")?)?)
    }

    fn deletion(&mut self) -> Result<DeletionTime, MutationError> {
        let timestamp = i64::from_le_bytes(self.take("deletion timestamp")?);
        Ok(DeletionTime { timestamp, local_deletion_time: self.u32("local deletion time")? })
    }

    fn bound(&mut self) -> Result<Bound, MutationError> {
        let [kind] = self.take("bound kind")?;
        let kind = match kind {
            0 => BoundKind::InclusiveStart,
            1 => BoundKind::ExclusiveStart,
            2 => BoundKind::InclusiveEnd,
            3 => BoundKind::ExclusiveEnd,
            value => return Err(MutationError::Unknown { what: "bound kind", value }),
        };
        let length = self.u32("bound length")? as usize;
        Ok(Bound {
            kind,
            prefix: Clustering::from_encoded(Bytes::copy_from_slice(&self.run(length, "bound")?))?,
        })
    }
}
