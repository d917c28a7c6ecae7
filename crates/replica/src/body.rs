//! Bodies of messages: numbers little-endian, and what has a length behind it. Everything that is read is checked.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use rows::{Bound, BoundKind, Clustering, DeletionTime, Mutation, PartitionKey, Row};
use types::encoding::KEY_BYTES_MAX;
use uuid::Uuid;

/// A body that makes no sense: its sender is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("body of {body_bytes} bytes makes no sense at byte {offset}, reading {what}")]
pub struct BodyError {
    /// Length of the body.
    pub body_bytes: usize,
    /// Where.
    pub offset: usize,
    /// What ought to stand there.
    pub what: &'static str,
}

/// Takes a body apart, from its beginning on. What it gives lies in the body's memory.
#[derive(Debug)]
pub(crate) struct Reader {
    rest: Bytes,
    body_bytes: usize,
}

impl Reader {
    pub(crate) fn new(body: Bytes) -> Reader {
        Reader { body_bytes: body.len(), rest: body }
    }

    /// The error of what was to be read last.
    pub(crate) fn wrong(&self, what: &'static str) -> BodyError {
        BodyError { body_bytes: self.body_bytes, offset: self.body_bytes - self.rest.len(), what }
    }

    /// Has everything been read?
    pub(crate) fn end(&self) -> Result<(), BodyError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong("the end")) }
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, BodyError> {
        self.rest.try_get_u8().map_err(|_| self.wrong(what))
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, BodyError> {
        self.rest.try_get_u16_le().map_err(|_| self.wrong(what))
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, BodyError> {
        self.rest.try_get_u32_le().map_err(|_| self.wrong(what))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, BodyError> {
        self.rest.try_get_u64_le().map_err(|_| self.wrong(what))
    }

    pub(crate) fn i64(&mut self, what: &'static str) -> Result<i64, BodyError> {
        Ok(self.u64(what)? as i64)
    }

    pub(crate) fn u128(&mut self, what: &'static str) -> Result<u128, BodyError> {
        self.rest.try_get_u128_le().map_err(|_| self.wrong(what))
    }

    pub(crate) fn uuid(&mut self, what: &'static str) -> Result<Uuid, BodyError> {
        let bytes = self.rest.split_to(self.rest.len().min(16));
        bytes.as_ref().try_into().map(Uuid::from_bytes).map_err(|_| self.wrong(what))
    }

    pub(crate) fn bool(&mut self, what: &'static str) -> Result<bool, BodyError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.wrong(what)),
        }
    }

    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<Bytes, BodyError> {
        let length = self.u32(what)? as usize;
        if length > self.rest.len() {
            return Err(self.wrong(what));
        }
        Ok(self.rest.split_to(length))
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<String, BodyError> {
        String::from_utf8(self.bytes(what)?.to_vec()).map_err(|_| self.wrong(what))
    }

    /// How many things follow, each of which takes a byte at least: no more than there can be.
    pub(crate) fn count(&mut self, what: &'static str) -> Result<usize, BodyError> {
        let count = self.u32(what)? as usize;
        if count <= self.rest.len() { Ok(count) } else { Err(self.wrong(what)) }
    }

    /// Something that may be there or not.
    pub(crate) fn option<T>(
        &mut self,
        what: &'static str,
        read: impl FnOnce(&mut Reader) -> Result<T, BodyError>,
    ) -> Result<Option<T>, BodyError> {
        if self.bool(what)? { read(self).map(Some) } else { Ok(None) }
    }

    /// A list of things.
    pub(crate) fn list<T>(
        &mut self,
        what: &'static str,
        mut read: impl FnMut(&mut Reader) -> Result<T, BodyError>,
    ) -> Result<Vec<T>, BodyError> {
        let count = self.count(what)?;
        (0..count).map(|_| read(self)).collect()
    }

    pub(crate) fn key(&mut self) -> Result<PartitionKey, BodyError> {
        let bytes = self.bytes("partition key")?;
        if bytes.len() > KEY_BYTES_MAX {
            return Err(self.wrong("partition key"));
        }
        Ok(PartitionKey::new(bytes))
    }

    pub(crate) fn clustering(&mut self) -> Result<Clustering, BodyError> {
        let bytes = self.bytes("clustering")?;
        Clustering::from_encoded(bytes).map_err(|_| self.wrong("clustering"))
    }

    pub(crate) fn bound(&mut self) -> Result<Bound, BodyError> {
        let kind = match self.u8("bound")? {
            0 => BoundKind::InclusiveStart,
            1 => BoundKind::ExclusiveStart,
            2 => BoundKind::InclusiveEnd,
            3 => BoundKind::ExclusiveEnd,
            _ => return Err(self.wrong("bound")),
        };
        Ok(Bound { kind, prefix: self.clustering()? })
    }

    pub(crate) fn deletion(&mut self) -> Result<DeletionTime, BodyError> {
        let timestamp = self.u64("deletion")? as i64;
        Ok(DeletionTime { timestamp, local_deletion_time: self.u32("deletion")? })
    }

    pub(crate) fn row(&mut self) -> Result<Row, BodyError> {
        let bytes = self.bytes("row")?;
        Row::from_encoded(bytes).map_err(|_| self.wrong("row"))
    }

    pub(crate) fn mutation(&mut self) -> Result<Mutation, BodyError> {
        let bytes = self.bytes("mutation")?;
        Mutation::from_encoded(bytes).map_err(|_| self.wrong("mutation"))
    }
}

pub(crate) fn put_bool(out: &mut BytesMut, is: bool) {
    out.put_u8(u8::from(is));
}

/// A length that the limits of messages keep far below what it can say.
fn put_length(out: &mut BytesMut, length: usize) {
    out.put_u32_le(u32::try_from(length).expect("what a message holds is far shorter"));
}

pub(crate) fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.put_slice(bytes);
}

pub(crate) fn put_option<T>(out: &mut BytesMut, option: Option<&T>, put: impl FnOnce(&mut BytesMut, &T)) {
    put_bool(out, option.is_some());
    if let Some(value) = option {
        put(out, value);
    }
}

pub(crate) fn put_list<T>(out: &mut BytesMut, list: &[T], mut put: impl FnMut(&mut BytesMut, &T)) {
    put_length(out, list.len());
    list.iter().for_each(|value| put(out, value));
}

pub(crate) fn put_key(out: &mut BytesMut, key: &PartitionKey) {
    put_bytes(out, &key.bytes);
}

pub(crate) fn put_clustering(out: &mut BytesMut, clustering: &Clustering) {
    put_bytes(out, clustering.as_encoded());
}

pub(crate) fn put_bound(out: &mut BytesMut, bound: &Bound) {
    out.put_u8(match bound.kind {
        BoundKind::InclusiveStart => 0,
        BoundKind::ExclusiveStart => 1,
        BoundKind::InclusiveEnd => 2,
        BoundKind::ExclusiveEnd => 3,
    });
    put_clustering(out, &bound.prefix);
}

pub(crate) fn put_deletion(out: &mut BytesMut, deletion: DeletionTime) {
    out.put_u64_le(deletion.timestamp as u64);
    out.put_u32_le(deletion.local_deletion_time);
}

pub(crate) fn put_row(out: &mut BytesMut, row: &Row) {
    put_bytes(out, row.as_encoded());
}
