//! The parameters of QUERY, EXECUTE and BATCH on the wire.
//!
//! ```text
//!   consistency [short]
//!   flags       [byte] in versions 3 and 4, [int] from version 5 on
//!   then, for each flag set, in this order:
//!   0x01 values   0x04 page size   0x08 paging state   0x10 serial consistency
//!   0x20 timestamp   0x80 keyspace   0x100 now in seconds
//!   0x02 (skip metadata) and 0x40 (values have names) stand for themselves
//! ```
//!
//! Cassandra takes every flag in every version; only the eight low ones fit before version 5.

use bytes::{BufMut, BytesMut};

use crate::wire::{Put, Reader, SHORT_MAX};
use crate::{ProtocolError, QueryParameters, Value, Values, Version};

pub(crate) const VALUES: u32 = 0x01;
pub(crate) const SKIP_METADATA: u32 = 0x02;
pub(crate) const PAGE_SIZE: u32 = 0x04;
const PAGING_STATE: u32 = 0x08;
pub(crate) const SERIAL_CONSISTENCY: u32 = 0x10;
pub(crate) const TIMESTAMP: u32 = 0x20;
const NAMES_FOR_VALUES: u32 = 0x40;
const KEYSPACE: u32 = 0x80;
const NOW_IN_SECONDS: u32 = 0x100;

impl QueryParameters {
    pub(crate) fn decode(reader: &mut Reader, version: Version) -> Result<QueryParameters, ProtocolError> {
        let mut parameters = QueryParameters::at(reader.consistency()?);
        let flags = match version.uses_segments() {
            true => reader.i32()? as u32,
            false => u32::from(reader.u8()?),
        };
        let has = |flag: u32| flags & flag != 0;
        if has(VALUES) {
            let mut names = has(NAMES_FOR_VALUES).then(Vec::new);
            parameters.values = reader.values(version, names.as_mut())?;
            parameters.names = names.filter(|names| !names.is_empty());
        }
        parameters.skip_metadata = has(SKIP_METADATA);
        if has(PAGE_SIZE) {
            parameters.page_size = Some(reader.i32()?);
        }
        if has(PAGING_STATE) {
            parameters.paging_state = reader.bytes()?;
        }
        if has(SERIAL_CONSISTENCY) {
            parameters.serial_consistency = Some(reader.consistency()?);
        }
        if has(TIMESTAMP) {
            parameters.timestamp = match reader.i64()? {
                i64::MIN => return Err(ProtocolError::Timestamp { timestamp: i64::MIN }),
                timestamp => Some(timestamp),
            };
        }
        if has(KEYSPACE) {
            parameters.keyspace = Some(reader.text()?);
        }
        if has(NOW_IN_SECONDS) {
            parameters.now_in_seconds = Some(reader.i32()? as u32);
        }
        Ok(parameters)
    }

    /// Writes them. The time of day has no room in the flags before version 5 and is left out.
    pub(crate) fn encode(&self, out: &mut BytesMut, version: Version) {
        out.put_u16(self.consistency.code());
        let flags = self.flags(version);
        match version.uses_segments() {
            true => out.put_u32(flags),
            false => out.put_u8(flags as u8),
        }
        if flags & VALUES != 0 {
            put_values(out, version, &self.values, self.names.as_deref());
        }
        if let Some(page_size) = self.page_size {
            out.put_i32(page_size);
        }
        if let Some(state) = &self.paging_state {
            out.put_bytes_or_null(Some(state));
        }
        if let Some(consistency) = self.serial_consistency {
            out.put_u16(consistency.code());
        }
        if let Some(timestamp) = self.timestamp {
            out.put_i64(timestamp);
        }
        if let Some(keyspace) = &self.keyspace {
            out.put_text(keyspace.as_str());
        }
        if let Some(now) = self.now_in_seconds.filter(|_| version.uses_segments()) {
            out.put_u32(now);
        }
    }

    fn flags(&self, version: Version) -> u32 {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        flag(!self.values.is_empty(), VALUES)
            | flag(self.skip_metadata, SKIP_METADATA)
            | flag(self.page_size.is_some(), PAGE_SIZE)
            | flag(self.paging_state.is_some(), PAGING_STATE)
            | flag(self.serial_consistency.is_some(), SERIAL_CONSISTENCY)
            | flag(self.timestamp.is_some(), TIMESTAMP)
            | flag(self.names.is_some() && !self.values.is_empty(), NAMES_FOR_VALUES)
            | flag(self.keyspace.is_some(), KEYSPACE)
            | flag(self.now_in_seconds.is_some() && version.uses_segments(), NOW_IN_SECONDS)
    }
}

/// Writes a count and values, each after its name if there are names. Before version 4 unset
/// cannot be said and becomes null.
pub(crate) fn put_values(
    out: &mut BytesMut,
    version: Version,
    values: &Values,
    names: Option<&[crate::Text]>,
) {
    let count = values.len().min(SHORT_MAX);
    out.put_u16(count as u16);
    for (index, value) in values.iter().take(count).enumerate() {
        if let Some(names) = names {
            out.put_text(names.get(index).map_or("", |name| name.as_str()));
        }
        match value {
            Value::Unset if version < Version::V4 => out.put_value(Value::Null),
            value => out.put_value(value),
        }
    }
}
