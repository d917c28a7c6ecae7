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

use bytes::Bytes;
use rows::{Bound, Slice};
use stdx::cursor::Cursor;
use stdx::vint;
use uuid::Uuid;

use super::header::{read_types, write_types};
use super::{EstimatedHistogram, TombstoneHistogram};
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

    pub(crate) fn read(input: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let histogram = |input: &mut Cursor<'_>| -> Result<EstimatedHistogram, ParseError> {
            EstimatedHistogram::read(input)?.ok_or(ParseError::Malformed("histogram"))
        };
        let partition_bytes = histogram(input)?;
        let cells_per_partition = histogram(input)?;
        input.skip(12)?;
        let (min_timestamp, max_timestamp) = (input.i64()?, input.i64()?);
        let (min_local_deletion_time, max_local_deletion_time) = (input.u32()?, input.u32()?);
        let (min_ttl, max_ttl) = (input.u32()?, input.u32()?);
        let compression_ratio = f64::from_bits(input.u64()?);
        let tombstones =
            TombstoneHistogram::read(input)?.ok_or(ParseError::Malformed("tombstone histogram"))?;
        let level = input.u32()?;
        let repaired_at = input.u64()?;
        let clustering_types = read_types(input)?;
        let lengths = clustering_lengths(&clustering_types)?;
        let covered = Slice { start: read_bound(&lengths, input)?, end: read_bound(&lengths, input)? };
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
        let has_partition_deletions = input.u8()? != 0;
        let first_key = Bytes::copy_from_slice(input.vint_bytes()?);
        let last_key = Bytes::copy_from_slice(input.vint_bytes()?);
        input.skip(8)?;
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
