//! The memtable: what was written to a table and is not in a table file yet.
//!
//! Partitions lie in ring order, rows in clustering order by their byte-comparable form. A write
//! merges with what is there; keys and small rows are copied into an arena, other rows stay in the memory
//! of the mutation they came with where they are most of it. A memtable is *active* on its shard, then *frozen*:
//! from then on it is immutable, read by the shard and written out by a flush job at the same time.
//!
//! ```text
//!   Mutation ──► Memtable::apply ──► tree of partitions ──► rows ──► bytes in the arena, or as they came
//!                                          │
//!                   MemtableSlot           ├─► single_row, single_rows  partitions of one row, by their keys
//!                   active, then frozen    ├─► single_row_partitions    the same, along the ring
//!                                          ├─► MemtableCursor           anything, while writes go on
//!                                          └─► partitions               everything, for a flush
//! ```
//!
//! Nothing here waits, and nothing is ever taken out: whoever owns a memtable bounds it by
//! [`Memtable::memory_bytes`] and lets go of it whole.

mod ahead;
mod arena;
mod cursor;
#[cfg(test)]
mod memory_tests;
mod partition;
mod single_row;
mod slot;
mod tree;

use std::ops::Bound as RangeBound;
use std::sync::Arc;

use bytes::Bytes;
use commitlog::LogPosition;
use rows::{
    ClusteringComparator, EncodingStats, EncodingStatsCollector, Mutation, PartitionHeader, PartitionKey,
    RingPlace, Unfiltered,
};
use schema::Table;
use types::Token;

use ahead::Ahead;
use arena::Arena;
pub use cursor::{MemtableCursor, MemtableTarget};
pub use partition::SingleRow;
use partition::{Context, MemoryPartition};
pub use single_row::SingleRowPartitions;
pub use slot::MemtableSlot;
pub use tree::KEYS_TOGETHER;
use tree::{Entries, NODE_BYTES_PER_ENTRY, PartitionTree};
pub use tree::{PartitionPlace, PartitionPlaces};

/// Of a partition beside its bytes: itself in the tree, and its part of the nodes above it.
const PARTITION_OVERHEAD_BYTES: usize = size_of::<(PartitionKey, MemoryPartition)>() + NODE_BYTES_PER_ENTRY;
/// Of a row in a partition of many, about: its entry in the map and its part of the map's nodes.
const ROW_OVERHEAD_BYTES: usize = 96;

/// What a memtable has of a partition.
pub enum SingleRowLookup<'a> {
    /// Nothing.
    Absent,
    /// At most a row and a deletion of the partition.
    Row(SingleRow<'a>),
    /// More, to be read with a cursor.
    Many,
}

impl<'a> SingleRowLookup<'a> {
    #[inline]
    fn of(partition: Option<&'a MemoryPartition>) -> Self {
        match partition {
            None => SingleRowLookup::Absent,
            Some(partition) => partition.single_row().map_or(SingleRowLookup::Many, SingleRowLookup::Row),
        }
    }
}

/// Writes to one table on one shard, in memory.
pub struct Memtable {
    table: Arc<Table>,
    comparator: ClusteringComparator,
    partitions: PartitionTree<MemoryPartition>,
    stats: EncodingStatsCollector,
    arena: Arena,
    /// Where rows are merged.
    scratch: Vec<u8>,
    /// What lies beside the arena.
    other_bytes: usize,
    operation_count: u64,
    /// Log position of the oldest write in it that the log still must keep.
    first_position: Option<LogPosition>,
}

impl Memtable {
    /// An empty one, for writes to a table.
    pub fn new(table: Arc<Table>) -> Self {
        Memtable {
            comparator: ClusteringComparator::new(Arc::clone(table.clustering_types())),
            table,
            partitions: PartitionTree::new(),
            stats: EncodingStatsCollector::new(),
            arena: Arena::default(),
            scratch: Vec::new(),
            other_bytes: 0,
            operation_count: 0,
            first_position: None,
        }
    }

