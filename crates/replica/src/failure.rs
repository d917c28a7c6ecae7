//! Why a replica did not do what it was asked, by what the coordinator can do about it.

use bytes::{BufMut, BytesMut};
use read::TooManyTombstones;
use schema::TableId;
use storage::{StorageError, TableError};

use crate::body::{BodyError, Reader, put_bytes, put_clustering, put_key, put_option};

/// Why not.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// Nothing was done: it does not know the table, because it is behind, or the table is gone.
    #[error("table {} is not known there", .table.0)]
    NoTable {
        /// Which.
        table: TableId,
    },
    /// Nothing was done: the table was emptied after this was planned.
    #[error("the table was emptied at epoch {epoch} of the schema")]
    Outdated {
        /// At which epoch of the schema.
        epoch: u64,
    },
    /// Nothing was done: there is no room for it now.
    #[error("overloaded: {what}")]
    Overloaded {
        /// Room for what.
        what: String,
    },
    /// Nothing was written, or read: there is a row that the page can not have.
    #[error("a row takes {bytes} bytes, more than the page may have")]
    RowTooLarge {
        /// With what came before.
        bytes: usize,
    },
    /// The read came upon too many tombstones.
    #[error("the read came upon {} tombstones, more than tombstone_failure_threshold", .0.tombstone_count)]
    TooManyTombstones(TooManyTombstones),
    /// Something else is wrong there; its log says what.
    #[error("{what}")]
    Other {
        /// In words.
        what: String,
    },
}

impl From<&StorageError> for Failure {
    fn from(error: &StorageError) -> Failure {
        match error {
            StorageError::Table(TableError::NoTable { table }) => Failure::NoTable { table: *table },
            StorageError::Table(TableError::Outdated { truncated_at, .. }) => {
                Failure::Outdated { epoch: *truncated_at }
            }
            StorageError::Table(TableError::NoRoom { .. } | TableError::DiskFull { .. })
            | StorageError::ShardBusy { .. } => Failure::Overloaded { what: error.to_string() },
            StorageError::RowTooLarge { bytes } => Failure::RowTooLarge { bytes: *bytes },
            StorageError::TooManyTombstones(found) => Failure::TooManyTombstones((**found).clone()),
            other => Failure::Other { what: other.to_string() },
        }
    }
}

impl Failure {
    pub(crate) fn put(&self, out: &mut BytesMut) {
        match self {
            Failure::NoTable { table } => {
                out.put_u8(1);
                out.put_slice(table.0.as_bytes());
            }
            Failure::Overloaded { what } => {
                out.put_u8(2);
                put_bytes(out, what.as_bytes());
            }
            Failure::RowTooLarge { bytes } => {
                out.put_u8(3);
                out.put_u64_le(*bytes as u64);
            }
            Failure::TooManyTombstones(found) => {
                out.put_u8(4);
                out.put_u64_le(found.tombstone_count);
                out.put_u64_le(found.live_count);
                put_key(out, &found.key);
                put_option(out, found.clustering.as_ref(), put_clustering);
            }
            Failure::Outdated { epoch } => {
                out.put_u8(6);
                out.put_u64_le(*epoch);
            }
            Failure::Other { what } => {
                out.put_u8(5);
                put_bytes(out, what.as_bytes());
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader) -> Result<Failure, BodyError> {
        Ok(match reader.u8("failure")? {
            1 => Failure::NoTable { table: TableId(reader.uuid("table id")?) },
            2 => Failure::Overloaded { what: reader.text("failure")? },
            3 => Failure::RowTooLarge { bytes: usize::try_from(reader.u64("size")?).unwrap_or(usize::MAX) },
            4 => Failure::TooManyTombstones(TooManyTombstones {
                tombstone_count: reader.u64("tombstones")?,
                live_count: reader.u64("rows")?,
                key: reader.key()?,
                clustering: reader.option("clustering", Reader::clustering)?,
            }),
            5 => Failure::Other { what: reader.text("failure")? },
            6 => Failure::Outdated { epoch: reader.u64("epoch")? },
            _ => return Err(reader.wrong("failure")),
        })
    }
}
