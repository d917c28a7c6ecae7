//! What is answered to a client: live rows, page by page.

use rows::{PartitionKey, Row};
use smallvec::SmallVec;

use crate::{PartitionTombstones, ReadPosition};

/// The live rows of a partition that has any, or a static row alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRows {
    /// Its key.
    pub key: PartitionKey,
    /// Its static row, as far as it is live.
    pub static_row: Option<Row>,
    /// Its rows in the order asked for.
    pub rows: RowList,
}

impl PartitionRows {
    /// What it takes in memory without its rows, about.
    pub const OWN_BYTES: usize = size_of::<PartitionRows>();

    /// What a row of a partition takes in memory, about.
    pub fn row_bytes(row: &Row) -> usize {
        size_of::<Row>() + row.as_encoded().len()
    }

    /// Its rows as an answer shows them; `None` for the one that its static row gives alone.
    pub fn shown_rows(&self) -> impl Iterator<Item = Option<&Row>> {
        let alone = self.rows.is_empty().then_some(None);
        alone.into_iter().chain(self.rows.iter().map(Some))
    }

    /// Behind its last row, with which it has given so many on all pages.
    pub fn position(&self, row_count: u32) -> ReadPosition {
        let clustering = self.rows.last().map(Row::clustering);
        ReadPosition { key: self.key.clone(), clustering, row_count }
    }

    /// What all of it takes in memory, about.
    pub fn memory_bytes(&self) -> usize {
        let rows = self.rows.iter().chain(&self.static_row).map(PartitionRows::row_bytes);
        PartitionRows::OWN_BYTES + self.key.bytes.len() + rows.sum::<usize>()
    }
}

/// Rows of one partition: of many partitions there is one, which needs no memory of its own.
pub type RowList = SmallVec<[Row; 1]>;

/// One page of an answer.
#[derive(Clone, Debug, Default)]
pub struct ReadPage {
    /// Partitions that hold anything, in the order asked for; the first may go on from the page before.
    pub partitions: Vec<PartitionRows>,
    /// Where to go on; `None` when there is nothing more.
    pub next: Option<ReadPosition>,
    /// Tombstones passed on the way, as Cassandra counts them: of keys, those of each partition that has any; of a
    /// range, all together.
    pub tombstones: Vec<PartitionTombstones>,
}

impl ReadPage {
    /// All tombstones passed on the way.
    pub fn tombstone_count(&self) -> u64 {
        self.tombstones.iter().map(|partition| partition.count).sum()
    }

    /// Adds what a further part of a range had.
    pub fn add_tombstones_of_range(&mut self, more: Vec<PartitionTombstones>) {
        for part in more {
            match self.tombstones.last_mut() {
                None => self.tombstones.push(part),
                Some(all) => {
                    all.count += part.count;
                    all.key = part.key.max(all.key.clone());
                }
            }
        }
    }
}
