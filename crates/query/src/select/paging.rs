//! Where a page ended, as the client carries it to the next request.
//!
//! ```text
//!   u8 version 1 | u32 rows left of LIMIT (u32::MAX: no limit) | u32 rows given of the partition
//!   u16 key bytes | key | u8 has clustering | clustering
//! ```
//!
//! Big-endian. It comes back from outside, so all of it is checked: every length, and whether a row of the table can be
//! there. What compares values relies on that they are of their type, and within its bounds.

use bytes::Bytes;
use read::ReadPosition;
use rows::{Clustering, PartitionKey};
use schema::Table;
use stdx::cursor::Cursor;
use types::CqlType;
use types::encoding::{self, KEY_BYTES_MAX};

use crate::QueryError;

const VERSION: u8 = 1;

/// Where to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PagingState {
    /// Rows that LIMIT still allows; `u32::MAX` without one.
    pub(super) left: u32,
    pub(super) position: ReadPosition,
}

impl PagingState {
    pub(super) fn encode(&self) -> Bytes {
        let key = &self.position.key.bytes;
        let mut out = Vec::with_capacity(16 + key.len());
        out.push(VERSION);
        out.extend_from_slice(&self.left.to_be_bytes());
        out.extend_from_slice(&self.position.row_count.to_be_bytes());
        // Keys are checked to be no longer when they are made.
        out.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(key);
        match &self.position.clustering {
            None => out.push(0),
            Some(clustering) => {
                out.push(1);
                out.extend_from_slice(clustering.as_encoded());
            }
        }
        out.into()
    }

    /// # Errors
    /// These are not bytes that [`PagingState::encode`] made of a place in that table.
    pub(super) fn decode(state: &Bytes, table: &Table) -> Result<Self, QueryError> {
        Self::read(state)
            .filter(|state| is_in(table, &state.position))
            .ok_or_else(|| QueryError::Protocol("Invalid value for the paging state".into()))
    }

    fn read(state: &Bytes) -> Option<Self> {
        let mut input = Cursor::new(state);
        if input.u8().ok()? != VERSION {
            return None;
        }
        let left = input.u32().ok()?;
        // Counted on from here: a made-up number must leave room.
        let row_count = input.u32().ok()?.min(u32::MAX / 2);
        let key_bytes = usize::from(input.u16().ok()?);
        let key = PartitionKey::new(Bytes::copy_from_slice(input.take(key_bytes).ok()?));
        let clustering = match input.u8().ok()? {
            0 if input.is_empty() => None,
            1 => Some(Clustering::from_encoded(Bytes::copy_from_slice(input.rest())).ok()?),
            _ => return None,
        };
        Some(PagingState { left, position: ReadPosition { key, clustering, row_count } })
    }
}

/// Can the table have a row there, or a partition that gave its static row alone?
fn is_in(table: &Table, position: &ReadPosition) -> bool {
    let of_key = table.partition_key();
    let Ok(parts) = encoding::partition_key_parts(&position.key.bytes, of_key.len()) else { return false };
    let is_key = of_key.iter().zip(parts).all(|(column, part)| is_of(&column.cql_type, part));
    let is_clustering = |clustering: &Clustering| {
        let types = table.clustering_types();
        clustering.components().count() == types.len()
            // Rows of files that Cassandra wrote may have a null.
            && clustering.components().zip(&**types).all(|(value, (of, _))| value.is_none_or(|value| is_of(of, value)))
    };
    is_key && position.clustering.as_ref().is_none_or(is_clustering)
}

fn is_of(cql_type: &CqlType, value: &[u8]) -> bool {
    value.len() <= KEY_BYTES_MAX && cql_type.validate(value).is_ok()
}

#[cfg(test)]
mod tests {
    use rows::ClusteringBuilder;
    use schema::{ClusteringOrder, ColumnKind, TableBuilder, TableId};

    use super::*;

    fn table() -> Table {
        let clustering = |index| ColumnKind::Clustering(index, ClusteringOrder::Asc);
        TableBuilder::new(TableId(uuid::Uuid::from_u128(1)), "k", "t")
            .column("a", ColumnKind::PartitionKey(0), CqlType::Int)
            .column("b", ColumnKind::PartitionKey(1), CqlType::Text)
            .column("c", clustering(0), CqlType::Text)
            .column("d", clustering(1), CqlType::Int)
            .build()
            .expect("a table")
    }

    fn state(key: &'static [u8], clustering: Option<&[Option<&[u8]>]>) -> PagingState {
        let clustering = clustering.map(|values| {
            let mut clustering = ClusteringBuilder::new();
            values.iter().for_each(|value| _ = clustering.push(*value));
            clustering.finish()
        });
        let key = PartitionKey::new(Bytes::from_static(key));
        PagingState { left: 17, position: ReadPosition { key, clustering, row_count: 3 } }
    }

    const KEY: &[u8] = b"\0\x04\0\0\0\x01\0\0\x01x\0";

    #[test]
    fn a_state_comes_back_as_it_went_and_damage_is_refused() {
        let values: [&[Option<&[u8]>]; 2] = [&[Some(b"abc"), Some(b"\0\0\0\x07")], &[Some(b""), None]];
        for clustering in [None, Some(values[0]), Some(values[1])] {
            let state = state(KEY, clustering);
            let encoded = state.encode();
            assert_eq!(PagingState::decode(&encoded, &table()).ok(), Some(state));
            for length in 0..encoded.len() {
                assert!(PagingState::decode(&encoded.slice(..length), &table()).is_err(), "cut at {length}");
            }
            let longer = [&encoded[..], b"\0"].concat().into();
            assert!(PagingState::decode(&longer, &table()).is_err());
        }
        assert!(PagingState::decode(&Bytes::from_static(b"\x02garbage"), &table()).is_err());
    }

    #[test]
    fn a_place_where_the_table_can_have_no_row_is_refused() {
        let number = Some(&b"\0\0\0\x07"[..]);
        let long = "x".repeat(KEY_BYTES_MAX + 1);
        let clusterings: [&[Option<&[u8]>]; 6] = [
            &[],
            &[Some(b"abc")],
            &[Some(b"abc"), number, number],
            &[Some(b"\xff"), number],
            &[Some(b"abc"), Some(b"\0\0\x07")],
            &[Some(long.as_bytes()), number],
        ];
        for clustering in clusterings {
            let encoded = state(KEY, Some(clustering)).encode();
            assert!(PagingState::decode(&encoded, &table()).is_err(), "{clustering:?}");
        }
        for key in [&b""[..], b"\0\0\0\x01", b"\0\x03\0\0\x01\0\0\x01x\0", b"\0\x04\0\0\0\x01\0\0\x01\xff\0"]
        {
            assert!(PagingState::decode(&state(key, None).encode(), &table()).is_err(), "{key:?}");
        }
    }
}
