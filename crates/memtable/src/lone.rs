//! Partitions of a memtable in ring order, each looked at where it lies.

use rows::PartitionKey;
use stdx::prefetch::prefetch;
use types::Token;

use super::partition::MemoryPartition;
use super::tree::Entries;
use super::{Lone, Memtable};

/// Partitions that are fetched together, at most.
const TOGETHER_MAX: usize = 32;

/// A walk over a part of the ring.
pub struct LonePartitions<'m> {
    entries: Entries<'m, MemoryPartition>,
    last: Token,
    /// Fetched together, and on their way.
    taken: Vec<(&'m PartitionKey, &'m MemoryPartition)>,
    /// How many of them have been given.
    given: usize,
    /// How many are likely to be asked for.
    expected: usize,
}

impl Memtable {
    /// Walks over partitions from a token or after a key up to a token, of which `expected` are likely to be
    /// asked for.
    pub fn lone_partitions(
        &self,
        (from, after): (Token, Option<&PartitionKey>),
        last: Token,
        expected: u32,
    ) -> LonePartitions<'_> {
        let entries = self.behind(from, after);
        LonePartitions { entries, last, taken: Vec::new(), given: 0, expected: expected as usize }
    }
}

impl<'m> Iterator for LonePartitions<'m> {
    type Item = (&'m PartitionKey, Lone<'m>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.given == self.taken.len() {
            self.take_more();
        }
        let (key, partition) = *self.taken.get(self.given)?;
        self.given += 1;
        Some((key, Lone::of(Some(partition))))
    }
}

impl LonePartitions<'_> {
    fn take_more(&mut self) {
        self.taken.clear();
        self.given = 0;
        let count = self.expected.clamp(1, TOGETHER_MAX);
        self.expected = self.expected.saturating_sub(count);
        self.entries.take_together(count, &mut self.taken);
        let behind = self.taken.iter().position(|(key, _)| key.token > self.last);
        self.taken.truncate(behind.unwrap_or(self.taken.len()));
        for (key, partition) in &self.taken {
            prefetch(&key.bytes);
            prefetch(partition.first_bytes().unwrap_or_default());
        }
    }
}
