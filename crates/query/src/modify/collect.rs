//! Changes of several statements gathered into one mutation for each partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use rows::{DeletionTime, Mutation, MutationBuilder, PartitionKey, RangeTombstone, Row, merge_rows};
use schema::{Table, TableId};

/// Mutations of one statement or batch, one for each partition of each table, in the order met.
#[derive(Default)]
pub(crate) struct Changes {
    partitions: Vec<Partition>,
    /// Built when there is more than a few. A tree: it compares tokens, which costs less than hashing keys.
    places: BTreeMap<(PartitionKey, TableId), usize>,
}

/// What changes in one partition.
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
        let found = if self.partitions.len() <= SEARCHED_MAX {
            self.partitions.iter().position(|p| p.key == key && p.table.id() == table.id())
        } else {
            if self.places.is_empty() {
                let entry = |(index, p): (usize, &Partition)| ((p.key.clone(), p.table.id()), index);
                self.places = self.partitions.iter().enumerate().map(entry).collect();
            }
            self.places.get(&(key.clone(), table.id())).copied()
        };
        let index = found.unwrap_or_else(|| {
            let index = self.partitions.len();
            if !self.places.is_empty() {
                self.places.insert((key.clone(), table.id()), index);
            }
            self.partitions.push(Partition {
                table: Arc::clone(table),
                key,
                deletion: DeletionTime::LIVE,
                static_row: None,
                rows: Vec::new(),
                ranges: Vec::new(),
            });
            index
        });
        &mut self.partitions[index]
    }

    /// The mutations; partitions that nothing changed in are left out.
    pub(crate) fn finish(self) -> Vec<Mutation> {
        self.partitions.into_iter().filter_map(Partition::finish).collect()
    }
}

impl Partition {
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
