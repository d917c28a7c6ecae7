//! The stats component: what is known of the rows of a table file.
//!
//! ```text
//!   histogram of partition bytes | histogram of cells per partition
//!   commit log position: none | i64 least, greatest timestamp | u32 least, greatest local deletion
//!   time | i32 least, greatest TTL | f64 compression ratio | tombstone histogram
//!   i32 level | i64 repaired at | clustering types | covered slice: two bounds
//!   u8 legacy counter shards | i64 columns set | i64 rows
//!   commit log position: none | i32 count of commit log intervals: 0
//!   u8 [16 bytes] pending repair | u8 transient | u8 [16 bytes] originating host: none
//!   u8 has partition deletions | first key | last key | f64 token space coverage: not a number
//! ```
//!
//! `oa` has the same. `nb` ends behind the originating host; its tombstone histogram is of `f64` and
//! `u64`, and in the place of types and slice it has two lists of clustering values, least and greatest.

use bytes::Bytes;
use rows::{Bound, NO_DELETION_TIME, Slice};
use stdx::cursor::Cursor;
use stdx::vint;
use uuid::Uuid;

use super::header::{read_types, write_types};
use super::{EstimatedHistogram, TombstoneHistogram};
use crate::Version;
use crate::data::{ParseError, fixed_bytes, read_bound, write_bound};

/// The content of the stats component.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stats {
    pub(crate) partition_bytes: EstimatedHistogram,
    pub(crate) cells_per_partition: EstimatedHistogram,
    pub(crate) min_timestamp: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) min_local_deletion_time: u32,
    pub(crate) max_local_deletion_time: u32,
    pub(crate) min_ttl: u32,
    pub(crate) max_ttl: u32,
    pub(crate) compression_ratio: f64,
    pub(crate) tombstones: TombstoneHistogram,
    pub(crate) level: u32,
    pub(crate) repaired_at: u64,
    pub(crate) clustering_types: Vec<String>,
    pub(crate) covered: Slice,
    pub(crate) column_count: u64,
    pub(crate) row_count: u64,
    pub(crate) pending_repair: Option<Uuid>,
    pub(crate) has_partition_deletions: bool,
    pub(crate) first_key: Bytes,
    pub(crate) last_key: Bytes,
}

