//! Deletions of partitions at negative timestamps, told in other words.
//!
//! A partition's deletion has no place for them in `da`: the sign bit of its timestamp means that there
//! is none. (Cassandra 5.0.9 writes such a deletion all the same and then can not read its file.) Other
//! deletions are written as differences, which can be negative. So the partition is written as not
//! deleted, and instead
//!
//! - a range deletion from its start to its end covers all rows; in a table without clustering columns
//!   the one row is deleted;
//! - every static column is deleted by a tombstone of its own.
//!
//! What is read is the same, whatever else the partition has in other files.

use rows::{
    CellRef, Clustering, DeletionTime, Liveness, Marker, PartitionHeader, Row, RowBuilder, Slice, Unfiltered,
    merge_rows,
};
use schema::{Column, Table};

/// Has the format no way to write a deletion of a partition as such?
pub(crate) fn is_unwritable(deletion: DeletionTime) -> bool {
    !deletion.is_live() && deletion.timestamp < 0
}

/// A deletion that is spread over what is in its partition.
#[derive(Debug)]
pub(crate) struct SpreadDeletion {
    deletion: DeletionTime,
    has_clustering: bool,
    /// Is the range deletion begun, or the one row written?
    is_begun: bool,
    is_ended: bool,
}

impl SpreadDeletion {
    /// The header that is written instead, and what follows of it.
    pub(crate) fn begin(header: &PartitionHeader, table: &Table) -> (PartitionHeader, SpreadDeletion) {
        let deletion = header.deletion;
        let rows: Vec<Row> =
            static_tombstones(deletion, table).into_iter().chain(header.static_row.clone()).collect();
        let written = PartitionHeader {
            key: header.key.clone(),
            deletion: DeletionTime::LIVE,
            static_row: merge_rows(&rows, DeletionTime::LIVE, table),
        };
        let has_clustering = !table.clustering_types().is_empty();
        (written, SpreadDeletion { deletion, has_clustering, is_begun: false, is_ended: false })
    }

    /// What is written for the next item of the partition.
    pub(crate) fn items(&mut self, item: &Unfiltered, table: &Table) -> Vec<Unfiltered> {
        let mut items = Vec::with_capacity(2);
        let marker = match item {
            Unfiltered::Row(row) if !self.has_clustering => {
                self.is_begun = true;
                let rows = [row.clone(), self.deletion_row()];
                return merge_rows(&rows, DeletionTime::LIVE, table)
                    .map(Unfiltered::Row)
                    .into_iter()
                    .collect();
            }
            Unfiltered::Row(_) => {
                items.extend(self.open());
                items.push(item.clone());
                return items;
            }
            Unfiltered::Marker(marker) => marker,
        };
        let is_edge = marker.prefix.is_empty();
        let mut covered = marker.clone();
        covered.left = covered.left.max(self.deletion);
        covered.right = covered.right.max(self.deletion);
        if is_edge && marker.is_before {
            self.is_begun = true;
            covered.left = DeletionTime::LIVE;
        } else {
            items.extend(self.open());
        }
        if is_edge && !marker.is_before {
            self.is_ended = true;
            covered.right = DeletionTime::LIVE;
        }
        if covered.left != covered.right {
            items.push(Unfiltered::Marker(covered));
        }
        items
    }

    /// What is written before the partition ends.
    pub(crate) fn end(mut self) -> Vec<Unfiltered> {
        assert!(self.is_begun || !self.is_ended, "a range that is ended was begun");
        if !self.has_clustering {
            return if self.is_begun { Vec::new() } else { vec![Unfiltered::Row(self.deletion_row())] };
        }
        let mut items = Vec::from_iter(self.open());
        if !self.is_ended {
            items.push(Unfiltered::Marker(Marker::at(&Slice::ALL.end, self.deletion)));
        }
        items
    }

    fn open(&mut self) -> Option<Unfiltered> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        is_first.then(|| Unfiltered::Marker(Marker::at(&Slice::ALL.start, self.deletion)))
    }

    fn deletion_row(&self) -> Row {
        RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, self.deletion).finish()
    }
}

/// A static row that deletes all static columns; `None` when there are none.
fn static_tombstones(deletion: DeletionTime, table: &Table) -> Option<Row> {
    let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
    let mut columns: Vec<&Column> = table.static_columns().iter().collect();
    columns.sort_by_key(|column| column.id);
    for column in columns {
        if column.cql_type.has_paths() {
            row.complex(column.id, deletion, []);
        } else {
            row.cell(column.id, CellRef::tombstone(deletion.timestamp, deletion.local_deletion_time));
        }
    }
    let row = row.finish();
    (!row.is_empty()).then_some(row)
}
