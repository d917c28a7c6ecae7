//! The least times of rows, which a table file stores all others relative to; a memtable gathers them as rows come.

use crate::{CellRef, ColumnData, DeletionTime, Mutation, NO_DELETION_TIME, Row};

/// The least timestamp, local deletion time and TTL of what is written: a table file stores each
/// as its difference to these, so that small numbers remain. Any value is correct; the closer
/// below the real least, the smaller the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingStats {
    /// µs.
    pub min_timestamp: i64,
    /// Seconds since 1970.
    pub min_local_deletion_time: u32,
    /// Seconds.
    pub min_ttl: u32,
}

/// 2015-09-22T00:00:00Z: what Cassandra takes when nothing is known.
const EPOCH_SECONDS: u32 = 1_442_880_000;

impl EncodingStats {
    /// Nothing is known.
    pub const NONE: EncodingStats = EncodingStats {
        min_timestamp: EPOCH_SECONDS as i64 * 1_000_000,
        min_local_deletion_time: EPOCH_SECONDS,
        min_ttl: 0,
    };

    /// The least of both; what is unknown of one is taken from the other, as in Cassandra.
    #[must_use]
    pub fn merge(self, other: EncodingStats) -> EncodingStats {
        fn least<T: Ord + Copy>(a: T, b: T, unknown: T) -> T {
            match (a == unknown, b == unknown) {
                (true, _) => b,
                (_, true) => a,
                _ => a.min(b),
            }
        }
        EncodingStats {
            min_timestamp: least(self.min_timestamp, other.min_timestamp, Self::NONE.min_timestamp),
            min_local_deletion_time: least(
                self.min_local_deletion_time,
                other.min_local_deletion_time,
                Self::NONE.min_local_deletion_time,
            ),
            min_ttl: least(self.min_ttl, other.min_ttl, 0),
        }
    }
}

/// Finds the [`EncodingStats`] of what passes by: a memtable keeps one.
#[derive(Clone, Copy, Debug)]
pub struct EncodingStatsCollector {
    min_timestamp: Option<i64>,
    min_local_deletion_time: Option<u32>,
    min_ttl: Option<u32>,
}

impl Default for EncodingStatsCollector {
    fn default() -> Self {
        Self::new()
    }
}

fn lower<T: Ord + Copy>(least: &mut Option<T>, value: T) {
    *least = Some(least.map_or(value, |least| least.min(value)));
}

impl EncodingStatsCollector {
    /// Has seen nothing.
    pub const fn new() -> Self {
        EncodingStatsCollector { min_timestamp: None, min_local_deletion_time: None, min_ttl: None }
    }

    /// Takes a timestamp in.
    pub fn timestamp(&mut self, timestamp: i64) {
        lower(&mut self.min_timestamp, timestamp);
    }

    /// Takes a deletion in; a live one says nothing.
    pub fn deletion(&mut self, deletion: DeletionTime) {
        if !deletion.is_live() {
            self.timestamp(deletion.timestamp);
            self.local_deletion_time(deletion.local_deletion_time);
        }
    }

    /// Takes a cell in.
    pub fn cell(&mut self, cell: &CellRef<'_>) {
        self.timestamp(cell.timestamp);
        if cell.local_deletion_time != NO_DELETION_TIME {
            self.local_deletion_time(cell.local_deletion_time);
        }
        if cell.ttl != 0 {
            lower(&mut self.min_ttl, cell.ttl);
        }
    }

    /// Takes a row in.
    pub fn row(&mut self, row: &Row) {
        let liveness = row.liveness();
        if !liveness.is_none() {
            self.timestamp(liveness.timestamp);
            if liveness.is_expiring() {
                lower(&mut self.min_ttl, liveness.ttl);
                self.local_deletion_time(liveness.local_expiration_time);
            }
        }
        self.deletion(row.deletion());
        for column in row.columns() {
            match column.data {
                ColumnData::Simple(cell) => self.cell(&cell),
                ColumnData::Complex(complex) => {
                    self.deletion(complex.deletion);
                    complex.cells().for_each(|cell| self.cell(&cell));
                }
            }
        }
    }

    /// Takes a mutation in.
    pub fn mutation(&mut self, mutation: &Mutation) {
        self.deletion(mutation.deletion);
        mutation.static_row.iter().chain(&mutation.rows).for_each(|row| self.row(row));
        mutation.ranges.iter().for_each(|range| self.deletion(range.deletion));
    }

    /// What was found.
    pub fn stats(&self) -> EncodingStats {
        EncodingStats {
            min_timestamp: self.min_timestamp.unwrap_or(EncodingStats::NONE.min_timestamp),
            min_local_deletion_time: self
                .min_local_deletion_time
                .unwrap_or(EncodingStats::NONE.min_local_deletion_time),
            min_ttl: self.min_ttl.unwrap_or(0),
        }
    }

    fn local_deletion_time(&mut self, seconds: u32) {
        lower(&mut self.min_local_deletion_time, seconds);
    }
}
