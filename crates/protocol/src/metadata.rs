//! Columns of results and bind markers on the wire.
//!
//! ```text
//!   flags [int]   column count [int]
//!   (bind markers, version 4 on)  key count [int], that many marker indexes [short]
//!   (0x02, results) paging state [bytes]
//!   (0x08, results, version 5 on) new metadata id [short bytes]
//!   unless 0x04:
//!     (0x01) keyspace [string] table [string], once for all columns
//!     per column: (not 0x01) keyspace, table; name [string]; type [option]
//! ```

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::type_option::{put_type, read_type};
use crate::wire::{Put, Reader};
use crate::{ColumnSpec, PreparedMetadata, ProtocolError, ResultMetadata, Version};

const GLOBAL_TABLE_SPEC: i32 = 0x01;
const HAS_MORE_PAGES: i32 = 0x02;
const NO_METADATA: i32 = 0x04;
const METADATA_CHANGED: i32 = 0x08;

/// The metadata of one Rows result: the columns and what changes from page to page.
#[derive(Clone, Debug)]
pub struct RowsHeader<'a> {
    /// The columns.
    pub metadata: &'a ResultMetadata,
    /// Leave them out, the client knows them.
    pub no_metadata: bool,
    /// They are not those the client knows: their new id (left out before version 5).
    pub new_metadata_id: Option<&'a [u8]>,
    /// Where to go on, if there is more.
    pub paging_state: Option<&'a [u8]>,
}

impl RowsHeader<'_> {
    pub(crate) fn encode(&self, out: &mut BytesMut, version: Version) {
        let columns = self.metadata.columns();
        let new_id = self.new_metadata_id.filter(|_| version.uses_segments());
        // New columns must be shown, so a changed id wins over a wish to leave them out.
        let no_metadata = columns.is_empty() || (self.no_metadata && new_id.is_none());
        let other_version;
        let encoded = match self.metadata.encoded.get_or_init(|| EncodedColumns::new(columns, version)) {
            encoded if encoded.version == version => encoded,
            _ => {
                other_version = EncodedColumns::new(columns, version);
                &other_version
            }
        };
        let flag = |is_set: bool, flag: i32| if is_set { flag } else { 0 };
        out.put_i32(
            flag(encoded.is_global, GLOBAL_TABLE_SPEC)
                | flag(self.paging_state.is_some(), HAS_MORE_PAGES)
                | flag(no_metadata, NO_METADATA)
                | flag(new_id.is_some(), METADATA_CHANGED),
        );
        out.put_i32(columns.len() as i32);
        if let Some(state) = self.paging_state {
            out.put_bytes_or_null(Some(state));
        }
        if let Some(id) = new_id {
            out.put_short_bytes(id);
        }
        if !no_metadata {
            out.put_slice(&encoded.bytes);
        }
    }
}

/// Columns as they stand in a result of one version.
#[derive(Clone, Debug)]
pub(crate) struct EncodedColumns {
    version: Version,
    is_global: bool,
    bytes: Bytes,
}

impl EncodedColumns {
    fn new(columns: &[ColumnSpec], version: Version) -> Self {
        let (is_global, mut bytes) = (is_global(columns), BytesMut::new());
        put_columns(&mut bytes, columns, is_global, version);
        EncodedColumns { version, is_global, bytes: bytes.freeze() }
    }
}

/// What was read of a result's metadata.
pub(crate) struct DecodedRowsHeader {
    pub(crate) metadata: ResultMetadata,
    pub(crate) column_count: usize,
    pub(crate) no_metadata: bool,
    pub(crate) new_metadata_id: Option<Bytes>,
    pub(crate) paging_state: Option<Bytes>,
}

pub(crate) fn decode_rows_header(
    reader: &mut Reader,
    version: Version,
) -> Result<DecodedRowsHeader, ProtocolError> {
    let flags = reader.i32()?;
    let column_count = count(reader)?;
    let paging_state = match flags & HAS_MORE_PAGES != 0 {
        true => reader.bytes()?,
        false => None,
    };
    let new_metadata_id = match flags & METADATA_CHANGED != 0 && version.uses_segments() {
        true => Some(reader.short_bytes()?),
        false => None,
    };
    let no_metadata = flags & NO_METADATA != 0;
    let columns = match no_metadata {
        true => Vec::new(),
        false => read_columns(reader, column_count, flags & GLOBAL_TABLE_SPEC != 0)?,
    };
    let metadata = ResultMetadata::new(columns);
    Ok(DecodedRowsHeader { metadata, column_count, no_metadata, new_metadata_id, paging_state })
}

impl PreparedMetadata {
    pub(crate) fn encode(&self, out: &mut BytesMut, version: Version) {
        let is_global = is_global(&self.columns);
        out.put_i32(if is_global { GLOBAL_TABLE_SPEC } else { 0 });
        out.put_i32(self.columns.len() as i32);
        if version >= Version::V4 {
            // Key indexes mean nothing when the markers belong to several tables.
            let indexes = if is_global { self.partition_key_indexes.as_slice() } else { &[] };
            out.put_i32(indexes.len() as i32);
            indexes.iter().for_each(|index| out.put_u16(*index));
        }
        put_columns(out, &self.columns, is_global, version);
    }

    pub(crate) fn decode(reader: &mut Reader, version: Version) -> Result<PreparedMetadata, ProtocolError> {
        let flags = reader.i32()?;
        let column_count = count(reader)?;
        let mut partition_key_indexes = Vec::new();
        if version >= Version::V4 {
            for _ in 0..count(reader)? {
                partition_key_indexes.push(reader.u16()?);
            }
        }
        let columns = read_columns(reader, column_count, flags & GLOBAL_TABLE_SPEC != 0)?;
        Ok(PreparedMetadata { columns, partition_key_indexes })
    }
}

/// A count of elements that each take bytes of their own, or are bounded by who reads them.
fn count(reader: &mut Reader) -> Result<usize, ProtocolError> {
    let count = reader.i32()?;
    usize::try_from(count).map_err(|_| ProtocolError::Count { count })
}

fn is_global(columns: &[ColumnSpec]) -> bool {
    let Some(first) = columns.first() else { return false };
    columns.iter().all(|column| column.keyspace == first.keyspace && column.table == first.table)
}

fn put_columns(out: &mut BytesMut, columns: &[ColumnSpec], is_global: bool, version: Version) {
    if let Some(first) = columns.first()
        && is_global
    {
        out.put_text(&first.keyspace);
        out.put_text(&first.table);
    }
    for column in columns {
        if !is_global {
            out.put_text(&column.keyspace);
            out.put_text(&column.table);
        }
        out.put_text(&column.name);
        put_type(out, &column.cql_type, version);
    }
}

fn read_columns(
    reader: &mut Reader,
    column_count: usize,
    is_global: bool,
) -> Result<Vec<ColumnSpec>, ProtocolError> {
    let table_spec = |reader: &mut Reader| -> Result<(Arc<str>, Arc<str>), ProtocolError> {
        Ok((Arc::from(reader.text()?.as_str()), Arc::from(reader.text()?.as_str())))
    };
    let global = match is_global && column_count > 0 {
        true => Some(table_spec(reader)?),
        false => None,
    };
    let mut columns = Vec::new();
    for _ in 0..column_count {
        let (keyspace, table) = match &global {
            Some(global) => global.clone(),
            None => table_spec(reader)?,
        };
        let name = Arc::from(reader.text()?.as_str());
        columns.push(ColumnSpec { keyspace, table, name, cql_type: read_type(reader)? });
    }
    Ok(columns)
}
