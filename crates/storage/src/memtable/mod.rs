//! The memtable: what was written to a table and is not in a table file yet.
//!
//! Partitions lie in ring order, rows in clustering order by their byte-comparable form. A write
//! merges with what is there; rows share the memory of the mutation they came with. A memtable is
//! *active* on its shard, then *frozen*: from then on it is immutable, read by the shard and
//! written out by a flush job at the same time.

mod cursor;
mod partition;
mod slot;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound as RangeBound;
use std::sync::Arc;

use commitlog::LogPosition;
use rows::{ClusteringComparator, Mutation, PartitionHeader, PartitionKey, Unfiltered};
use schema::Table;
use sstable::{EncodingStats, EncodingStatsCollector};

pub(crate) use cursor::{MemtableCursor, MemtableTarget};
pub(crate) use partition::LoneRow;
use partition::MemoryPartition;
pub(crate) use slot::MemtableSlot;

/// Rough cost of a partition beside its bytes: map entry, key handle, row handle.
const PARTITION_OVERHEAD_BYTES: usize = 160;
/// Rough cost of a row in a partition of many.
const ROW_OVERHEAD_BYTES: usize = 96;

/// What a memtable has of a partition.
pub(crate) enum Lone<'a> {
    /// Nothing.
    Absent,
    /// At most a row and a deletion of the partition.
    Row(LoneRow<'a>),
    /// More, to be read with a cursor.
    Many,
}

/// Writes to one table on one shard, in memory.
pub(crate) struct Memtable {
    table: Arc<Table>,
    comparator: ClusteringComparator,
    partitions: BTreeMap<PartitionKey, MemoryPartition>,
    stats: EncodingStatsCollector,
    memory_bytes: usize,
    operation_count: u64,
    /// Log position of the oldest write in it that the log still must keep.
    first_position: Option<LogPosition>,
}

impl Memtable {
    pub(crate) fn new(table: Arc<Table>) -> Self {
        Memtable {
            comparator: ClusteringComparator::new(Arc::clone(table.clustering_types())),
            table,
            partitions: BTreeMap::new(),
            stats: EncodingStatsCollector::new(),
            memory_bytes: 0,
            operation_count: 0,
            first_position: None,
        }
    }

    /// Merges a write in. `position` is where the commit log keeps it, `None` when it does not.
    pub(crate) fn apply(&mut self, mutation: &Mutation, position: Option<LogPosition>) {
        debug_assert_eq!(mutation.table, self.table.id(), "a mutation goes to its own table");
        if let (None, Some(position)) = (self.first_position, position) {
            self.first_position = Some(position);
        }
        self.stats.mutation(mutation);
        self.operation_count += 1;
        let partition = match self.partitions.entry(mutation.key.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                self.memory_bytes += PARTITION_OVERHEAD_BYTES + mutation.key.bytes.len();
                place.insert(MemoryPartition::default())
            }
        };
        self.memory_bytes += partition.apply(mutation, &self.table, &self.comparator);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub(crate) fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    pub(crate) fn operation_count(&self) -> u64 {
        self.operation_count
    }

    pub(crate) fn first_position(&self) -> Option<LogPosition> {
        self.first_position
    }

    pub(crate) fn encoding_stats(&self) -> EncodingStats {
        self.stats.stats()
    }

    /// Everything in it in ring order, for a flush.
    pub(crate) fn partitions(
        &self,
    ) -> impl Iterator<Item = (PartitionHeader, impl Iterator<Item = Unfiltered> + '_)> + '_ {
        self.partitions
            .iter()
            .filter(|(_, partition)| !partition.is_empty())
            .map(|(key, partition)| (partition.header(key), partition.unfiltereds(&self.comparator)))
    }

    /// What it has of a partition, when that is no more than one row; all by one look-up.
    pub(crate) fn lone_row(&self, key: &PartitionKey) -> Lone<'_> {
        match self.partition(key) {
            None => Lone::Absent,
            Some(partition) => partition.lone_row().map_or(Lone::Many, Lone::Row),
        }
    }

    fn partition(&self, key: &PartitionKey) -> Option<&MemoryPartition> {
        self.partitions.get(key)
    }

    /// Partitions from a place up to a token.
    fn within(
        &self,
        start: RangeBound<&PartitionKey>,
        last: types::Token,
    ) -> impl Iterator<Item = (&PartitionKey, &MemoryPartition)> {
        let range = self.partitions.range::<PartitionKey, _>((start, RangeBound::Unbounded));
        range.take_while(move |(key, _)| key.token <= last)
    }

    fn comparator(&self) -> &ClusteringComparator {
        &self.comparator
    }
}
