//! A [`ReadCommand`] on its way to another node, which has its own table of the same id.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use read::{ReadColumns, ReadCommand, ReadLimits, ReadPosition, ReadTarget};
use rows::{ClusteringComparator, PartitionKey, RingPlace, RingRange, Slice, Slices};
use schema::{ColumnId, Table, TableId};
use types::Token;

use crate::body::{BodyError, Reader, put_bool, put_bound, put_clustering, put_key, put_list, put_option};

/// A request is about so many keys at most: as many as a shard looks up in one go.
pub const READ_KEYS_MAX: usize = storage::KEYS_TOGETHER;

/// What is read, of a table that is still to be found.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadRequest {
    /// The table.
    pub table: TableId,
    target: Target,
    /// As they are sent; put in order by whoever knows how clusterings compare.
    pub(crate) slices: Vec<Slice>,
    columns: ReadColumns,
    reversed: bool,
    limits: ReadLimits,
    now: u32,
    pub(crate) resume: Option<ReadPosition>,
}

/// Which partitions. Answers of replicas are merged in the order of the ring, in which keys are asked for, too.
#[derive(Clone, Debug, PartialEq)]
enum Target {
    Keys(Vec<PartitionKey>),
    Range(RingRange),
}

impl ReadRequest {
    /// The command on that table.
    pub fn into_command(self, table: Arc<Table>) -> ReadCommand {
        let comparator = ClusteringComparator::new(Arc::clone(table.clustering_types()));
        let target = match self.target {
            Target::Keys(keys) => ReadTarget::Keys(keys),
            Target::Range(range) => ReadTarget::Range(range),
        };
        ReadCommand {
            table,
            target,
            slices: Slices::new(self.slices, &comparator),
            columns: self.columns,
            reversed: self.reversed,
            limits: self.limits,
            now: self.now,
            resume: self.resume,
        }
    }

    /// Is it of that one partition?
    pub(crate) fn is_of(&self, table: TableId, key: &PartitionKey) -> bool {
        self.table == table
            && matches!(&self.target, Target::Keys(keys) if matches!(&keys[..], [of] if of == key))
    }

    /// Is it of a range, and not of keys?
    pub(crate) fn is_of_range(&self) -> bool {
        matches!(self.target, Target::Range(_))
    }

    /// Appends a command.
    ///
    /// # Panics
    /// When it is of no key, of more than [`READ_KEYS_MAX`], or of keys that are not in the order of the ring.
    pub(crate) fn put(command: &ReadCommand, out: &mut BytesMut) {
        out.put_slice(command.table.id().0.as_bytes());
        match &command.target {
            ReadTarget::Keys(keys) => {
                assert!(
                    (1..=READ_KEYS_MAX).contains(&keys.len()) && command.is_in_ring_order(),
                    "keys are asked for as answers are merged, and no more than are read together"
                );
                if let [key] = &keys[..] {
                    out.put_u8(0);
                    put_key(out, key);
                } else {
                    out.put_u8(2);
                    put_list(out, keys, put_key);
                }
            }
            ReadTarget::Range(range) => {
                out.put_u8(1);
                put_place(out, &range.start);
                put_place(out, &range.end);
            }
        }
        put_list(out, command.slices.as_slice(), |out, slice| {
            put_bound(out, &slice.start);
            put_bound(out, &slice.end);
        });
        let columns = match &command.columns {
            ReadColumns::All => None,
            ReadColumns::Some(ids) => Some(ids),
        };
        put_option(out, columns, |out, ids| put_list(out, ids, |out, id| out.put_u16_le(id.0)));
        put_bool(out, command.reversed);
        let ReadLimits { row_count, rows_per_partition, bytes, bytes_max } = command.limits;
        out.put_u32_le(row_count);
        out.put_u32_le(rows_per_partition);
        out.put_u64_le(bytes as u64);
        out.put_u64_le(bytes_max as u64);
        out.put_u32_le(command.now);
        put_option(out, command.resume.as_ref(), put_position);
    }