impl Stats {
    pub(crate) fn write(&self, clustering: &[Option<usize>], out: &mut Vec<u8>) -> Result<(), &'static str> {
        self.partition_bytes.write(out);
        self.cells_per_partition.write(out);
        write_no_position(out);
        out.extend_from_slice(&self.min_timestamp.to_be_bytes());
        out.extend_from_slice(&self.max_timestamp.to_be_bytes());
        for value in [self.min_local_deletion_time, self.max_local_deletion_time, self.min_ttl, self.max_ttl]
        {
            out.extend_from_slice(&value.to_be_bytes());
        }
        out.extend_from_slice(&self.compression_ratio.to_be_bytes());
        self.tombstones.write(out);
        out.extend_from_slice(&self.level.to_be_bytes());
        out.extend_from_slice(&self.repaired_at.to_be_bytes());
        write_types(&self.clustering_types, out);
        write_bound(clustering, &self.covered.start, out)?;
        write_bound(clustering, &self.covered.end, out)?;
        out.push(0);
        out.extend_from_slice(&self.column_count.to_be_bytes());
        out.extend_from_slice(&self.row_count.to_be_bytes());
        write_no_position(out);
        out.extend_from_slice(&0u32.to_be_bytes());
        out.push(u8::from(self.pending_repair.is_some()));
        out.extend(self.pending_repair.iter().flat_map(|id| id.into_bytes()));
        out.push(0);
        out.push(0);
        out.push(u8::from(self.has_partition_deletions));
        for key in [&self.first_key, &self.last_key] {
            vint::write_unsigned(key.len() as u64, out);
            out.extend_from_slice(key);
        }
        out.extend_from_slice(&f64::NAN.to_be_bytes());
        Ok(())
    }

    /// Reads those of a file of that version, up to the level; gives the place of the level.
    pub(crate) fn level_place(version: Version, bytes: &[u8]) -> Result<usize, ParseError> {
        let mut input = Cursor::new(bytes);
        for _ in 0..2 {
            EstimatedHistogram::read(&mut input)?.ok_or(ParseError::Malformed("histogram"))?;
        }
        input.skip(12 + 8 + 8 + 4 + 4 + 4 + 4 + 8)?;
        read_tombstones(version, &mut input)?;
        Ok(input.position())
    }

    /// The place of the pending repair.
    pub(crate) fn pending_repair_place(version: Version, bytes: &[u8]) -> Result<usize, ParseError> {
        let mut input = Cursor::new(bytes);
        input.skip(Self::level_place(version, bytes)?)?;
        input.skip(4 + 8)?;
        read_covered(version, &mut input)?;
        input.skip(1 + 8 + 8 + 12)?;
        for _ in 0..input.u32()? {
            input.skip(24)?;
        }
        Ok(input.position())
    }

    pub(crate) fn read(version: Version, input: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let histogram = |input: &mut Cursor<'_>| -> Result<EstimatedHistogram, ParseError> {
            EstimatedHistogram::read(input)?.ok_or(ParseError::Malformed("histogram"))
        };
        let partition_bytes = histogram(input)?;
        let cells_per_partition = histogram(input)?;
        input.skip(12)?;
        let (min_timestamp, max_timestamp) = (input.i64()?, input.i64()?);
        let (min_local_deletion_time, max_local_deletion_time) =
            (read_time(version, input)?, read_time(version, input)?);
        let (min_ttl, max_ttl) = (input.u32()?, input.u32()?);
        let compression_ratio = f64::from_bits(input.u64()?);
        let tombstones = read_tombstones(version, input)?;
        let level = input.u32()?;
        let repaired_at = input.u64()?;
        let (clustering_types, covered) = read_covered(version, input)?;
        input.u8()?;
        let (column_count, row_count) = (input.u64()?, input.u64()?);
        input.skip(12)?;
        for _ in 0..input.u32()? {
            input.skip(24)?;
        }
        let id = |input: &mut Cursor<'_>| -> Result<Option<Uuid>, ParseError> {
            Ok(if input.u8()? != 0 { Some(Uuid::from_bytes(input.array()?)) } else { None })
        };
        let pending_repair = id(input)?;
        input.u8()?;
        id(input)?;
        let mut has_partition_deletions = min_local_deletion_time != NO_DELETION_TIME;
        let (mut first_key, mut last_key) = (Bytes::new(), Bytes::new());
        if version.has_unsigned_times() {
            has_partition_deletions = input.u8()? != 0;
            first_key = Bytes::copy_from_slice(input.vint_bytes()?);
            last_key = Bytes::copy_from_slice(input.vint_bytes()?);
            input.skip(8)?;
        }
        Ok(Stats {
            partition_bytes,
            cells_per_partition,
            min_timestamp,
            max_timestamp,
            min_local_deletion_time,
            max_local_deletion_time,
            min_ttl,
            max_ttl,
            compression_ratio,
            tombstones,
            level,
            repaired_at,
            clustering_types,
            covered,
            column_count,
            row_count,
            pending_repair,
            has_partition_deletions,
            first_key,
            last_key,
        })
    }

    /// Does the covered slice hold nothing (no rows, only partition deletions and static rows)?
    pub(crate) fn nothing_covered() -> Slice {
        use rows::{BoundKind, Clustering};
        Slice {
            start: Bound { kind: BoundKind::ExclusiveStart, prefix: Clustering::EMPTY },
            end: Bound { kind: BoundKind::ExclusiveEnd, prefix: Clustering::EMPTY },
        }
    }
}

/// A local deletion time; `nb` has a number of its own for none.
fn read_time(version: Version, input: &mut Cursor<'_>) -> Result<u32, ParseError> {
    let time = input.u32()?;
    let is_none = !version.has_unsigned_times() && time == i32::MAX as u32;
    Ok(if is_none { NO_DELETION_TIME } else { time })
}

fn read_tombstones(version: Version, input: &mut Cursor<'_>) -> Result<TombstoneHistogram, ParseError> {
    let found = if version.has_unsigned_times() {
        TombstoneHistogram::read(input)?
    } else {
        TombstoneHistogram::read_of_nb(input)?
    };
    found.ok_or(ParseError::Malformed("tombstone histogram"))
}

/// Clustering types and the slice of what is in the file. `nb` has the least and greatest values
/// without their types: it counts as covering everything.
fn read_covered(version: Version, input: &mut Cursor<'_>) -> Result<(Vec<String>, Slice), ParseError> {
    if version.has_unsigned_times() {
        let types = read_types(input)?;
        let lengths = clustering_lengths(&types)?;
        let covered = Slice { start: read_bound(&lengths, input)?, end: read_bound(&lengths, input)? };
        return Ok((types, covered));
    }
    for _ in 0..2 {
        for _ in 0..input.u32()? {
            let length = usize::from(input.u16()?);
            input.skip(length)?;
        }
    }
    Ok((Vec::new(), Slice { start: Bound::BOTTOM, end: Bound::TOP }))
}

/// "No position": segment -1 at 0.
fn write_no_position(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1i64).to_be_bytes());
    out.extend_from_slice(&0i32.to_be_bytes());
}

fn clustering_lengths(names: &[String]) -> Result<Vec<Option<usize>>, ParseError> {
    let length = |name: &String| match types::marshal::parse(name) {
        Ok(types::marshal::MarshalType::Plain(of) | types::marshal::MarshalType::Reversed(of)) => {
            Ok(fixed_bytes(&of))
        }
        _ => Err(ParseError::Malformed("clustering type")),
    };
    names.iter().map(length).collect()
}
