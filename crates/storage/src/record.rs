//! What storage puts into a record of the commit log.
//!
//! ```text
//!   i64 a timestamp the node had not passed  | (u32 bytes | mutation)*
//! ```
//!
//! Little-endian. All mutations of a record stand or fall together. The timestamp lets a restart
//! count on from there, whatever the clock says by then.

use bytes::{Buf, Bytes};
use rows::{Mutation, MutationError};

use crate::StorageError;

/// A record of the commit log.
pub(crate) struct LogRecord {
    pub(crate) last_timestamp: i64,
    pub(crate) mutations: Vec<Mutation>,
}

impl LogRecord {
    pub(crate) fn head(last_timestamp: i64) -> [u8; 8] {
        last_timestamp.to_le_bytes()
    }

    pub(crate) fn length(mutation: &Bytes) -> Result<[u8; 4], StorageError> {
        let mutation_bytes = mutation.len();
        u32::try_from(mutation_bytes).map(u32::to_le_bytes).map_err(|_| StorageError::MutationTooLarge {
            mutation_bytes,
            mutation_bytes_max: u32::MAX as usize,
        })
    }

    /// Bytes of a record of one mutation.
    pub(crate) fn bytes(mutation: &Bytes) -> usize {
        8 + 4 + mutation.len()
    }

    pub(crate) fn decode(mut payload: Bytes) -> Result<LogRecord, MutationError> {
        let bytes = payload.len();
        let cut_off = |left: usize, what| MutationError::CutOff { offset: bytes - left, bytes, what };
        if payload.remaining() < 8 {
            return Err(cut_off(payload.remaining(), "record head"));
        }
        let last_timestamp = payload.get_i64_le();
        let mut mutations = Vec::new();
        while payload.has_remaining() {
            if payload.remaining() < 4 {
                return Err(cut_off(payload.remaining(), "mutation length"));
            }
            let length = payload.get_u32_le() as usize;
            if payload.remaining() < length {
                return Err(cut_off(payload.remaining(), "mutation"));
            }
            // A copy of its own: a slice would keep the whole segment in memory.
            let mutation = Bytes::copy_from_slice(&payload.split_to(length));
            mutations.push(Mutation::from_encoded(mutation)?);
        }
        Ok(LogRecord { last_timestamp, mutations })
    }
}