    pub(crate) fn read(reader: &mut Reader) -> Result<ReadRequest, BodyError> {
        let table = TableId(reader.uuid("table id")?);
        let target = match reader.u8("target")? {
            0 => Target::Keys(vec![reader.key()?]),
            1 => Target::Range(RingRange { start: place(reader)?, end: place(reader)? }),
            2 => Target::Keys(keys(reader)?),
            _ => return Err(reader.wrong("target")),
        };
        let slices = reader.list("slices", |reader| {
            let slice = Slice { start: reader.bound()?, end: reader.bound()? };
            let is_slice = slice.start.kind.is_start() && !slice.end.kind.is_start();
            if is_slice { Ok(slice) } else { Err(reader.wrong("slice")) }
        })?;
        let columns = match reader.option("columns", |reader| reader.list("columns", column))? {
            None => ReadColumns::All,
            Some(ids) if ids.is_sorted_by(|one, other| one < other) => ReadColumns::Some(ids.into()),
            Some(_) => return Err(reader.wrong("columns")),
        };
        Ok(ReadRequest {
            table,
            target,
            slices,
            columns,
            reversed: reader.bool("direction")?,
            limits: ReadLimits {
                row_count: reader.u32("limits")?,
                rows_per_partition: reader.u32("limits")?,
                bytes: size(reader.u64("limits")?),
                bytes_max: size(reader.u64("limits")?),
            },
            now: reader.u32("moment")?,
            resume: reader.option("position", position)?,
        })
    }
}

/// Some keys, in the order of the ring. They are looked at as they come: a list of what is not wanted takes no memory.
fn keys(reader: &mut Reader) -> Result<Vec<PartitionKey>, BodyError> {
    let (mut count, mut last) = (0, None);
    let keys = reader.list("keys", |reader| {
        let key = reader.key()?;
        count += 1;
        if count > READ_KEYS_MAX || last.replace(key.clone()).is_some_and(|last| last >= key) {
            return Err(reader.wrong("keys"));
        }
        Ok(key)
    })?;
    if keys.is_empty() { Err(reader.wrong("keys")) } else { Ok(keys) }
}

/// More than there can be is as much as there can be.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn column(reader: &mut Reader) -> Result<ColumnId, BodyError> {
    reader.u16("column").map(ColumnId)
}

pub(crate) fn put_position(out: &mut BytesMut, position: &ReadPosition) {
    put_key(out, &position.key);
    put_option(out, position.clustering.as_ref(), put_clustering);
    out.put_u32_le(position.row_count);
}

pub(crate) fn position(reader: &mut Reader) -> Result<ReadPosition, BodyError> {
    Ok(ReadPosition {
        key: reader.key()?,
        clustering: reader.option("position", Reader::clustering)?,
        row_count: reader.u32("position")?,
    })
}

fn put_place(out: &mut BytesMut, place: &RingPlace) {
    match place {
        RingPlace::Start => out.put_u8(0),
        RingPlace::End => out.put_u8(1),
        RingPlace::BeforeToken(token) => {
            out.put_u8(2);
            out.put_i64_le(token.0);
        }
        RingPlace::AfterToken(token) => {
            out.put_u8(3);
            out.put_i64_le(token.0);
        }
        RingPlace::BeforeKey(key) => {
            out.put_u8(4);
            put_key(out, key);
        }
        RingPlace::AfterKey(key) => {
            out.put_u8(5);
            put_key(out, key);
        }
    }
}

fn place(reader: &mut Reader) -> Result<RingPlace, BodyError> {
    let token = |reader: &mut Reader| reader.u64("token").map(|token| Token(token as i64));
    match reader.u8("place")? {
        0 => Ok(RingPlace::Start),
        1 => Ok(RingPlace::End),
        2 => token(reader).map(RingPlace::BeforeToken),
        3 => token(reader).map(RingPlace::AfterToken),
        4 => reader.key().map(RingPlace::BeforeKey),
        5 => reader.key().map(RingPlace::AfterKey),
        _ => Err(reader.wrong("place")),
    }
}
