//! Changes of several statements gathered into one mutation for each partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use rows::{DeletionTime, Mutation, MutationBuilder, PartitionKey, RangeTombstone, Row, merge_rows};
use schema::{Table, TableId};

/// Mutations of one statement or batch, one for each partition of each table, in the order met.
#[derive(Default)]
pub(crate) struct Changes {
    partitions: Vec<Change>,
    /// Built when there is more than a few. A tree: it compares tokens, which costs less than hashing keys.
    places: BTreeMap<(PartitionKey, TableId), usize>,
}

/// What changes in one partition.
enum Change {
    /// One row, as it will be written.
    Row(Arc<Table>, Mutation),
    Parts(Partition),
}

/// Changes of one partition, put together part by part.
pub(crate) struct Partition {
    table: Arc<Table>,
    key: PartitionKey,
    deletion: DeletionTime,
    static_row: Option<Row>,
    rows: Vec<Row>,
    ranges: Vec<RangeTombstone>,
}

/// Up to so many partitions are searched one by one.
const SEARCHED_MAX: usize = 4;

impl Changes {
    /// The changes of that partition.
    pub(crate) fn partition(&mut self, table: &Arc<Table>, key: PartitionKey) -> &mut Partition {
        let index = self.place_of(table.id(), &key);
        if index == self.partitions.len() {
            self.partitions.push(Change::Parts(Partition::new(table, key)));
        }
        self.partitions[index].parts()
    }

    /// Adds a mutation of one row of a table without clustering columns.
    pub(crate) fn add_row(&mut self, table: &Arc<Table>, mutation: Mutation) {
        debug_assert!(mutation.rows.len() == 1 && mutation.static_row.is_none(), "one row");
        let index = self.place_of(mutation.table, &mutation.key);
        match self.partitions.get_mut(index) {
            Some(change) => change.parts().rows.extend(mutation.rows),
            None => self.partitions.push(Change::Row(Arc::clone(table), mutation)),
        }
    }

    /// Where the changes of a partition are, or where its caller puts them: behind all others.
    fn place_of(&mut self, table: TableId, key: &PartitionKey) -> usize {
        let next = self.partitions.len();
        if next <= SEARCHED_MAX {
            let found = self.partitions.iter().position(|change| change.place() == (key, table));
            return found.unwrap_or(next);
        }
        if self.places.is_empty() {
            let entry = |(index, change): (usize, &Change)| {
                let (key, table) = change.place();
                ((key.clone(), table), index)
            };
            self.places = self.partitions.iter().enumerate().map(entry).collect();
        }
        *self.places.entry((key.clone(), table)).or_insert(next)
    }

    /// The mutations; partitions that nothing changed in are left out.
    pub(crate) fn finish(self) -> Vec<Mutation> {
        let mutation = |change| match change {
            Change::Row(_, mutation) => Some(mutation),
            Change::Parts(partition) => partition.finish(),
        };
        self.partitions.into_iter().filter_map(mutation).collect()
    }
}

impl Change {
    fn place(&self) -> (&PartitionKey, TableId) {
        match self {
            Change::Row(_, mutation) => (&mutation.key, mutation.table),
            Change::Parts(partition) => (&partition.key, partition.table.id()),
        }
    }

    /// In parts, for more to come.
    fn parts(&mut self) -> &mut Partition {
        if let Change::Row(table, mutation) = self {
            let mut parts = Partition::new(table, mutation.key.clone());
            parts.rows.append(&mut mutation.rows);
            *self = Change::Parts(parts);
        }
        match self {
            Change::Parts(partition) => partition,
            Change::Row(..) => unreachable!("taken apart above"),
        }
    }
}

impl Partition {
    fn new(table: &Arc<Table>, key: PartitionKey) -> Partition {
        Partition {
            table: Arc::clone(table),
            key,
            deletion: DeletionTime::LIVE,
            static_row: None,
            rows: Vec::new(),
            ranges: Vec::new(),
        }
    }

    pub(super) fn delete(&mut self, deletion: DeletionTime) {
        self.deletion = self.deletion.max(deletion);
    }

    pub(super) fn set_static(&mut self, row: Row) {
        self.static_row = match self.static_row.take() {
            Some(before) => merge_rows(&[before, row], DeletionTime::LIVE, &self.table),
            None => Some(row),
        };
    }

    pub(super) fn add_row(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(super) fn add_range(&mut self, range: RangeTombstone) {
        self.ranges.push(range);
    }

    fn finish(self) -> Option<Mutation> {
        let nothing = self.deletion.is_live()
            && self.static_row.is_none()
            && self.rows.is_empty()
            && self.ranges.is_empty();
        if nothing {
            return None;
        }
        let mut builder = MutationBuilder::new(self.table.id(), self.key);
        if !self.deletion.is_live() {
            builder.partition_deletion(self.deletion);
        }
        if let Some(row) = self.static_row {
            builder.static_row(row);
        }
        for row in self.rows {
            builder.row(row);
        }
        for range in self.ranges {
            builder.range(range);
        }
        Some(builder.finish())
    }
}
