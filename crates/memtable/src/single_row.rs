//! Partitions of a memtable in ring order, each looked at where it lies.

use rows::{PartitionKey, RingPlace, RingRange};
use stdx::prefetch::prefetch;

use super::partition::MemoryPartition;
use super::tree::Entries;
use super::{Memtable, SingleRow};

/// Partitions that are fetched together, at most.
const TOGETHER_MAX: usize = 32;

/// A walk over a part of the ring.
pub struct SingleRowPartitions<'m> {
    entries: Entries<'m, MemoryPartition>,
    end: &'m RingPlace,
    /// Fetched together, and on their way.
    taken: Vec<(&'m PartitionKey, &'m MemoryPartition)>,
    /// How many of them have been given.
    given: usize,
    /// How many are likely to be asked for.
    expected: usize,
}

impl Memtable {
    /// Walks over the partitions of a range, of which `expected` are likely to be asked for.
    pub fn single_row_partitions<'m>(
        &'m self,
        range: &'m RingRange,
        expected: u32,
    ) -> SingleRowPartitions<'m> {
        let entries = self.behind(&range.start);
        SingleRowPartitions {
            entries,
            end: &range.end,
            taken: Vec::new(),
            given: 0,
            expected: expected as usize,
        }
    }
}

impl<'m> Iterator for SingleRowPartitions<'m> {
    /// A partition's key, and its row; `None` when it has more of it than a row.
    type Item = (&'m PartitionKey, Option<SingleRow<'m>>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.given == self.taken.len() {
            self.take_more();
        }
        let (key, partition) = *self.taken.get(self.given)?;
        self.given += 1;
        Some((key, partition.single_row()))
    }
}

impl SingleRowPartitions<'_> {
    fn take_more(&mut self) {
        self.taken.clear();
        self.given = 0;
        let count = self.expected.clamp(1, TOGETHER_MAX);
        self.expected = self.expected.saturating_sub(count);
        self.entries.take_together(count, &mut self.taken);
        let behind = self.taken.iter().position(|(key, _)| self.end.is_before(key));
        self.taken.truncate(behind.unwrap_or(self.taken.len()));
        for (key, partition) in &self.taken {
            prefetch(&key.bytes);
            prefetch(partition.first_bytes().unwrap_or_default());
        }
    }
}