    /// Merges a write in. `position` is where the commit log keeps it, `None` when it does not; `place` that of
    /// its partition, if it is known already.
    ///
    /// # Panics
    /// When the mutation is of another table.
    pub fn apply(
        &mut self,
        mutation: &Mutation,
        position: Option<LogPosition>,
        place: Option<PartitionPlace>,
    ) {
        assert_eq!(mutation.table, self.table.id(), "a mutation goes to the memtable of its table");
        if let (None, Some(position)) = (self.first_position, position) {
            self.first_position = Some(position);
        }
        self.stats.mutation(mutation);
        self.operation_count += 1;
        let arena = &mut self.arena;
        let key = &mutation.key;
        // Not in a release: to compare the keys again takes a good part of the time of a small write.
        debug_assert!(
            place.is_none_or(|place| self.partitions.key_at(place) == key),
            "the place is that of the mutation's partition"
        );
        let (partition, is_new) = match place {
            Some(place) => (self.partitions.at_mut(place), false),
            None => self.partitions.get_or_insert(key, || (arena.key(key), MemoryPartition::default())),
        };
        let scratch = &mut self.scratch;
        let held_bytes = mutation.as_encoded().len();
        let mut context =
            Context { table: &self.table, comparator: &self.comparator, arena, scratch, held_bytes };
        self.other_bytes += partition.apply(mutation, &mut context);
        self.other_bytes += if is_new { PARTITION_OVERHEAD_BYTES } else { 0 };
    }

    /// Was nothing written to it?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.partitions.len() == 0
    }

    /// Bytes that it takes: its arena, and what lies beside that.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        self.arena.memory_bytes() + self.other_bytes
    }

    /// How many partitions it has something of.
    #[inline]
    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    /// How many writes were merged in.
    #[inline]
    pub fn operation_count(&self) -> u64 {
        self.operation_count
    }

    /// Where the commit log keeps the oldest write in it; `None` when the log need not keep any.
    #[inline]
    pub fn first_position(&self) -> Option<LogPosition> {
        self.first_position
    }

    /// The least timestamp, deletion time and time to live in it, for the header of its file.
    #[inline]
    pub fn encoding_stats(&self) -> EncodingStats {
        self.stats.stats()
    }

    /// Everything in it in ring order, for a flush.
    pub fn partitions(
        &self,
    ) -> impl Iterator<Item = (PartitionHeader, impl Iterator<Item = Unfiltered> + '_)> + '_ {
        Ahead::new(self.partitions.range(RangeBound::Unbounded), |(_, partition)| partition.first_bytes())
            .filter(|(_, partition)| !partition.is_empty())
            .map(|(key, partition)| {
                (partition.header(key), partition.unfiltereds(&self.comparator, &self.table))
            })
    }

    /// What it has of each of up to [`KEYS_TOGETHER`] partitions, when that is no more than one row.
    #[inline]
    pub fn single_rows(&self, keys: &[&PartitionKey]) -> impl Iterator<Item = SingleRowLookup<'_>> {
        let partition = |place: Option<PartitionPlace>| place.map(|place| self.partitions.at(place));
        self.places_of(keys).into_iter().map(move |place| SingleRowLookup::of(partition(place)))
    }

    /// Where up to [`KEYS_TOGETHER`] partitions are, for [`Memtable::apply`]; and has the processor fetch them.
    ///
    /// # Panics
    /// When there are more keys.
    pub fn places_of(&self, keys: &[&PartitionKey]) -> PartitionPlaces {
        self.partitions.places_of(keys, MemoryPartition::first_bytes)
    }

    #[inline]
    fn partition(&self, key: &PartitionKey) -> Option<&MemoryPartition> {
        self.partitions.get(key)
    }

    /// Partitions in ring order, from a place on.
    fn behind(&self, place: &RingPlace) -> Entries<'_, MemoryPartition> {
        // The empty key sorts first among those of its token.
        let first = |token| PartitionKey { token, bytes: Bytes::new() };
        match place {
            RingPlace::Start => self.partitions.range(RangeBound::Unbounded),
            RingPlace::BeforeToken(token) => self.partitions.range(RangeBound::Included(&first(*token))),
            RingPlace::BeforeKey(key) => self.partitions.range(RangeBound::Included(key)),
            RingPlace::AfterKey(key) => self.partitions.range(RangeBound::Excluded(key)),
            RingPlace::AfterToken(Token(i64::MAX)) | RingPlace::End => self.partitions.none(),
            RingPlace::AfterToken(token) => {
                self.partitions.range(RangeBound::Included(&first(Token(token.0 + 1))))
            }
        }
    }

    fn comparator(&self) -> &ClusteringComparator {
        &self.comparator
    }
}
