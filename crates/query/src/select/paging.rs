//! Where a page ended, as the client carries it to the next request.
//!
//! ```text
//!   u8 version 1 | u32 rows left of LIMIT (u32::MAX: no limit) | u32 rows given of the partition
//!   u16 key bytes | key | u8 has clustering | clustering
//! ```
//!
//! Big-endian. It comes back from outside, so every length is checked.

use bytes::Bytes;
use read::ReadPosition;
use rows::{Clustering, PartitionKey};
use stdx::cursor::Cursor;

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
        // Keys are checked to be at most 65535 bytes long when they are made.
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
    /// These are not bytes that [`PagingState::encode`] made.
    pub(super) fn decode(state: &Bytes) -> Result<Self, QueryError> {
        Self::read(state).ok_or_else(|| QueryError::Protocol("Invalid value for the paging state".into()))
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
            0 => None,
            1 => Some(Clustering::from_encoded(Bytes::copy_from_slice(input.rest())).ok()?),
            _ => return None,
        };
        Some(PagingState { left, position: ReadPosition { key, clustering, row_count } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_as_it_went_and_damage_is_refused() {
        let mut clustering = rows::ClusteringBuilder::new();
        clustering.push(Some(b"abc")).push(None);
        let state = PagingState {
            left: 17,
            position: ReadPosition {
                key: PartitionKey::new(Bytes::from_static(b"key")),
                clustering: Some(clustering.finish()),
                row_count: 3,
            },
        };
        let encoded = state.encode();
        assert_eq!(PagingState::decode(&encoded).ok(), Some(state));
        for length in 0..encoded.len() {
            let _ = PagingState::decode(&encoded.slice(..length));
        }
        assert!(PagingState::decode(&Bytes::from_static(b"\x02garbage")).is_err());
    }
}
