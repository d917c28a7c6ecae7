//! How much a page has given, held against its limits.

use std::ops::AddAssign;

use crate::{PartitionRows, ReadLimits, ReadPage, Room};

/// What a page has given so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Rows; a partition that gives only its static row counts as one.
    pub row_count: u32,
    /// What they take in memory ([`PartitionRows::memory_bytes`]).
    pub bytes: usize,
}

impl Given {
    /// One more row, which takes so many bytes with all that comes with it.
    #[inline]
    pub(crate) fn add_row(&mut self, bytes: usize) {
        self.row_count += 1;
        self.bytes += bytes;
    }
}

impl AddAssign for Given {
    fn add_assign(&mut self, more: Given) {
        self.row_count = self.row_count.saturating_add(more.row_count);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

impl PartitionRows {
    /// How many rows of an answer it is.
    pub fn row_count(&self) -> u32 {
        u32::try_from(self.rows.len().max(1)).unwrap_or(u32::MAX)
    }
}

impl ReadPage {
    /// What it gives.
    pub fn given(&self) -> Given {
        let mut all = Given::default();
        for partition in &self.partitions {
            all += Given { row_count: partition.row_count(), bytes: partition.memory_bytes() };
        }
        all
    }
}

impl ReadLimits {
    /// Is a page full that has given so much?
    #[inline]
    pub fn are_reached(&self, given: Given) -> bool {
        given.row_count >= self.row_count || given.bytes >= self.bytes
    }

    /// May a page that has given so much have so many bytes more?
    #[inline]
    pub(crate) fn allow(&self, given: Given, bytes: usize) -> bool {
        given.bytes.saturating_add(bytes) <= self.bytes_max
    }

    /// What is left for a page that has given so much.
    #[inline]
    pub fn room(&self, given: Given) -> Room {
        Room {
            rows: self.row_count.saturating_sub(given.row_count),
            bytes: self.bytes.saturating_sub(given.bytes),
        }
    }

    /// Those of the rest of a page that has given so much.
    #[must_use]
    pub fn after(self, given: Given) -> ReadLimits {
        let Room { rows, bytes } = self.room(given);
        let bytes_max = self.bytes_max.saturating_sub(given.bytes);
        ReadLimits { row_count: rows, bytes, bytes_max, ..self }
    }
}
